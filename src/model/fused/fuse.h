// Which operators of a graph become one layer of oneDNN.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <set>
#include <vector>

namespace galvani {

// What a fused graph needs besides itself.
struct Fusion {
  std::vector<c10::IValue> layers;  // values of the inputs that were added to the graph, in order
  std::vector<at::Tensor> weights;  // what the layers were made of; those that change make the fusion stale
};

// Replaces layers with what follows them (batch norm, the sum with a shortcut, the activation), and pooling, by calls
// of fused layers, one input of the graph each. Only values that nothing else reads disappear: outputs of the graph
// keep their meaning. `observers` read a value right where it is made, so that it may be overwritten behind them.
Fusion fuse(torch::jit::Graph& graph, const torch::jit::Module& module,
            const std::set<const torch::jit::Node*>& observers);

}  // namespace galvani
