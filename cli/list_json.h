// What `--list --json` says of a component that has options.
#pragma once

#include <string>
#include <vector>

#include "galvani/base/json.h"
#include "galvani/base/options.h"

namespace galvani::cli {

inline Json entry_json(const std::string& name, const std::string& help, const OptionSchema& schema) {
  Json options = Json::array();
  for (const OptionInfo& option : schema)
    options.push_back({{"name", option.name}, {"default", to_string(option.fallback)}, {"help", option.help}});
  return {{"name", name}, {"help", help}, {"options", options}};
}

// "steps=20, norm=linf": what a component's options are unless something else is said.
inline std::string defaults_text(const OptionSchema& schema) {
  std::string text;
  for (const OptionInfo& option : schema)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", option.name, to_string(option.fallback));
  return text;
}

}  // namespace galvani::cli
