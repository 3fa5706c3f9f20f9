#include "model/fused/recompose.h"

#include <torch/csrc/jit/ir/constants.h>

#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "model/graph_tools.h"

namespace galvani {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

class Recomposer {
 public:
  Recomposer(Graph& graph, const torch::jit::Module& module) : graph_(graph), module_(module) {}

  void run() {
    std::vector<Node*> nodes(graph_.nodes().begin(), graph_.nodes().end());
    // From behind: what is put together goes, and lies before the operator that completes it.
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (gone_.count(*node) != 0) continue;
      if ((*node)->kind() == c10::aten::add) layer_norm(*node);
      if (gone_.count(*node) == 0 && (*node)->kind() == c10::aten::mul) gelu(*node);
    }
  }

 private:
  at::Tensor tensor_of(const Value* value) const {
    if (value->node()->kind() == c10::prim::GetAttr) return attribute_at(module_, attribute_path(value));
    auto known = torch::jit::toIValue(value);
    return known && known->isTensor() ? known->toTensor() : at::Tensor();
  }

  std::optional<double> number(const Value* value) const {
    if (auto known = torch::jit::toIValue(value); known && known->isScalar()) return known->toScalar().toDouble();
    at::Tensor tensor = tensor_of(value);
    if (!tensor.defined() || tensor.numel() != 1) return std::nullopt;
    return tensor.item().toDouble();
  }

  bool is(const Value* value, double wanted) const {
    auto found = number(value);
    return found && std::abs(*found - wanted) < 1e-6;
  }

  // The node of this kind that makes the value, read by `readers` places only; null if it is another.
  static Node* made_by(const Value* value, c10::Symbol kind, std::size_t readers = 1) {
    Node* node = const_cast<Node*>(value->node());
    return node->kind() == kind && value->uses().size() == readers ? node : nullptr;
  }

  // The operand of a sum or product that is made by an operator of this kind, and the other one.
  static Node* operand(const Node* node, c10::Symbol kind, Value*& other) {
    for (std::size_t i : {0, 1}) {
      if (Node* found = made_by(node->input(i), kind)) {
        other = const_cast<Value*>(node->input(1 - i));
        return found;
      }
    }
    return nullptr;
  }

  // A sum a + b, without a factor.
  bool is_sum(const Node* node) const { return node->kind() == c10::aten::add && is(node->input(2), 1); }

  static bool over_last_axis(const Node* mean) {
    auto axes = torch::jit::toIValue(mean->input(1));
    auto keeps = torch::jit::constant_as<bool>(mean->input(2));
    return axes && axes->isIntList() && axes->toIntVector() == std::vector<std::int64_t>{-1} && keeps.value_or(false);
  }

  void replace(Node* last, Node* by, const std::vector<Node*>& nodes) {
    by->insertBefore(last);
    by->setSourceRange(last->sourceRange());
    by->output()->setType(last->output()->type());
    last->output()->replaceAllUsesWith(by->output());
    for (Node* node : nodes) {
      gone_.insert(node);
      node->destroy();
    }
  }

  // d = x - mean(x); d / sqrt(mean(d²) + ε) · weight + bias
  void layer_norm(Node* last) {
    Value *bias = nullptr, *weight = nullptr;
    if (!is_sum(last)) return;
    Node* scaled = operand(last, c10::aten::mul, bias);
    if (scaled == nullptr) return;
    Node* divided = operand(scaled, c10::aten::div, weight);
    if (divided == nullptr || divided->inputs().size() != 2) return;
    at::Tensor scale = tensor_of(weight);
    at::Tensor shift = tensor_of(bias);
    if (!scale.defined() || !shift.defined() || scale.dim() != 1 || shift.sizes() != scale.sizes()) return;
    Node* root = made_by(divided->input(1), c10::aten::sqrt);
    Node* raised = root == nullptr ? nullptr : made_by(root->input(0), c10::aten::add);
    if (raised == nullptr || !is_sum(raised)) return;
    Value* small = nullptr;
    Node* variance = operand(raised, c10::aten::mean, small);
    if (variance == nullptr || !over_last_axis(variance) || !number(small)) return;
    Node* square = made_by(variance->input(0), c10::aten::pow);
    if (square == nullptr || !is(square->input(1), 2)) return;
    Value* difference = square->input(0);
    Node* centred = made_by(difference, c10::aten::sub, 2);
    if (centred == nullptr || divided->input(0) != difference || !is(centred->input(2), 1)) return;
    Node* mean = made_by(centred->input(1), c10::aten::mean);
    if (mean == nullptr || !over_last_axis(mean) || mean->input(0) != centred->input(0)) return;

    torch::jit::WithInsertPoint here(last);
    Value* shape = graph_.insertConstant(std::vector<std::int64_t>{scale.size(0)});
    Value* epsilon = graph_.insertConstant(*number(small));
    Value* no = graph_.insertConstant(false);
    Node* norm =
        graph_.create(c10::aten::layer_norm, {centred->input(0), shape, weight, bias, epsilon, no}, /*num_outputs=*/1);
    replace(last, norm, {last, scaled, divided, root, raised, variance, square, centred, mean});
  }

  // x · (1 + erf(x / √2)) · ½
  void gelu(Node* last) {
    Value* half = nullptr;
    Node* product = operand(last, c10::aten::mul, half);
    if (product == nullptr || !is(half, 0.5)) return;
    Value *x = nullptr, *one = nullptr;
    Node* sum = operand(product, c10::aten::add, x);
    if (sum == nullptr || !is_sum(sum)) return;
    Node* erf = operand(sum, c10::aten::erf, one);
    if (erf == nullptr || !is(one, 1)) return;
    Node* divided = made_by(erf->input(0), c10::aten::div);
    if (divided == nullptr || divided->inputs().size() != 2 || divided->input(0) != x ||
        !is(divided->input(1), std::sqrt(2.0)))
      return;
    torch::jit::WithInsertPoint here(last);
    Value* exact = graph_.insertConstant("none");
    Node* whole = graph_.create(c10::aten::gelu, {x, exact}, /*num_outputs=*/1);
    replace(last, whole, {last, product, sum, erf, divided});
  }

  Graph& graph_;
  const torch::jit::Module& module_;
  std::set<const Node*> gone_;
};

}  // namespace

void recompose(Graph& graph, const torch::jit::Module& module) {
  Recomposer(graph, module).run();
}

}  // namespace galvani
