#include "model/integers.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace galvani {
namespace {

namespace jit = torch::jit;

constexpr const char* kDivide = "galvani::floordiv";
constexpr const char* kRemainder = "galvani::remainder";

// Rounded down, as Python does it.
std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  TORCH_CHECK(b != 0, "division of a whole number by zero");
  TORCH_CHECK(b != -1 || a != std::numeric_limits<std::int64_t>::min(), "a whole number is too large to be divided");
  std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t remainder_of(std::int64_t a, std::int64_t b) {
  TORCH_CHECK(b != 0, "remainder of a whole number by zero");
  if (b == -1) return 0;
  std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <std::int64_t (*Operation)(std::int64_t, std::int64_t)>
void run_operation(jit::Stack& stack) {
  std::int64_t b = jit::pop(stack).toInt();
  std::int64_t a = jit::pop(stack).toInt();
  jit::push(stack, Operation(a, b));
}

jit::Operator operation(const char* name, jit::Operation run) {
  return {std::string(name) + "(int a, int b) -> int", std::move(run), c10::AliasAnalysisKind::PURE_FUNCTION};
}

const jit::RegisterOperators guarded_operators({operation(kDivide, run_operation<floor_divide>),
                                                operation(kRemainder, run_operation<remainder_of>)});

const char* replacement(const jit::Node& node) {
  if (node.inputs().size() != 2) return nullptr;
  for (const jit::Value* input : node.inputs()) {
    if (input->type()->kind() != c10::TypeKind::IntType) return nullptr;
  }
  return node.kind() == c10::aten::floordiv ? kDivide : node.kind() == c10::aten::remainder ? kRemainder : nullptr;
}

}  // namespace

void guard_integers(jit::Graph& graph) {
  std::vector<jit::Block*> open{graph.block()};
  while (!open.empty()) {
    jit::Block* block = open.back();
    open.pop_back();
    for (auto it = block->nodes().begin(); it != block->nodes().end();) {
      jit::Node* node = *it++;
      open.insert(open.end(), node->blocks().begin(), node->blocks().end());
      const char* name = replacement(*node);
      if (name == nullptr) continue;
      jit::Node* guarded = graph.create(c10::Symbol::fromQualString(name), node->inputs());
      guarded->output()->setType(c10::IntType::get());
      guarded->setSourceRange(node->sourceRange());
      guarded->insertBefore(node);
      node->output()->replaceAllUsesWith(guarded->output());
      node->destroy();
    }
  }
}

}  // namespace galvani
