// Groups of inputs as a layer of the network sees them: which lie among which, and a map of all.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/report/tsne.h"

namespace galvani {

struct FeatureGroup {
  std::string name;
  at::Tensor features;   // [N, D] float
  at::Tensor labels;     // [N] int64; -1: unknown
  at::Tensor predicted;  // [N] int64: verdicts

  std::int64_t size() const { return labels.size(0); }
};

// Who the nearest inputs of a group are. These are figures of the features themselves: a map of two dimensions cannot
// keep all distances, and what looks apart on it need not be.
struct FeatureNeighbours {
  std::vector<double> in_group;  // share of the neighbours in each group, on average over its inputs
  double same_label = 0;         // of the neighbours in the first group: share with the input's label
  double same_verdict = 0;       // likewise, with the verdict on the input as label
};
// Of every group the `count` nearest inputs of all groups besides the input itself, and the `count` nearest of the
// first group. REQUIRES more than `count` inputs in the first group.
std::vector<FeatureNeighbours> feature_neighbours(const std::vector<FeatureGroup>& groups, std::int64_t count);

// The map twice as SVG: coloured by group, and by label. Points of `map` are those of the groups one after the other.
std::string feature_map_svg(const std::string& title, const std::vector<FeatureGroup>& groups, const TsneMap& map,
                            const std::vector<std::string>& classes);

}  // namespace galvani
