// The words of a text, for encoders that look at words one by one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace galvani {

// Runs of letters and digits, in lower case; an apostrophe between letters belongs to its word ("don't").
// REQUIRES text is UTF-8.
std::vector<std::string> words_of(std::string_view text);

// Is it one of the words that hold an English sentence together and say little themselves ("a", "of", "with")?
bool is_function_word(std::string_view word);

}  // namespace galvani
