#include "model/fused/fuse.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include <algorithm>
#include <optional>
#include <string>

#include "model/fused/layer.h"
#include "model/fused/recompose.h"
#include "model/graph_tools.h"

namespace galvani {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

c10::Symbol call_symbol() {
  static const torch::jit::RegisterOperators registered({torch::jit::Operator(
      "galvani::fused_layer(Any layer, Tensor x, Tensor? sum) -> Tensor",
      [](torch::jit::Stack& stack) {
        at::Tensor sum = torch::jit::pop(stack).toOptional<at::Tensor>().value_or(at::Tensor());
        at::Tensor x = torch::jit::pop(stack).toTensor();
        c10::IValue layer = torch::jit::pop(stack);
        TORCH_CHECK(layer.isCapsule(), "galvani::fused_layer is not for use in model files");
        torch::jit::push(stack, static_cast<const FusedLayer&>(*layer.toCapsule()).run(x, sum));
      },
      c10::AliasAnalysisKind::FROM_SCHEMA)});
  return c10::Symbol::fromQualString("galvani::fused_layer");
}

template <class T>
std::optional<T> constant(const Value* value) {
  auto known = torch::jit::constant_as<T>(const_cast<Value*>(value));
  return known ? std::optional<T>(*known) : std::nullopt;
}

std::vector<std::int64_t> two_integers(const Value* value) {
  auto known = torch::jit::toIValue(value);
  if (!known || !known->isIntList()) return {};
  std::vector<std::int64_t> list = known->toIntVector();
  if (list.size() == 1) list.push_back(list[0]);
  return list.size() == 2 ? list : std::vector<std::int64_t>();
}

bool is_one(const Value* value) {
  auto known = torch::jit::toIValue(value);
  return known && known->isScalar() && known->toScalar().toDouble() == 1;
}

bool is_none(const Value* value) {
  auto known = torch::jit::toIValue(value);
  return known && known->isNone();
}

class Fuser {
 public:
  Fuser(Graph& graph, const torch::jit::Module& module, const std::set<const Node*>& observers)
      : graph_(graph), module_(module), observers_(observers) {}

  Fusion run() {
    recompose(graph_, module_);
    std::vector<Node*> nodes(graph_.nodes().begin(), graph_.nodes().end());
    for (Node* node : nodes) {
      if (gone_.count(node) != 0 || !node->kind().is_aten() || node->outputs().size() != 1) continue;
      std::optional<LayerMatch> match = match_layer(node);
      if (match && match->kind != TapKind::activation) {
        fuse_layer(node, match->kind == TapKind::convolution);
      } else if (operator_name(node) == "batch_norm") {
        fuse_norm(node);
      } else if (operator_name(node) == "max_pool2d" || operator_name(node) == "avg_pool2d") {
        fuse_pooling(node);
      }
    }
    return std::move(fusion_);
  }

 private:
  // A float tensor that the module holds; undefined for any other value.
  at::Tensor tensor_of(const Value* value) const {
    at::Tensor tensor;
    if (value->node()->kind() == c10::prim::GetAttr) {
      tensor = attribute_at(module_, attribute_path(value));
    } else if (auto known = torch::jit::toIValue(value); known && known->isTensor()) {
      tensor = known->toTensor();
    }
    return tensor.defined() && tensor.scalar_type() == at::kFloat ? tensor : at::Tensor();
  }

  // Reads a tensor of `size` values, or none at all; false if it is something else.
  bool read_vector(const Value* value, std::int64_t size, at::Tensor& result) const {
    if (is_none(value)) return true;
    result = tensor_of(value);
    return result.defined() && result.dim() == 1 && result.size(0) == size;
  }

  bool read_bias(const Node* node, std::int64_t neurons, at::Tensor& bias) const {
    std::string op = operator_name(node);
    if (op == "add") {
      const Value* other = tensor_of(node->input(0)).defined() ? node->input(0) : node->input(1);
      return is_one(node->input(2)) && read_vector(other, neurons, bias);
    }
    if (op == "addmm")
      return is_one(node->input(3)) && is_one(node->input(4)) && read_vector(node->input(0), neurons, bias);
    if (op == "linear" || op.find("conv") != std::string::npos) return read_vector(node->input(2), neurons, bias);
    return true;  // a bare product
  }

