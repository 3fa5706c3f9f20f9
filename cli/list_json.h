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

}  // namespace galvani::cli
