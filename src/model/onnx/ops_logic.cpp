// Comparisons, boolean logic and changes of element type.
#include <ATen/ATen.h>

#include "model/onnx/emit.h"
#include "model/onnx/tensors.h"

namespace galvani::onnx {

namespace {

// Boolean results have one type whatever the inputs are; before opset 7 the second operand was lined up at an axis.
Emit boolean(const char* function) {
  std::string name = function;
  return [name](Node& node) {
    std::string a = node.in(0);
    std::string b = node.in(1);
    if (node.opset() < 7 && node.integer("broadcast", 0) != 0 && node.given("axis"))
      b = node.temporary(fmt::format("galvani_onnx.align({}, {}, {})", b, a, int_text(node.integer("axis", 0))));
    node.out(fmt::format("torch.{}({}, {})", name, a, b), at::kBool, std::max(node.rank(0), node.rank(1)));
  };
}

void emit_not(Node& node) {
  node.out(fmt::format("torch.logical_not({})", node.in(0)), at::kBool, node.rank(0));
}

void emit_is_nan(Node& node) {
  node.out(fmt::format("torch.isnan({})", node.in(0)), at::kBool, node.rank(0));
}

void emit_is_inf(Node& node) {
  bool positive = node.integer("detect_positive", 1) != 0;
  bool negative = node.integer("detect_negative", 1) != 0;
  if (!positive && !negative) node.refuse("detects neither sign of infinity, which is not supported");
  const char* function = positive && negative ? "isinf" : positive ? "isposinf" : "isneginf";
  node.out(fmt::format("torch.{}({})", function, node.in(0)), at::kBool, node.rank(0));
}

void emit_where(Node& node) {
  if (node.type(1) != node.type(2)) node.refuse("chooses between two element types");
  int rank = std::max({node.rank(0), node.rank(1), node.rank(2)});
  node.out(fmt::format("torch.where({}, {}, {})", node.in(0), node.in(1), node.in(2)), node.type(1), rank);
}

// To a type that `type` only holds.
void emit_narrow(Node& node, int target, at::ScalarType type) {
  if (type_name(target) == "float8e8m0") node.refuse("converts to the element type float8e8m0, which is not supported");
  node.given("round_mode");
  node.out(fmt::format("galvani_onnx.round_narrow({}, {}, {})", node.in(0), target,
                       bool_text(node.integer("saturate", 1) != 0)),
           type, node.rank(0));
  node.results()[0].element = target;
}

void emit_cast(Node& node) {
  int target = static_cast<int>(node.integer("to", 0));
  for (const char* of_float8 : {"saturate", "round_mode"}) node.given(of_float8);
  std::optional<at::ScalarType> type = held_type(target);
  if (type && !scalar_type(target)) return emit_narrow(node, target, *type);
  if (!type) node.refuse("converts to the element type {}, which is not supported", type_name(target));
  node.out(fmt::format("torch.to({}, {})", node.in(0), type_text(*type)), *type, node.rank(0));
}

void emit_cast_like(Node& node) {
  at::ScalarType type = node.type(1);
  if (node.value(1).element != 0) return emit_narrow(node, node.value(1).element, type);
  for (const char* of_float8 : {"saturate", "round_mode"}) node.given(of_float8);
  node.out(fmt::format("torch.to({}, {})", node.in(0), type_text(type)), type, node.rank(0));
}

void emit_bit_cast(Node& node) {
  int target = static_cast<int>(node.integer("to", 0));
  std::optional<at::ScalarType> type = scalar_type(target);
  if (!type) node.refuse("reads bits as the element type {}, which is not supported", type_name(target));
  if (c10::elementSize(*type) != c10::elementSize(node.type(0)))
    node.refuse("reads bits of {} as {}", c10::toString(node.type(0)), c10::toString(*type));
  // A bool that is neither 0 nor 1 is undefined behaviour.
  if (*type == at::kBool) node.refuse("reads bits as bool, which is not supported");
  node.out(fmt::format("galvani_onnx.bit_cast({}, {})", node.in(0), type_text(*type)), *type, node.rank(0));
}

}  // namespace

std::vector<Operator> logic_operators() {
  return {
      {"And", 1, kNewestOpset, boolean("logical_and"), true, true},
      {"Or", 1, kNewestOpset, boolean("logical_or"), true, true},
      {"Xor", 1, kNewestOpset, boolean("logical_xor"), true, true},
      {"Equal", 1, kNewestOpset, boolean("eq"), true, true},
      {"Greater", 1, kNewestOpset, boolean("gt"), true, true},
      {"GreaterOrEqual", 12, kNewestOpset, boolean("ge"), true, true},
      {"Less", 1, kNewestOpset, boolean("lt"), true, true},
      {"LessOrEqual", 12, kNewestOpset, boolean("le"), true, true},
      {"Not", 1, kNewestOpset, emit_not, true, true},
      {"IsNaN", 9, kNewestOpset, emit_is_nan, true},
      {"IsInf", 10, kNewestOpset, emit_is_inf, true},
      {"Where", 9, kNewestOpset, emit_where, true, true},
      {"Cast", 6, kNewestOpset, emit_cast, true, true},
      {"BitCast", 26, kNewestOpset, emit_bit_cast, false, true},
      {"CastLike", 15, kNewestOpset, emit_cast_like, true, true},
  };
}

}  // namespace galvani::onnx
