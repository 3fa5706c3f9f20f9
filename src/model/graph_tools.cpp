#include "model/graph_tools.h"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include "galvani/base/error.h"

namespace galvani {
namespace {

using torch::jit::Node;
using torch::jit::Value;

constexpr std::size_t kMostOfMessage = 300;

bool one_of(const std::string& word, const std::set<std::string>& words) {
  return words.count(word) != 0;
}

// Operators that pass on a parameter in another view.
bool is_view(const std::string& op) {
  static const std::set<std::string> kViews = {"t", "transpose", "permute", "contiguous", "numpy_T", "detach"};
  return one_of(op, kViews);
}

// What the value is a view of. Parameters are transposed once or twice; a chain of views is not walked again and again.
const Value* base_of(const Value* value) {
  for (int i = 0; i < 16 && is_view(operator_name(value->node())) && !value->node()->inputs().empty(); ++i)
    value = value->node()->input(0);
  return value;
}

bool is_parameter(const Value* value) {
  value = base_of(value);
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

void cut_runs(torch::jit::Block& block) {
  constexpr int kLongestRun = 256;  // no network in use comes near it
  std::unordered_map<const Node*, int> run;
  for (Node* node : block.nodes()) {
    for (torch::jit::Block* inner : node->blocks()) cut_runs(*inner);
    int longest = 0;
    for (const Value* input : node->inputs()) {
      auto before = run.find(input->node());
      if (before != run.end() && input->uses().size() == 1) longest = std::max(longest, before->second);
    }
    if (longest == kLongestRun) {
      // Dropping nothing is no instruction, but the node is no longer next to its input.
      block.owningGraph()->create(c10::prim::Drop, 0)->insertBefore(node);
      longest = 0;
    }
    run[node] = longest + 1;
  }
}

}  // namespace

std::string first_line(const std::string& message, const std::map<std::string, std::string>& node_of) {
  auto trimmed = [](const std::string& text) {
    std::size_t start = text.find_first_not_of(" \n");
    return start == std::string::npos ? "" : text.substr(start, text.find('\n', start) - start);
  };
  // "    x3 = torch.reshape(x2, [2, 7])\n         ~~~~~~~ <--- HERE\nRuntimeError: shape '[2, 7]' is invalid"
  constexpr std::string_view kCause = "\nRuntimeError: ";
  std::size_t here = message.rfind("<--- HERE");
  std::size_t cause = message.rfind(kCause);
  if (here == std::string::npos || cause == std::string::npos || cause < here) {
    std::string line = trimmed(cause == std::string::npos ? message : message.substr(cause + kCause.size()));
    return line.empty() ? "no reason given" : printable(line, kMostOfMessage);
  }
  std::size_t marks = message.rfind('\n', here);
  std::size_t start = marks == std::string::npos ? marks : message.rfind('\n', marks - 1);
  std::string source = start == std::string::npos ? "" : trimmed(message.substr(start + 1, marks - start - 1));
  std::string reason = printable(trimmed(message.substr(cause + kCause.size())), kMostOfMessage);
  auto node = node_of.find(source.substr(0, source.find_first_of(" ,")));
  if (node != node_of.end()) return fmt::format("node '{}': {}", printable(node->second), reason);
  return source.empty() ? reason : fmt::format("{} (in '{}')", reason, printable(source));
}

std::string operator_name(const Node* node) {
  return node->kind().toUnqualString();
}

std::string attribute_path(const Value* value) {
  value = base_of(value);
  std::string path;
  while (value->node()->kind() == c10::prim::GetAttr) {
    const std::string& name = value->node()->s(c10::attr::name);
    path = path.empty() ? name : name + "." + path;
    value = value->node()->input(0);
  }
  return path;
}

bool is_constant(const Value* value) {
  return base_of(value)->node()->kind() == c10::prim::Constant;
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

torch::jit::Code interpreter_code(const std::shared_ptr<torch::jit::Graph>& graph) {
  cut_runs(*graph->block());
  return torch::jit::Code(graph, "forward");
}

void replace_call_stacks(torch::jit::Block& block, torch::jit::Function& owner) {
  for (Node* node : block.nodes()) {
    if (node->callstack())
      node->setCallStack(c10::make_intrusive<torch::jit::InlinedCallStack>(&owner, node->sourceRange()));
    for (torch::jit::Block* inner : node->blocks()) replace_call_stacks(*inner, owner);
  }
}

void check_groups(const torch::jit::Block& block, const std::string& label) {
  for (const Node* node : block.nodes()) {
    for (const torch::jit::Block* inner : node->blocks()) check_groups(*inner, label);
    if (node->maybeSchema() == nullptr || !node->hasNamedInput("groups")) continue;
    c10::optional<c10::IValue> groups = torch::jit::toIValue(node->namedInput("groups"));
    if (!groups || !groups->isInt()) bad_input("{}: has a convolution whose number of groups is computed", label);
    if (groups->toInt() < 1 || groups->toInt() > INT32_MAX)
      bad_input("{}: has a convolution in {} groups", label, groups->toInt());
  }
}

void spread_outputs(torch::jit::Graph& graph, const std::string& label) {
  std::vector<Value*> tensors;
  std::vector<Value*> open(graph.outputs().rbegin(), graph.outputs().rend());
  while (!open.empty()) {
    Value* result = open.back();
    open.pop_back();
    if (result->node()->kind() == c10::prim::TupleConstruct) {
      at::ArrayRef<Value*> parts = result->node()->inputs();
      open.insert(open.end(), parts.rbegin(), parts.rend());
    } else if (result->type()->cast<c10::TensorType>() != nullptr) {
      tensors.push_back(result);
    }
  }
  if (tensors.empty()) bad_input("{}: gives {} instead of tensors", label, graph.outputs().at(0)->type()->str());
  while (!graph.outputs().empty()) graph.eraseOutput(graph.outputs().size() - 1);
  for (Value* tensor : tensors) graph.registerOutput(tensor);
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

namespace {

// Where a layer's data and weight come in. `transposed`: the weight value is [features, neurons].
struct Operands {
  std::size_t data;
  std::size_t weight;
  bool transposed;
};

std::optional<Operands> operands_of(const Node* node) {
  std::string op = operator_name(node);
  if (op == "conv2d" || op == "_convolution" || op == "convolution" || op == "linear") return Operands{0, 1, false};
  if (op == "addmm" && is_parameter(node->input(2))) return Operands{1, 2, true};
  if (is_product(op) && product_weight(node) == node->input(1)) return Operands{0, 1, true};
  return std::nullopt;
}

// A product and the addition of its bias count as one layer, the sum's.
template <class N>
N* product_of(N* node) {
  if (operator_name(node) != "add") return node;
  for (auto* input : {node->input(0), node->input(1)}) {
    if (is_product(operator_name(input->node())) && bias_addition(input->node()) == node) return input->node();
  }
  return node;
}

std::vector<std::int64_t> constant_integers(const Value* value) {
  auto constant = torch::jit::toIValue(value);
  return constant && constant->isIntList() ? constant->toIntVector() : std::vector<std::int64_t>();
}

}  // namespace

namespace {

bool is_activation(const Node* node) {
  std::optional<LayerMatch> match = match_layer(node);
  return match && match->kind == TapKind::activation;
}

// x · f(x), written as two operators: the product; null if it is something else.
Node* gate_of(const Value* value) {
  std::vector<Node*> readers;
  for (const torch::jit::Use& use : value->uses()) readers.push_back(use.user);
  if (readers.size() != 2) return nullptr;
  for (bool swapped : {false, true}) {
    Node* function = readers[swapped ? 1 : 0];
    Node* product = readers[swapped ? 0 : 1];
    bool gate = is_activation(function) && function->output()->uses().size() == 1 &&
                function->output()->uses()[0].user == product && operator_name(product) == "mul";
    if (gate) return product;
  }
  return nullptr;
}

// Whether the node's other operand is a number or a parameter that does not add axes.
bool is_arithmetic_with_constant(const Node* node, const Value* value, const torch::jit::Module& module,
                                 std::int64_t axes) {
  static const std::set<std::string> kArithmetic = {"add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_"};
  if (!one_of(operator_name(node), kArithmetic)) return false;
  const Value* other = node->input(0) == value ? node->input(1) : node->input(0);
  if (!is_parameter(other)) return false;
  if (other->type()->cast<c10::TensorType>() == nullptr) return true;
  std::string path = attribute_path(other);
  at::Tensor parameter;
  if (!path.empty()) {
    parameter = attribute_at(module, path);
  } else if (auto constant = torch::jit::toIValue(other); constant && constant->isTensor()) {
    parameter = constant->toTensor();
  }
  return parameter.defined() && parameter.dim() <= axes;
}

// The step that takes the value as a whole and gives a value of the same shape; null if that is not what comes next.
Node* own_step(const Value* value, const torch::jit::Module& module, std::int64_t axes) {
  static const std::set<std::string> kSame = {
      "batch_norm", "instance_norm", "layer_norm", "group_norm", "dropout",    "alpha_dropout", "feature_dropout",
      "dropout_",   "threshold",     "contiguous", "clone",      "relu6_",     "hardtanh_",     "leaky_relu_",
      "elu_",       "silu_",         "sigmoid_",   "tanh_",      "hardswish_", "hardsigmoid_"};
  if (Node* gate = gate_of(value)) return gate;
  if (value->uses().size() != 1) return nullptr;
  Node* reader = value->uses()[0].user;
  if (reader->owningBlock() != value->node()->owningBlock() || reader->outputs().size() != 1) return nullptr;
  if (is_arithmetic_with_constant(reader, value, module, axes)) return reader;
  bool same = reader->input(0) == value && (is_activation(reader) || one_of(operator_name(reader), kSame));
  return same ? reader : nullptr;
}

}  // namespace

Value* end_of_layer(Value* value, const torch::jit::Module& module, std::int64_t axes) {
  while (Node* step = own_step(value, module, axes)) value = step->output();
  return value;
}

Value* layer_input(Node* node) {
  Node* product = product_of(node);
  auto operands = operands_of(product);
  if (!operands) fail(ErrorCode::internal, "the input of a layer of kind {} was asked for", operator_name(node));
  return product->input(operands->data);
}

std::optional<LinearLayer> read_linear(const Node* layer, const torch::jit::Module& module) {
  const Node* node = product_of(layer);
  auto operands = operands_of(node);
  if (!operands) return std::nullopt;
  const Value* weight = node->input(operands->weight);
  std::string path = attribute_path(weight);
  if (path.empty()) return std::nullopt;
  LinearLayer result;
  result.weight = attribute_at(module, path);
  if (!result.weight.defined() || result.weight.scalar_type() != at::kFloat) return std::nullopt;
  std::string op = operator_name(node);
  result.dense = op.find("conv") == std::string::npos;
  if (result.dense) {
    bool flipped = weight->node()->kind() == c10::aten::t || weight->node()->kind() == c10::aten::transpose;
    if (result.weight.dim() != 2) return std::nullopt;
    if (flipped != operands->transposed) result.weight = result.weight.t();
    return result;
  }
  if (result.weight.dim() != 4) return std::nullopt;
  result.stride = constant_integers(node->input(3));
  result.padding = constant_integers(node->input(4));
  result.dilation = constant_integers(node->input(5));
  bool plain = op == "conv2d";
  auto groups = torch::jit::toIValue(node->input(plain ? 6 : 8));
  auto transposed = plain ? c10::optional<c10::IValue>(false) : torch::jit::toIValue(node->input(6));
  bool known = result.stride.size() == 2 && result.padding.size() == 2 && result.dilation.size() == 2 && groups &&
               groups->isInt() && transposed && transposed->isBool() && !transposed->toBool();
  if (!known) return std::nullopt;
  result.groups = groups->toInt();
  return result;
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
