#include "galvani/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace galvani {
namespace {

bool is_set(const char* name, std::string_view but = "") {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && value != but;
}

}  // namespace

int terminal_width(int descriptor) {
  constexpr int kNarrowest = 20;  // below it, nothing could be made to fit
  winsize size{};
  bool known = isatty(descriptor) != 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > kNarrowest ? size.ws_col : 0;
}

Colour wanted_colour() {
  if (is_set("NO_COLOR")) return Colour::never;
  if (is_set("CLICOLOR_FORCE", "0") || is_set("FORCE_COLOR", "0")) return Colour::always;
  return Colour::automatic;
}

}  // namespace galvani
