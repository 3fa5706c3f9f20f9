// What the campaign of an attack says about a network: the accuracy that is left, by radius and by class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/attack/attack.h"
#include "galvani/base/gate.h"
#include "galvani/base/json.h"
#include "galvani/fuzz/reader.h"

namespace galvani {

// Of the examples found: shares of the full scale, and of the pixels.
struct ChangeSizes {
  struct Size {
    double mean = 0, median = 0;
  };
  Size l0, l2, linf;
  Size snr;  // of sounds, in dB
};

struct RobustnessLevel {
  double radius = 0;                // infinity: whatever the size of the change
  std::string name;                 // "8/255", "any size"
  std::int64_t broken = 0;          // of the tried seeds, by what is saved
  std::int64_t broken_before = -1;  // by what was not rounded yet; negative: not known
  double accuracy = 0;              // that is left
  double low = 0, high = 0;         // of it, 95%
  ChangeSizes sizes;                // of the smallest example of each broken seed
};

struct ClassRobustness {
  std::string name;
  std::int64_t inputs = 0;
  std::int64_t right = 0;
  std::int64_t tried = 0;
  std::int64_t broken = 0;
  double clean() const { return inputs > 0 ? static_cast<double>(right) / static_cast<double>(inputs) : 0; }
  double robust() const {
    return tried > 0 ? clean() * static_cast<double>(tried - broken) / static_cast<double>(tried) : 0;
  }
};

struct Robustness {
  SampleType type;     // of the inputs
  std::string attack;  // its spec, but for the radius
  Norm norm = Norm::linf;
  bool bounded = true;
  SeedFigures seeds;
  std::vector<RobustnessLevel> levels;   // ascending; the first is without a change
  std::vector<ClassRobustness> classes;  // at the last level
  std::int64_t passes = 0;               // forward, of all inputs
  double seconds = 0;
  const RobustnessLevel& last() const { return levels.back(); }
};

// Usage error if the campaign's generator is no attack.
Robustness robustness_of(const CampaignReader& reader);

Json robustness_json(const Robustness& robustness);
// clean, robust, asr, asr-before-rounding, and means and medians of the change.
Figures figures_of(const Robustness& robustness);
// Accuracy by radius.
std::string robustness_svg(const Robustness& robustness);

}  // namespace galvani
