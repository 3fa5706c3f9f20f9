// Operators that exporters write as several, put together again.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

namespace galvani {

// Layer norm over the last axis, and GELU. Values that anything else reads stay.
void recompose(torch::jit::Graph& graph, const torch::jit::Module& module);

}  // namespace galvani
