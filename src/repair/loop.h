// Rounds of the Revisiting study's Algorithm 1.
#pragma once

#include <vector>

#include "galvani/repair/repair.h"

namespace galvani {

// What a round found: misclassified mutants of one part of the training data.
struct LoopFind {
  RepairRound round;
  FoundTests kept;
};

// `before` are the tests that earlier rounds kept; they count as covered.
LoopFind find_round(Network& network, const Dataset& train, const FoundTests& before, std::int64_t round,
                    const RepairOptions& options);

// Mutants of the clean data that the network gets wrong: held-out tests of the kind that the rounds make.
FoundTests mutants_of(Network& network, const Dataset& clean, const RepairOptions& options);

}  // namespace galvani
