#include "generate/builtin.h"

#include <algorithm>
#include <filesystem>

#include "generate/aeg.h"
#include "generate/differential.h"
#include "generate/mix.h"
#include "generate/population.h"

namespace galvani {
namespace {

// A choice that stands for values of other options, unless those are given themselves.
struct Preset {
  const char* generator;
  const char* option;
  const char* choice;
  std::vector<std::pair<std::string, std::string>> settings;
};

const std::vector<Preset>& presets() {
  static const std::vector<Preset> table = {
      // What the NLC authors' program runs with, whatever their paper says.
      {"mutate", "validity", "nlc-code", {{"alpha", "0.4"}, {"beta", "0.8"}, {"exempt", "style"}}},
  };
  return table;
}

// So that a campaign can be gone on with from any folder.
std::string absolute_paths(const std::string& list) {
  std::string result;
  for (const std::string& path : split_list(list))
    result += (result.empty() ? "" : ",") + std::filesystem::absolute(path).lexically_normal().string();
  return result;
}

}  // namespace

GeneratorRegistry& generators() {
  static GeneratorRegistry registry(
      "generator", {mutate_generator_entry(), noise_generator_entry(), attack_generator_entry(),
                    deepxplore_generator_entry(), dlfuzz_generator_entry(), swarm_generator_entry(),
                    genetic_generator_entry(), aeg_generator_entry(), mix_generator_entry()});
  return registry;
}

std::string resolved_generator(const Spec& spec) {
  Spec full = spec;
  auto given = [&](const std::string& name) {
    return std::find_if(spec.settings.begin(), spec.settings.end(), [&](const auto& s) { return s.first == name; });
  };
  for (const Preset& preset : presets()) {
    auto chosen = given(preset.option);
    if (spec.name != preset.generator || chosen == spec.settings.end() || chosen->second != preset.choice) continue;
    for (const auto& setting : preset.settings) {
      if (given(setting.first) == spec.settings.end()) full.settings.push_back(setting);
    }
  }
  for (auto& [name, value] : full.settings) {
    bool of_aeg = spec.name == "aeg" && (name == kExampleNetwork || (name == kReferenceNetwork && value != "none"));
    bool file = name == kOtherModels || name == kProfileFile || of_aeg;
    if (file && !value.empty()) value = absolute_paths(value);
    bool generator = spec.name == "mix" && (name == kFirstGenerator || name == kSecondGenerator);
    if (generator && !value.empty()) value = resolved_generator(Spec::parse(value));
  }
  return generators().options(full).str();
}

std::int64_t usual_energy(const std::string& spec) {
  Options options = generators().options(Spec::parse(spec));
  if (options.values().count(kPopulation) == 0) return 0;
  // And the best of all once more.
  return options.integer(kPopulation) * options.integer(kGenerations) + 1;
}

}  // namespace galvani
