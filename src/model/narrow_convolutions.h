// Convolutions of few channels, as at the beginning of every network of images, whose gradient with respect to the
// input oneDNN takes ten times as long for as for the convolution itself.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <vector>

namespace galvani {

// conv2d whose derivative is found by a transposed convolution, and with respect to x alone: weights are constants
// here.
at::Tensor narrow_convolution(const at::Tensor& x, const at::Tensor& weight, const c10::optional<at::Tensor>& bias,
                              const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& padding,
                              const std::vector<std::int64_t>& dilation, std::int64_t groups);

// Puts it in place of all convolutions of up to four channels; how many these are.
std::int64_t replace_narrow_convolutions(torch::jit::Graph& graph, const torch::jit::Module& module);

}  // namespace galvani
