// Layers for passes without gradients, run by oneDNN: weights packed once, batch norm folded into them, the sum with a
// shortcut and the activation taken while a result is still in registers. Images lie channels last throughout, so every
// value remains an ordinary tensor that other operators and observers can read.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "galvani/model/network.h"

namespace galvani {

// Applied last. An activation that a layer does not know stays an operator of its own.
struct FusedActivation {
  enum class Kind { none, relu, leaky_relu, clip } kind = Kind::none;
  double a = 0, b = 0;  // leaky_relu: slope; clip: low, high
};

// Batch norm as evaluation sees it. weight and bias may be undefined: 1 and 0.
struct FusedNorm {
  at::Tensor weight, bias, mean, variance;  // [channels] each
  double epsilon = 0;
};

// Holds the primitives for the shapes it has met. Thread-safe; what it computes depends on the shape alone.
class FusedLayer : public torch::CustomClassHolder {
 public:
  // x: float. `sum`, if defined, is added before the activation.
  virtual at::Tensor run(const at::Tensor& x, const at::Tensor& sum) const = 0;
};
using FusedLayerPtr = c10::intrusive_ptr<FusedLayer>;

// [B, C, H, W] → [B, neurons, ...]. bias may be undefined. `takes_sum`: what is added may be overwritten by the result.
FusedLayerPtr fused_convolution(LinearLayer layer, at::Tensor bias, std::optional<FusedNorm> norm,
                                FusedActivation activation, bool takes_sum);

// [B, ...] → [B, neurons], flattening what comes; or [..., features] → [..., neurons].
FusedLayerPtr fused_dense(LinearLayer layer, at::Tensor bias, FusedActivation activation, bool flattens);

// Batch norm behind a value that someone observes, [B, C, H, W]. May work in place.
FusedLayerPtr fused_norm(FusedNorm norm, FusedActivation activation, bool in_place);

// Two-dimensional pooling without dilation, sizes rounded down.
struct FusedPooling {
  enum class Kind { maximum, average, average_without_padding } kind;
  std::vector<std::int64_t> kernel, stride, padding;  // two each
};
FusedLayerPtr fused_pooling(FusedPooling pooling);

}  // namespace galvani
