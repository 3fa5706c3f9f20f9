#include "galvani/base/json_text.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "galvani/base/utf8.h"

namespace galvani {

std::string json_text(const nlohmann::json& value, int indent) {
  std::string dumped = value.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
  std::string result;
  result.reserve(dumped.size());
  for (std::string_view rest = dumped; !rest.empty();) {
    Character c = first_character(rest);
    // Between the strings there are line ends; inside them the library has escaped what is below U+0020.
    if (c.code >= 0x7f && drives_terminal(c.code)) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned int>(c.code));
    } else {
      result += rest.substr(0, c.length);
    }
    rest.remove_prefix(c.length);
  }
  return result;
}

void print_json(const nlohmann::json& value, int indent) {
  fmt::print("{}\n", json_text(value, indent));
  std::fflush(stdout);
}

}  // namespace galvani
