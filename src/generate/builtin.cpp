#include "generate/builtin.h"

#include <algorithm>
#include <filesystem>

#include "galvani/mutate/catalogue.h"
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

// What stands for the default of an option where inputs are of a kind: changes of images and their sizes mean nothing
// to sounds.
struct UsualOfKind {
  SampleKind kind;
  std::string generator;
  std::string option;
  std::string value;
};

const std::vector<UsualOfKind>& usual_of_kinds() {
  constexpr const char* kFaint = "0.002";  // of the full scale, as attacks on speaker recognition have it
  static const std::vector<UsualOfKind> table = {
      {SampleKind::audio, "mutate", "set", usual_catalogue(SampleKind::audio)},
      {SampleKind::audio, "noise", "eps", kFaint},
      {SampleKind::audio, "swarm", "eps", kFaint},
      {SampleKind::audio, "genetic", "eps", kFaint},
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
  static GeneratorRegistry registry("generator",
                                    {mutate_generator_entry(), noise_generator_entry(), attack_generator_entry(),
                                     deepxplore_generator_entry(), dlfuzz_generator_entry(), swarm_generator_entry(),
                                     genetic_generator_entry(), aeg_generator_entry(), mix_generator_entry()});
  return registry;
}

std::string resolved_generator(const Spec& spec, SampleKind kind) {
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
  for (const UsualOfKind& usual : usual_of_kinds()) {
    if (usual.kind == kind && usual.generator == spec.name && given(usual.option) == spec.settings.end())
      full.settings.emplace_back(usual.option, usual.value);
  }
  for (auto& [name, value] : full.settings) {
    bool of_aeg = spec.name == "aeg" && (name == kExampleNetwork || (name == kReferenceNetwork && value != "none"));
    bool file = name == kOtherModels || name == kProfileFile || of_aeg;
    if (file && !value.empty()) value = absolute_paths(value);
    bool generator = spec.name == "mix" && (name == kFirstGenerator || name == kSecondGenerator);
    if (generator && !value.empty()) value = resolved_generator(Spec::parse(value), kind);
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
