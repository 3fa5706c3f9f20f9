// How deep a text nests, before a parser that calls itself at every level gets to see it: without a bound such a text
// ends the process.
#pragma once

#include <string>
#include <string_view>

namespace galvani {

// Error(bad_input) that names `what` if tables and arrays nest deeper than any file of ours.
void check_toml_nesting(std::string_view text, const std::string& what);

bool json_nests_too_deep(std::string_view text);

// nlohmann::json::parse without exceptions, for all JSON that is read: what nests too deep is discarded, like what is
// no JSON. A template, because the library takes seconds to compile.
template <class Library>
Library parse_json(std::string_view text) {
  if (json_nests_too_deep(text)) return Library(Library::value_t::discarded);
  return Library::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace galvani
