#include "galvani/base/error.h"

namespace galvani {

std::string printable(std::string_view text, std::size_t most) {
  std::string result;
  for (char c : text.substr(0, most)) result += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? '?' : c;
  if (text.size() > most) result += "...";
  return result;
}

}  // namespace galvani
