// The four attacks of AutoAttack (Croce and Hein 2020), as searches that can follow each other: each goes on with the
// rows that are still standing.
#pragma once

#include <cstdint>

#include "galvani/attack/search.h"

namespace galvani {

enum class ApgdLoss { cross_entropy, dlr, dlr_targeted };

struct ApgdSettings {
  std::int64_t steps = 100;
  std::int64_t restarts = 1;
  double rho = 0.75;  // share of steps that must gain, or the step is halved
  ApgdLoss loss = ApgdLoss::cross_entropy;
  std::int64_t classes = 9;  // of dlr_targeted: how many other classes are tried, the best first
};
void search_apgd(Search& search, const ApgdSettings& settings);

struct FabSettings {
  std::int64_t steps = 100;
  std::int64_t restarts = 1;
  double alpha_max = 0.1;
  double eta = 1.05;  // extrapolation past the plane
  double beta = 0.9;  // step back towards the original once over the boundary
  std::int64_t classes = 9;
};
void search_fab(Search& search, const FabSettings& settings);

struct SquareSettings {
  std::int64_t queries = 5000;
  std::int64_t restarts = 1;
  double share = 0.8;  // p: of the pixels that the first squares cover
};
void search_square(Search& search, const SquareSettings& settings);

}  // namespace galvani
