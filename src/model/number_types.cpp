#include "model/number_types.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/script.h>

#include <set>
#include <vector>

#include "model/graph_tools.h"

namespace galvani {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

bool is_half(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16;
}

std::vector<torch::jit::NameTensor> tensors_of(const torch::jit::Module& module) {
  std::vector<torch::jit::NameTensor> all;
  for (const auto& parameter : module.named_parameters()) all.push_back(parameter);
  for (const auto& buffer : module.named_buffers()) all.push_back(buffer);
  return all;
}

// The number type an argument names, if the graph fixes it.
c10::optional<at::ScalarType> type_argument(const Value* value) {
  auto constant = torch::jit::toIValue(value);
  if (!constant || !constant->isInt()) return c10::nullopt;
  return static_cast<at::ScalarType>(constant->toInt());
}

void widen_block(Graph& graph, Block& block) {
  std::vector<Node*> nodes(block.nodes().begin(), block.nodes().end());
  for (Node* node : nodes) {
    for (Block* inner : node->blocks()) widen_block(graph, *inner);
    if (node->kind() == c10::prim::Constant) {
      auto value = torch::jit::toIValue(node->output());
      if (!value || !value->isTensor() || !value->toTensor().defined()) continue;
      if (!is_half(value->toTensor().scalar_type())) continue;
      torch::jit::WithInsertPoint here(node);
      node->output()->replaceAllUsesWith(graph.insertConstant(value->toTensor().to(at::kFloat)));
      node->destroy();
      continue;
    }
    if (node->maybeSchema() == nullptr || !node->hasNamedInput("dtype")) continue;
    Value* argument = node->namedInput("dtype");
    auto type = type_argument(argument);
    if (!type || !is_half(*type)) continue;
    torch::jit::WithInsertPoint here(node);
    node->replaceInputWith(argument, graph.insertConstant(static_cast<std::int64_t>(at::kFloat)));
  }
}

bool converts_to_float(const Node* node) {
  if (operator_name(node) != "to" || node->maybeSchema() == nullptr || !node->hasNamedInput("dtype")) return false;
  auto type = type_argument(node->namedInput("dtype"));
  return type && at::isFloatingType(*type);
}

// Operators that move elements and do not look at them.
bool only_moves(const Node* node) {
  static const std::set<std::string> kNames = {"permute", "transpose", "contiguous", "reshape",   "view",   "flatten",
                                               "squeeze", "unsqueeze", "clone",      "unflatten", "detach", "size"};
  return node->kind().is_aten() && kNames.count(operator_name(node)) != 0;
}

// `value` holds floats where the graph expects bytes.
void serve_bytes(Graph& graph, Value* value) {
  Value* bytes = nullptr;
  std::vector<torch::jit::Use> uses = value->uses();
  for (const torch::jit::Use& use : uses) {
    Node* user = use.user;
    if (converts_to_float(user) && use.offset == 0) continue;
    if (only_moves(user) && use.offset == 0) {
      if (user->outputs().size() == 1 && user->output()->type()->cast<c10::TensorType>() != nullptr)
        serve_bytes(graph, user->output());
      continue;
    }
    if (bytes == nullptr) {
      Node* first = value->node()->kind() == c10::prim::Param ? *graph.nodes().begin() : value->node()->next();
      torch::jit::WithInsertPoint here(first);
      bytes = graph.insert(c10::aten::to, {value, static_cast<std::int64_t>(at::kByte), false, false});
    }
    user->replaceInput(use.offset, bytes);
  }
}

}  // namespace

std::map<std::string, at::ScalarType> widen_tensors(torch::jit::Module& module) {
  std::map<std::string, at::ScalarType> types;
  std::vector<torch::jit::NameTensor> all = tensors_of(module);
  for (const auto& tensor : all) {
    if (is_half(tensor.value.scalar_type())) types[tensor.name] = tensor.value.scalar_type();
  }
  for (const auto& tensor : all) {
    at::Tensor value = tensor.value;
    if (is_half(value.scalar_type())) value.set_data(value.detach().to(at::kFloat));
  }
  return types;
}

void narrow_tensors(torch::jit::Module& module, const std::map<std::string, at::ScalarType>& types) {
  for (const auto& tensor : tensors_of(module)) {
    auto type = types.find(tensor.name);
    at::Tensor value = tensor.value;
    if (type != types.end()) value.set_data(value.detach().to(type->second));
  }
}

void widen_graph(Graph& graph) {
  widen_block(graph, *graph.block());
}

void take_bytes_as_floats(Graph& graph) {
  serve_bytes(graph, graph.inputs().at(1));
}

}  // namespace galvani
