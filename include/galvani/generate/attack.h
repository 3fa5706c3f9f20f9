// The generator `attack` as others see it: which attacks its spec stands for, and radii as users write them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "galvani/attack/attack.h"
#include "galvani/base/options.h"

namespace galvani {

// "8/255", "0,1/255,0.1" or "0..16/255" (every whole number over 255) → shares of the full scale, ascending, each once.
// Usage error otherwise; empty text: none.
std::vector<double> parse_radii(const std::string& text);

// "8/255" where it is a whole number of steps of `full` (255, or 32768 of sounds), else "0.1234".
std::string radius_text(double radius, double full);

struct AttackPlan {
  std::vector<std::unique_ptr<Attack>> attacks;  // one a radius, ascending, 0 left out; or one that has none
  std::vector<double> radii;                     // that were asked for
  std::string aim;                               // what inputs are to become: "any", "next", "least", "random", "class"
  std::int64_t target = 0;                       // of "class"
  bool bounded() const { return attacks.front()->bounded(); }
  // What a candidate of an attack is called: "pgd 8/255", "deepfool".
  std::string kind(std::size_t attack, double full) const;
  void check_target(std::int64_t classes) const;  // usage error if the model has no such class
};
// Usage error if the spec is none of the generator's, or names no attack.
AttackPlan plan_attack(const Spec& generator);

}  // namespace galvani
