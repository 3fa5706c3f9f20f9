// Decision path discrepancy (NSGen eq. 5): how many inputs of a suite are decided for other reasons than what they were
// made of.
#pragma once

#include <cstdint>
#include <vector>

#include "galvani/data/view.h"
#include "galvani/model/network.h"
#include "galvani/semantics/path.h"

namespace galvani {

struct Discrepancy {
  std::vector<double> similarity;  // of each pair
  std::int64_t below = 0;          // pairs whose similarity is less than the threshold
  double tau = 0;
  double score() const;  // the share of them
  double mean() const;   // of the similarities
};

// `originals`: what the inputs were made of, as many, in their order; usage error otherwise. The score that is followed
// is that of the input's label, else of the original's, else of what the original is taken for. With a progress bar;
// Ctrl-C is honoured.
Discrepancy measure_discrepancy(PathFinder& finder, Network& network, const DataView& inputs, const DataView& originals,
                                double tau);

}  // namespace galvani
