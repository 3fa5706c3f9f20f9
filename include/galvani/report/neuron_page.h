// What neurons see, as one HTML page: pictures, masks, words, search.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "galvani/semantics/descriptions.h"
#include "galvani/semantics/exemplars.h"

namespace galvani {

struct NeuronPageOptions {
  std::string title;
  std::int64_t most = 1000;  // neurons; of more, evenly taken from every layer
};

// Nothing is loaded from anywhere. Error(bad_input) unless the exemplars are those of the descriptions.
std::string neuron_page(const Descriptions& descriptions, const Exemplars& exemplars, const NeuronPageOptions& options);

// A neuron's exemplars side by side, [3, H, count x W] uint8, what lies outside the mask darkened. `side`: the longest
// of an image, which is reduced to it; 0: as it is.
at::Tensor exemplar_strip(const Exemplars& exemplars, std::size_t layer, std::int64_t neuron, std::int64_t side);

}  // namespace galvani
