// Reading torch::jit graphs: which nodes are layers, where their weights come from.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "galvani/model/network.h"

namespace galvani {

// LibTorch's messages carry stack traces; people want the line that says what is wrong. Of an operation that failed in
// the interpreter it is the last, and the operation is named: by its ONNX node if `node_of` (variable → node) knows it,
// by its source otherwise.
std::string first_line(const std::string& message, const std::map<std::string, std::string>& node_of = {});

// "conv2d" of aten::conv2d.
std::string operator_name(const torch::jit::Node* node);

// "layer1.0.conv1.weight" for a value read from the module, also through a transposition; empty for any other value.
std::string attribute_path(const torch::jit::Value* value);

// The tensor at such a path; undefined if there is none.
at::Tensor attribute_at(const torch::jit::Module& module, const std::string& path);

// Freezing inlines functions and then frees them, but error messages of the interpreter still look at their names.
// Lets every node point to `owner`, which must outlive the graph.
void replace_call_stacks(torch::jit::Block& block, torch::jit::Function& owner);

// Throws Error(bad_input) for a convolution in no groups: LibTorch cuts their number to 32 bits and divides by it.
void check_groups(const torch::jit::Block& block, const std::string& label);

// Makes each tensor of a tuple of results, nested ones included, an output of its own. Results of other types are left
// out; Error(bad_input) if nothing remains.
void spread_outputs(torch::jit::Graph& graph, const std::string& label);

// Whether a value is the same for every input and was not read from a parameter.
bool is_constant(const torch::jit::Value* value);

struct LayerMatch {
  TapKind kind;
  std::string op;
  const torch::jit::Value* weight;  // null for an activation
};
// Whether the node's output is one to tap. Of a matrix product followed by the addition of a bias it is the sum's.
std::optional<LayerMatch> match_layer(const torch::jit::Node* node);

// Follows what a layer gives through the steps that are its own and keep its shape: normalisation, activation
// functions, dropout, arithmetic with constants and parameters, a gate x · f(x). It ends where another value comes in,
// such as that of a shortcut, or where several read it. `axes`: how many it has.
torch::jit::Value* end_of_layer(torch::jit::Value* value, const torch::jit::Module& module, std::int64_t axes);

// Of a node that match_layer calls a layer: the value that its weight is applied to.
torch::jit::Value* layer_input(torch::jit::Node* node);
// The same layer as arithmetic, with its weight from the module; none if it is of a kind not known here.
std::optional<LinearLayer> read_linear(const torch::jit::Node* layer, const torch::jit::Module& module);

// The convolution or dense layer from which a value comes, following first inputs; null if there is none.
const torch::jit::Node* nearest_layer(const torch::jit::Value* value);

// The graph, compiled for the interpreter. The compiler follows each value that only the next node reads into that
// node, one call deeper for each; here such runs are cut into pieces, so that a long chain does not exhaust the stack.
torch::jit::Code interpreter_code(const std::shared_ptr<torch::jit::Graph>& graph);

// Whether a block of the node (the body of a loop or branch) has a convolution or dense layer.
bool any_layer_inside(const torch::jit::Node* node);

}  // namespace galvani
