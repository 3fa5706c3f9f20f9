// Ctrl-C and SIGTERM ask politely: long work looks at interrupted() between steps and saves. A second one ends at once.
#pragma once

namespace galvani {

void install_interrupt_handler();
bool interrupted();
void clear_interrupt();
// Throws Error(interrupted) if asked to stop.
void check_interrupt();

}  // namespace galvani
