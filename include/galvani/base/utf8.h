// Text as characters: what is UTF-8, and which characters do something to a terminal instead of being shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace galvani {

struct Character {
  char32_t code = 0;
  std::size_t length = 1;  // bytes
  bool valid = false;      // not: one byte that belongs to no character
};
Character first_character(std::string_view text);  // of a text that is not empty

bool is_utf8(std::string_view text);

// C0 and C1 controls, DEL, and what reverses the direction of the text that follows.
bool drives_terminal(char32_t code);

// Any bytes as UTF-8 and back. Text that is UTF-8 stays as it is; other bytes are written as in "percent:a%FFb".
std::string bytes_to_utf8(std::string_view bytes);
std::string utf8_to_bytes(std::string_view text);

}  // namespace galvani
