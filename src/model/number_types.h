// Models of other number types than float32: float16 has few kernels on a CPU, and bytes have no gradient.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <string>

namespace galvani {

// float16 and bfloat16 tensors of the module become float32; returns what they were, by path.
std::map<std::string, at::ScalarType> widen_tensors(torch::jit::Module& module);
// Makes them what they were.
void narrow_tensors(torch::jit::Module& module, const std::map<std::string, at::ScalarType>& types);
// What is left in a graph of a module so widened: constants, and conversions to float16.
void widen_graph(torch::jit::Graph& graph);

// The graph's image becomes float32 that holds whole numbers 0..255: where the graph converts it to a floating-point
// type it stays as it is, so that gradients reach it; any other operator gets the bytes it was made for.
void take_bytes_as_floats(torch::jit::Graph& graph);

}  // namespace galvani