  std::optional<FusedNorm> read_norm(const Node* node) const {
    if (operator_name(node) != "batch_norm" || constant<bool>(node->input(5)).value_or(true)) return std::nullopt;
    FusedNorm norm;
    norm.mean = tensor_of(node->input(3));
    auto epsilon = constant<double>(node->input(7));
    if (!norm.mean.defined() || norm.mean.dim() != 1 || !epsilon) return std::nullopt;
    norm.epsilon = *epsilon;
    std::int64_t channels = norm.mean.size(0);
    bool known = read_vector(node->input(4), channels, norm.variance) && norm.variance.defined() &&
                 read_vector(node->input(1), channels, norm.weight) && read_vector(node->input(2), channels, norm.bias);
    return known ? std::optional<FusedNorm>(norm) : std::nullopt;
  }

  std::optional<FusedActivation> read_activation(const Node* node) const {
    using Kind = FusedActivation::Kind;
    std::string op = operator_name(node);
    if (!node->kind().is_aten()) return std::nullopt;
    if (op == "relu") return FusedActivation{Kind::relu, 0, 0};
    if (op == "relu6") return FusedActivation{Kind::clip, 0, 6};
    auto number = [&](std::size_t i) -> std::optional<double> {
      auto known = torch::jit::toIValue(node->input(i));
      if (!known || !known->isScalar()) return std::nullopt;
      return known->toScalar().toDouble();
    };
    if (op == "leaky_relu" && number(1)) return FusedActivation{Kind::leaky_relu, *number(1), 0};
    if ((op == "hardtanh" || op == "clamp") && number(1) && number(2) && *number(1) <= *number(2))
      return FusedActivation{Kind::clip, *number(1), *number(2)};
    return std::nullopt;
  }

  // The only reader of a value; null if there are several, or the graph gives it out.
  Node* only_reader(const Value* value) const {
    if (value->uses().size() != 1) return nullptr;
    Node* user = value->uses()[0].user;
    return user->owningBlock() == graph_.block() && user != graph_.return_node() ? user : nullptr;
  }

  // What is done to a value until someone else needs it.
  struct Tail {
    std::vector<Node*> nodes;
    Value* sum = nullptr;
    FusedActivation activation;
  };

  Tail read_tail(Value* value, bool may_add) const {
    Tail tail;
    Node* next = only_reader(value);
    if (may_add && next != nullptr && next->kind() == c10::aten::add && is_one(next->input(2))) {
      Value* other = next->input(0) == value ? next->input(1) : next->input(0);
      if (other->type()->cast<c10::TensorType>() != nullptr) {
        tail.sum = other;
        tail.nodes.push_back(next);
        next = only_reader(next->output());
      }
    }
    if (next == nullptr) return tail;
    if (auto activation = read_activation(next)) {
      tail.activation = *activation;
      tail.nodes.push_back(next);
    }
    return tail;
  }

  // Puts the call in place of the last of `nodes`, and removes them all.
  void replace(const std::vector<Node*>& nodes, Value* x, Value* sum, const FusedLayerPtr& layer) {
    Value* input = graph_.insertInput(graph_.inputs().size())->setType(c10::AnyType::get());
    fusion_.layers.push_back(c10::IValue::make_capsule(layer));
    Node* last = nodes.back();
    torch::jit::WithInsertPoint here(last);
    Value* addend = sum != nullptr ? sum : graph_.insertConstant(c10::IValue());
    Node* call = graph_.create(call_symbol(), {input, x, addend}, 1);
    call->insertBefore(last);
    call->setSourceRange(nodes.front()->sourceRange());
    call->output()->setType(c10::TensorType::get());
    last->output()->replaceAllUsesWith(call->output());
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      gone_.insert(*node);
      (*node)->destroy();
    }
  }

  void depends_on(std::initializer_list<at::Tensor> tensors) {
    for (const at::Tensor& tensor : tensors) {
      if (tensor.defined()) fusion_.weights.push_back(tensor);
    }
  }
  void depends_on(const FusedNorm& norm) { depends_on({norm.weight, norm.bias, norm.mean, norm.variance}); }

