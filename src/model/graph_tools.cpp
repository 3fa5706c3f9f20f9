#include "model/graph_tools.h"

#include <algorithm>
#include <set>

#include "galvani/base/error.h"

namespace galvani {
namespace {

using torch::jit::Node;
using torch::jit::Value;

bool one_of(const std::string& word, const std::set<std::string>& words) {
  return words.count(word) != 0;
}

// Operators that pass on a parameter in another view.
bool is_view(const std::string& op) {
  static const std::set<std::string> kViews = {"t", "transpose", "permute", "contiguous", "numpy_T", "detach"};
  return one_of(op, kViews);
}

bool is_parameter(const Value* value) {
  while (is_view(operator_name(value->node())) && !value->node()->inputs().empty()) value = value->node()->input(0);
  return value->node()->kind() == c10::prim::GetAttr || value->node()->kind() == c10::prim::Constant;
}

bool is_product(const std::string& op) {
  return op == "matmul" || op == "mm" || op == "bmm";
}

// The weight of a product of an activation by a parameter; null for a product of two activations.
const Value* product_weight(const Node* node) {
  if (is_parameter(node->input(1))) return node->input(1);
  return is_parameter(node->input(0)) ? node->input(0) : nullptr;
}

// The addition of a bias that completes a matrix product, if there is one.
const Node* bias_addition(const Node* product) {
  if (product->output()->uses().size() != 1) return nullptr;
  const Node* user = product->output()->uses()[0].user;
  if (operator_name(user) != "add") return nullptr;
  const Value* other = user->input(0) == product->output() ? user->input(1) : user->input(0);
  return is_parameter(other) && other->type()->cast<c10::TensorType>() != nullptr ? user : nullptr;
}

}  // namespace

std::string first_line(const std::string& message) {
  std::size_t start = message.find_first_not_of(" \n");
  if (start == std::string::npos) return "no reason given";
  std::string line = message.substr(start, message.find('\n', start) - start);
  return printable(line, 300);
}

std::string operator_name(const Node* node) {
  return node->kind().toUnqualString();
}

std::string attribute_path(const Value* value) {
  while (is_view(operator_name(value->node())) && !value->node()->inputs().empty()) value = value->node()->input(0);
  std::string path;
  while (value->node()->kind() == c10::prim::GetAttr) {
    const std::string& name = value->node()->s(c10::attr::name);
    path = path.empty() ? name : name + "." + path;
    value = value->node()->input(0);
  }
  return path;
}

at::Tensor attribute_at(const torch::jit::Module& module, const std::string& path) {
  c10::IValue value = module._ivalue();
  std::size_t start = 0;
  while (start <= path.size()) {
    std::size_t dot = std::min(path.find('.', start), path.size());
    if (!value.isObject()) return {};
    auto object = value.toObject();
    auto slot = object->type()->findAttributeSlot(path.substr(start, dot - start));
    if (!slot) return {};
    value = object->getSlot(*slot);
    start = dot + 1;
  }
  return value.isTensor() ? value.toTensor() : at::Tensor();
}

void replace_call_stacks(torch::jit::Block& block, torch::jit::Function& owner) {
  for (Node* node : block.nodes()) {
    if (node->callstack())
      node->setCallStack(c10::make_intrusive<torch::jit::InlinedCallStack>(&owner, node->sourceRange()));
    for (torch::jit::Block* inner : node->blocks()) replace_call_stacks(*inner, owner);
  }
}

void keep_only_logits(torch::jit::Graph& graph, const std::string& label, bool& ends_in_softmax) {
  Value* output = graph.outputs().at(0);
  while (output->node()->kind() == c10::prim::TupleConstruct && !output->node()->inputs().empty())
    output = output->node()->input(0);
  if (output->type()->cast<c10::TensorType>() == nullptr)
    bad_input("{}: gives {} instead of a tensor of logits", label, output->type()->str());
  while (true) {
    std::string op = operator_name(output->node());
    if (op == "softmax" || op == "_softmax" || op == "log_softmax" || op == "_log_softmax") {
      ends_in_softmax = true;
      output = output->node()->input(0);
    } else if (op == "dropout" || op == "contiguous") {
      output = output->node()->input(0);
    } else {
      break;
    }
  }
  while (!graph.outputs().empty()) graph.eraseOutput(graph.outputs().size() - 1);
  graph.registerOutput(output);
}

std::optional<LayerMatch> match_layer(const Node* node) {
  static const std::set<std::string> kConvolutions = {"conv1d",           "conv2d",           "conv3d",
                                                      "_convolution",     "convolution",      "_convolution_mode",
                                                      "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"};
  static const std::set<std::string> kActivations = {"relu",     "relu_",    "relu6",       "hardtanh",    "leaky_relu",
                                                     "elu",      "selu",     "celu",        "gelu",        "silu",
                                                     "mish",     "sigmoid",  "hardsigmoid", "hardswish",   "tanh",
                                                     "softplus", "softsign", "prelu",       "log_sigmoid", "clamp"};
  if (!node->kind().is_aten() || node->outputs().size() != 1) return std::nullopt;
  std::string op = operator_name(node);
  if (one_of(op, kConvolutions)) return LayerMatch{TapKind::convolution, op, node->input(1)};
  if (op == "linear") return LayerMatch{TapKind::dense, op, node->input(1)};
  if (op == "addmm") {
    const Value* weight = is_parameter(node->input(2))   ? node->input(2)
                          : is_parameter(node->input(1)) ? node->input(1)
                                                         : nullptr;
    if (weight != nullptr) return LayerMatch{TapKind::dense, op, weight};
    return std::nullopt;
  }
  if (is_product(op)) {
    const Value* weight = product_weight(node);
    if (weight != nullptr && bias_addition(node) == nullptr) return LayerMatch{TapKind::dense, op, weight};
    return std::nullopt;
  }
  if (op == "add") {
    for (const Value* input : {node->input(0), node->input(1)}) {
      if (is_product(operator_name(input->node())) && bias_addition(input->node()) == node) {
        if (const Value* weight = product_weight(input->node()))
          return LayerMatch{TapKind::dense, operator_name(input->node()), weight};
      }
    }
    return std::nullopt;
  }
  if (one_of(op, kActivations) && node->output()->type()->cast<c10::TensorType>() != nullptr) {
    return LayerMatch{TapKind::activation, op == "relu_" ? "relu" : op, nullptr};
  }
  return std::nullopt;
}

const Node* nearest_layer(const Value* value) {
  for (int steps = 0; steps < 64; ++steps) {
    const Node* node = value->node();
    auto match = match_layer(node);
    if (match && match->kind != TapKind::activation) return node;
    if (!node->kind().is_aten() || node->inputs().empty()) return nullptr;
    value = node->input(0);
  }
  return nullptr;
}

bool any_layer_inside(const Node* node) {
  for (const torch::jit::Block* block : node->blocks()) {
    for (const Node* inner : block->nodes()) {
      auto match = match_layer(inner);
      if ((match && match->kind != TapKind::activation) || any_layer_inside(inner)) return true;
    }
  }
  return false;
}

}  // namespace galvani
