#include "galvani/base/error.h"

#include "galvani/base/utf8.h"

namespace galvani {

std::string printable(std::string_view text, std::size_t most) {
  bool cut = text.size() > most;
  std::string result;
  for (std::size_t left = most; !text.empty();) {
    Character c = first_character(text);
    if (c.length > left) break;
    if (c.valid && !drives_terminal(c.code)) {
      result += text.substr(0, c.length);
    } else {
      result += '?';
    }
    text.remove_prefix(c.length);
    left -= c.length;
  }
  return cut ? result + "..." : result;
}

}  // namespace galvani
