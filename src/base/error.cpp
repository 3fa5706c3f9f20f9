#include "galvani/base/error.h"

#include <algorithm>

namespace galvani {

std::string printable(std::string_view text, std::size_t most) {
  std::string result;
  std::size_t end = std::min(most, text.size());
  // Not in the middle of a UTF-8 character.
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  for (char c : text.substr(0, end)) result += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? '?' : c;
  if (text.size() > most) result += "...";
  return result;
}

}  // namespace galvani
