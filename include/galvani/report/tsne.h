// t-SNE (van der Maaten and Hinton 2008): points of many dimensions on a map of two, near ones near each other.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

namespace galvani {

struct TsneOptions {
  double perplexity = 30;  // about how many neighbours a point has; lowered where there are too few points
  std::int64_t iterations = 1000;
  std::int64_t exact = 1000;  // up to so many points every pair counts; beyond, Barnes-Hut (van der Maaten 2014)
  double theta = 0.5;         // Barnes-Hut: cells that look smaller than this are taken for a point; at most 0.7
  std::uint64_t seed = 0;
};

struct TsneMap {
  std::vector<std::array<double, 2>> points;
  double divergence = 0;  // Kullback and Leibler's, of the neighbourhoods on the map from those of the points
  double perplexity = 0;  // that was used
  bool exact = true;
};

// points [N, D], N at least 4, finite. The start is the first two principal components, so that maps are alike for
// alike points; the same on any number of threads. Ctrl-C is honoured between steps.
TsneMap tsne(const at::Tensor& points, const TsneOptions& options = {});

}  // namespace galvani
