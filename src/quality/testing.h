// Networks whose answers can be worked out by hand.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "galvani/model/network.h"

namespace galvani::testing {

// scores = x·w/255 + b for images of this shape: weight [values, classes], bias [classes].
std::unique_ptr<Network> linear_network(const std::vector<std::int64_t>& shape, const at::Tensor& weight,
                                        const at::Tensor& bias);

// A LeNet-1 with random weights.
std::unique_ptr<Network> small_network();

// Repeatable noise, [n, C, H, W] uint8.
at::Tensor noise_images(const Network& network, std::int64_t n);

}  // namespace galvani::testing
