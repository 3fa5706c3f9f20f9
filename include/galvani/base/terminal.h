// What is known of the terminal that a stream goes to.
#pragma once

namespace galvani {

// Columns of the terminal behind a descriptor; 0: it is no terminal, or one that does not say.
int terminal_width(int descriptor);

enum class Colour { never, automatic, always };
// What the user wants: NO_COLOR says never, CLICOLOR_FORCE and FORCE_COLOR (other than 0) say always. Automatic is on a
// terminal only.
Colour wanted_colour();

}  // namespace galvani
