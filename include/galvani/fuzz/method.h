// A paper's way of fuzzing: its generator, guide, scheduler and constants under one name. Every part can be overridden.
#pragma once

#include <string>
#include <vector>

#include "galvani/fuzz/settings.h"

namespace galvani {

struct Method {
  std::string name;
  std::string help;
  CampaignSettings settings;  // those the paper fixes; the others are left open, or as usual
};

const std::vector<Method>& methods();
// Usage error if there is none.
const Method& find_method(const std::string& name);

}  // namespace galvani
