// Graphs that were exported for one image at a time, made to take any number of them.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <memory>

namespace galvani {

// Exporters write the batch size into the shapes that values are given: [1, 64, 49, 96] where [B, 64, 49, 96] was
// meant. Follows two different images, [2, ...], and the first of them alone, through the graph, to see in which axis
// of every value the images lie, and makes the shapes depend on their number. Null if that cannot be followed. What
// comes out must be checked against single images: where an axis of one could be meant in several ways, a guess is
// made.
std::shared_ptr<torch::jit::Graph> rebatch(const torch::jit::Graph& graph, const c10::IValue& self,
                                           const at::Tensor& two);

}  // namespace galvani