  void fuse_layer(Node* node, bool convolution) {
    std::optional<LinearLayer> layer = read_linear(node, module_);
    if (!layer || layer->dense == convolution) return;
    std::int64_t neurons = layer->weight.size(0);
    at::Tensor bias;
    if (!read_bias(node, neurons, bias)) return;
    // oneDNN's activations make numbers of what is none.
    if (!at::isfinite(layer->weight).all().item<bool>()) return;
    if (convolution && node->input(1)->node()->kind() != c10::prim::GetAttr) return;
    Value* x = layer_input(node);
    std::vector<Node*> nodes = {node};
    // The product whose bias is added goes with the addition.
    if (operator_name(node) == "add") nodes.insert(nodes.begin(), product_in(node, x));
    std::optional<FusedNorm> norm;
    if (convolution) {
      Node* next = only_reader(node->output());
      if (next != nullptr) norm = read_norm(next);
      if (norm && norm->mean.size(0) != neurons) norm.reset();
      if (norm) nodes.push_back(next);
    }
    Tail tail = read_tail(nodes.back()->output(), /*may_add=*/convolution);
    nodes.insert(nodes.end(), tail.nodes.begin(), tail.nodes.end());
    depends_on({layer->weight, bias});
    if (norm) depends_on(*norm);
    if (convolution) {
      // Every pixel of the input is read for several of the result.
      bool takes_sum = tail.sum != nullptr && tail.sum != x && may_overwrite(tail.sum, nodes);
      return replace(nodes, x, tail.sum, fused_convolution(*layer, bias, norm, tail.activation, takes_sum));
    }
    Value* image = flattened(x);
    replace(nodes, image != nullptr ? image : x, nullptr, fused_dense(*layer, bias, tail.activation, image != nullptr));
  }

  static Node* product_in(Node* sum, const Value* x) {
    for (Value* input : sum->inputs()) {
      for (const Value* part : input->node()->inputs()) {
        if (part == x) return input->node();
      }
    }
    return nullptr;
  }

  // What flatten(image, 1, -1) flattens; null if the value is another.
  static Value* flattened(Value* value) {
    Node* node = value->node();
    if (node->kind() != c10::aten::flatten) return nullptr;
    bool all = constant<std::int64_t>(node->input(1)) == 1 && constant<std::int64_t>(node->input(2)) == -1;
    return all ? node->input(0) : nullptr;
  }

  // Whether `nodes`, which become one layer, may overwrite a value: a layer of ours made it, and all others that read
  // it have done so before and kept nothing of it, being layers of ours, too, or observers.
  bool may_overwrite(const Value* value, const std::vector<Node*>& nodes) const {
    if (value->node()->kind() != call_symbol()) return false;
    return std::all_of(value->uses().begin(), value->uses().end(), [&](const torch::jit::Use& use) {
      if (std::find(nodes.begin(), nodes.end(), use.user) != nodes.end()) return true;
      bool harmless = use.user->kind() == call_symbol() || observers_.count(use.user) != 0;
      return harmless && use.user->isBefore(nodes.back());
    });
  }

  void fuse_norm(Node* node) {
    std::optional<FusedNorm> norm = read_norm(node);
    if (!norm) return;
    Value* x = node->input(0);
    // Elsewhere than behind a layer of ours the value need not be an image, nor lie channels last.
    if (x->node()->kind() != call_symbol()) return;
    std::vector<Node*> nodes = {node};
    Tail tail = read_tail(node->output(), /*may_add=*/true);
    nodes.insert(nodes.end(), tail.nodes.begin(), tail.nodes.end());
    depends_on(*norm);
    replace(nodes, x, tail.sum, fused_norm(*norm, tail.activation, may_overwrite(x, nodes)));
  }

  void fuse_pooling(Node* node) {
    bool maximum = operator_name(node) == "max_pool2d";
    FusedPooling pooling{FusedPooling::Kind::maximum, two_integers(node->input(1)), two_integers(node->input(2)),
                         two_integers(node->input(3))};
    auto rounds_up = constant<bool>(node->input(maximum ? 5 : 4));
    if (pooling.kernel.empty() || pooling.stride.empty() || pooling.padding.empty() || rounds_up.value_or(true)) return;
    for (std::size_t i = 0; i < 2; ++i) {
      if (pooling.kernel[i] < 1 || pooling.stride[i] < 1 || pooling.padding[i] < 0 ||
          2 * pooling.padding[i] > pooling.kernel[i])
        return;
    }
    if (maximum) {
      if (two_integers(node->input(4)) != std::vector<std::int64_t>{1, 1}) return;
    } else {
      auto counts = constant<bool>(node->input(5));
      if (!counts || !is_none(node->input(6))) return;
      pooling.kind = *counts ? FusedPooling::Kind::average : FusedPooling::Kind::average_without_padding;
    }
    replace({node}, node->input(0), nullptr, fused_pooling(pooling));
  }

  Graph& graph_;
  const torch::jit::Module& module_;
  const std::set<const Node*>& observers_;
  std::set<const Node*> gone_;
  Fusion fusion_;
};

}  // namespace

Fusion fuse(Graph& graph, const torch::jit::Module& module, const std::set<const Node*>& observers) {
  return Fuser(graph, module, observers).run();
}

}  // namespace galvani
