// The neurons of a network, and how often inputs activate each: what generators choose by which one to raise.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/base/rng.h"
#include "galvani/model/network.h"

namespace galvani {

struct NeuronTable {
  // All neurons of the taps, one after the other. A neuron is active on an input if its value, scaled to 0..1 by the
  // smallest and largest of its tap, is above the threshold.
  NeuronTable(Network& network, const std::string& tap_spec, const at::Tensor& inputs, double threshold);

  std::int64_t size() const { return static_cast<std::int64_t>(active.size()); }
  // [N, size()] float of values as Outputs::taps has them in the form of neurons; 0 where a tap's are all equal.
  at::Tensor scaled(const std::vector<at::Tensor>& values) const;

  std::vector<int> taps;
  std::vector<std::int64_t> active;  // on how many of the inputs
  std::vector<double> weight;        // mean of what leads to it; 0 where the layer is not known
};

// Up to `count` different places, each drawn in proportion to its weight; those of weight 0 or less never.
std::vector<std::int64_t> draw_by_weight(const std::vector<double>& weights, std::int64_t count, Rng& rng);

}  // namespace galvani
