// Element-wise arithmetic, activations and matrix products.
#include <ATen/ATen.h>

#include <cmath>

#include "model/onnx/emit.h"

namespace galvani::onnx {

namespace {

void require_same_type(Node& node, int from, int to) {
  node.value(from);
  for (int i = from + 1; i < to; ++i) {
    if (node.type(i) != node.type(from))
      node.refuse("mixes the element types {} and {}", c10::toString(node.type(from)), c10::toString(node.type(i)));
  }
}

int broadcast_rank(const Node& node) {
  int rank = -1;
  for (int i = 0; i < node.input_count(); ++i) {
    if (node.rank(i) < 0) return -1;
    rank = std::max(rank, node.rank(i));
  }
  return rank;
}

// Before opset 7 the second operand was lined up with the first at an axis instead of at the end.
std::string second_operand(Node& node) {
  std::string b = node.in(1);
  if (node.opset() >= 7 || node.integer("broadcast", 0) == 0 || !node.given("axis")) return b;
  return node.temporary(
      fmt::format("galvani_onnx.align({}, {}, {})", b, node.in(0), int_text(node.integer("axis", 0))));
}

Emit binary(const char* function) {
  std::string name = function;
  return [name](Node& node) {
    require_same_type(node, 0, 2);
    std::string a = node.in(0);
    std::string b = second_operand(node);
    node.out(fmt::format("torch.{}({}, {})", name, a, b), broadcast_rank(node));
  };
}

void emit_div(Node& node) {
  require_same_type(node, 0, 2);
  std::string a = node.in(0);
  std::string b = second_operand(node);
  // ONNX divides integers as C does.
  bool integral = at::isIntegralType(node.type(0), /*includeBool=*/true);
  node.out(fmt::format(integral ? "galvani_onnx.divide_integers({}, {})" : "torch.div({}, {})", a, b),
           broadcast_rank(node));
}

void emit_pow(Node& node) {
  std::string a = node.in(0);
  std::string b = second_operand(node);
  // The result has the base's type, whatever the exponent's is.
  std::string power = fmt::format("torch.pow({}, {})", a, b);
  if (node.type(0) != node.type(1)) {
    power = fmt::format("torch.to({}, {})", node.temporary(power), type_text(node.type(0)));
  }
  node.out(power, broadcast_rank(node));
}

Emit fold_left(const char* function) {
  std::string name = function;
  return [name](Node& node) {
    require_same_type(node, 0, node.input_count());
    std::vector<std::string> inputs = node.all_inputs();
    if (inputs.size() == 1) return node.same_as(0);
    std::string total = inputs.at(0);
    for (std::size_t i = 1; i + 1 < inputs.size(); ++i)
      total = node.temporary(fmt::format("torch.{}({}, {})", name, total, inputs[i]));
    node.out(fmt::format("torch.{}({}, {})", name, total, inputs.back()), broadcast_rank(node));
  };
}

void emit_mean(Node& node) {
  require_same_type(node, 0, node.input_count());
  std::vector<std::string> inputs = node.all_inputs();
  std::string total = inputs.at(0);
  for (std::size_t i = 1; i < inputs.size(); ++i)
    total = node.temporary(fmt::format("torch.add({}, {})", total, inputs[i]));
  node.out(fmt::format("torch.div({}, {})", total, inputs.size()), broadcast_rank(node));
}

void emit_clip(Node& node) {
  std::string low = "None";
  std::string high = "None";
  if (node.opset() < 11) {
    if (node.given("min")) low = number_text(node.real("min", 0));
    if (node.given("max")) high = number_text(node.real("max", 0));
  } else {
    if (node.has(1)) low = node.number(1);
    if (node.has(2)) high = node.number(2);
  }
  if (low == "None" && high == "None") return node.same_as(0);
  node.out(fmt::format("torch.clamp({}, {}, {})", node.in(0), low, high), node.rank(0));
}

// One float attribute: `torch.<function>(x, <attribute>)`.
Emit with_real(const char* format, const char* attribute, double fallback) {
  std::string pattern = format;
  std::string name = attribute;
  return [pattern, name, fallback](Node& node) {
    std::string value = number_text(node.real(name.c_str(), fallback));
    node.out(fmt::format(fmt::runtime(pattern), node.in(0), value), node.rank(0));
  };
}

void emit_selu(Node& node) {
  std::string alpha = number_text(node.real("alpha", 1.67326319217681884765625));
  std::string gamma = number_text(node.real("gamma", 1.05070102214813232421875));
  node.out(fmt::format("torch.elu({}, {}, {})", node.in(0), alpha, gamma), node.rank(0));
}

void emit_hard_sigmoid(Node& node) {
  double alpha = node.real("alpha", 0.2);
  double beta = node.real("beta", 0.5);
  if (std::abs(alpha - 1.0 / 6.0) < 1e-7 && beta == 0.5)
    return node.out(fmt::format("torch.hardsigmoid({})", node.in(0)), node.rank(0));
  std::string scaled = node.temporary(fmt::format("torch.mul({}, {})", node.in(0), number_text(alpha)));
  std::string shifted = node.temporary(fmt::format("torch.add({}, {})", scaled, number_text(beta)));
  node.out(fmt::format("torch.clamp({}, 0.0, 1.0)", shifted), node.rank(0));
}

void emit_prelu(Node& node) {
  require_same_type(node, 0, 2);
  std::string x = node.in(0);
  std::string slope = node.in(1);
  // Before opset 7 the slopes were one per channel.
  if (node.opset() < 7) slope = node.temporary(fmt::format("galvani_onnx.align({}, {}, 1)", slope, x));
  std::string scaled = node.temporary(fmt::format("torch.mul({}, {})", x, slope));
  std::string positive = node.temporary(fmt::format("torch.gt({}, 0)", x));
  node.out(fmt::format("torch.where({}, {}, {})", positive, x, scaled), node.rank(0));
}

void emit_shrink(Node& node) {
  node.out(fmt::format("galvani_onnx.shrink({}, {}, {})", node.in(0), number_text(node.real("bias", 0)),
                       number_text(node.real("lambd", 0.5))),
           node.rank(0));
}

void emit_gelu(Node& node) {
  std::string mode = node.text("approximate", "none");
  if (mode != "none" && mode != "tanh") node.refuse("has an unknown attribute value for 'approximate'");
  node.out(fmt::format("torch.gelu({}, approximate='{}')", node.in(0), mode == "tanh" ? "tanh" : "none"), node.rank(0));
}

void emit_mod(Node& node) {
  require_same_type(node, 0, 2);
  // fmod=1 takes the dividend's sign as C does, otherwise the result has the divisor's.
  std::string function = node.integer("fmod", 0) != 0 ? "torch.fmod" : "torch.remainder";
  std::string a = node.in(0);
  std::string b = node.in(1);
  if (at::isIntegralType(node.type(0), /*includeBool=*/true))
    b = node.temporary(fmt::format("galvani_onnx.modulus({})", b));
  node.out(fmt::format("{}({}, {})", function, a, b), broadcast_rank(node));
}

void emit_bit_shift(Node& node) {
  require_same_type(node, 0, 2);
  std::string direction = node.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") node.refuse("has no direction");
  node.out(fmt::format(direction == "LEFT" ? "torch.bitwise_left_shift({}, {})" : "torch.bitwise_right_shift({}, {})",
                       node.in(0), node.in(1)),
           broadcast_rank(node));
}

void emit_matmul(Node& node) {
  require_same_type(node, 0, 2);
  int rank = node.rank(0) >= 2 && node.rank(1) >= 2 ? std::max(node.rank(0), node.rank(1)) : -1;
  node.out(fmt::format("torch.matmul({}, {})", node.in(0), node.in(1)), rank);
}

void emit_gemm(Node& node) {
  require_same_type(node, 0, node.has(2) ? 3 : 2);
  bool left = node.integer("transA", 0) != 0;
  bool right = node.integer("transB", 0) != 0;
  double alpha = node.real("alpha", 1);
  double beta = node.real("beta", 1);
  bool plain = alpha == 1 && (!node.has(2) || beta == 1);
  std::string a = node.in(0);
  std::string b = node.in(1);
  if (left) a = node.temporary(fmt::format("torch.t({})", a));
  bool vector_bias = !node.has(2) || node.rank(2) == 1;
  bool floating = at::isFloatingType(node.type(0));
  if (right && plain && vector_bias && floating)
    return node.out(fmt::format("torch.linear({}, {}, {})", a, b, node.in_or_none(2)), 2);
  if (right) b = node.temporary(fmt::format("torch.t({})", b));
  auto scale = [&](double factor) {
    return floating ? number_text(factor) : int_text(static_cast<std::int64_t>(factor));
  };
  if (node.has(2))
    return node.out(
        fmt::format("torch.addmm({}, {}, {}, beta={}, alpha={})", node.in(2), a, b, scale(beta), scale(alpha)), 2);
  if (plain) return node.out(fmt::format("torch.mm({}, {})", a, b), 2);
  std::string product = node.temporary(fmt::format("torch.mm({}, {})", a, b));
  node.out(fmt::format("torch.mul({}, {})", product, scale(alpha)), 2);
}

void emit_einsum(Node& node) {
  // The equation crosses as numbers: text of the file has no business in source.
  std::vector<std::int64_t> codes;
  for (char letter : node.text("equation", "")) {
    if (!(std::isalpha(static_cast<unsigned char>(letter)) || std::string(",.-> ").find(letter) != std::string::npos))
      node.refuse("has an equation with an unexpected character");
    codes.push_back(letter);
  }
  node.out(fmt::format("galvani_onnx.einsum({}, {})", list_text(node.all_inputs()), ints_text(codes)));
}

Emit bitwise(const char* function) {
  std::string name = function;
  return [name](Node& node) {
    require_same_type(node, 0, 2);
    if (!at::isIntegralType(node.type(0), false)) node.refuse("needs integers");
    node.out(fmt::format("torch.{}({}, {})", name, node.in(0), node.in(1)), broadcast_rank(node));
  };
}

void emit_bitwise_not(Node& node) {
  if (!at::isIntegralType(node.type(0), false)) node.refuse("needs integers");
  node.out(fmt::format("torch.bitwise_not({})", node.in(0)), node.rank(0));
}

Operator unary(const char* name, const char* format, bool foldable = false) {
  return {name, 1, kNewestOpset, expression(format), foldable, false};
}

}  // namespace

std::vector<Operator> math_operators() {
  return {
      unary("Abs", "torch.abs({0})", true),
      unary("Acos", "torch.acos({0})"),
      unary("Acosh", "torch.acosh({0})"),
      unary("Asin", "torch.asin({0})"),
      unary("Asinh", "torch.asinh({0})"),
      unary("Atan", "torch.atan({0})"),
      unary("Atanh", "torch.atanh({0})"),
      unary("Ceil", "torch.ceil({0})", true),
      unary("Cos", "torch.cos({0})", true),
      unary("Cosh", "torch.cosh({0})"),
      unary("Erf", "torch.erf({0})"),
      unary("Exp", "torch.exp({0})", true),
      unary("Floor", "torch.floor({0})", true),
      unary("HardSwish", "torch.hardswish({0})"),
      unary("Log", "torch.log({0})", true),
      unary("Mish", "torch.mish({0})"),
      unary("Neg", "torch.neg({0})", true),
      unary("Reciprocal", "torch.reciprocal({0})", true),
      unary("Relu", "torch.relu({0})"),
      unary("Round", "torch.round({0})", true),
      unary("Sigmoid", "torch.sigmoid({0})"),
      unary("Sign", "torch.sign({0})", true),
      unary("Sin", "torch.sin({0})", true),
      unary("Sinh", "torch.sinh({0})"),
      unary("Softplus", "torch.softplus({0})"),
      unary("Softsign", "torch.div({0}, torch.add(torch.abs({0}), 1))"),
      unary("Sqrt", "torch.sqrt({0})", true),
      unary("Tan", "torch.tan({0})"),
      unary("Tanh", "torch.tanh({0})"),
      {"Add", 1, kNewestOpset, binary("add"), true},
      {"Sub", 1, kNewestOpset, binary("sub"), true},
      {"Mul", 1, kNewestOpset, binary("mul"), true},
      {"Div", 1, kNewestOpset, emit_div, true},
      {"Pow", 1, kNewestOpset, emit_pow, true},
      {"Mod", 10, kNewestOpset, emit_mod, true},
      {"BitShift", 11, kNewestOpset, emit_bit_shift, true},
      {"BitwiseAnd", 18, kNewestOpset, bitwise("bitwise_and"), true},
      {"BitwiseOr", 18, kNewestOpset, bitwise("bitwise_or"), true},
      {"BitwiseXor", 18, kNewestOpset, bitwise("bitwise_xor"), true},
      {"BitwiseNot", 18, kNewestOpset, emit_bitwise_not, true},
      {"Sum", 6, kNewestOpset, fold_left("add"), true},
      {"Max", 6, kNewestOpset, fold_left("maximum"), true},
      {"Min", 6, kNewestOpset, fold_left("minimum"), true},
      {"Mean", 6, kNewestOpset, emit_mean, true},
      {"Clip", 6, kNewestOpset, emit_clip, true},
      {"Elu", 6, kNewestOpset, with_real("torch.elu({}, {})", "alpha", 1)},
      {"Celu", 12, kNewestOpset, with_real("torch.celu({}, {})", "alpha", 1)},
      {"LeakyRelu", 6, kNewestOpset, with_real("torch.leaky_relu({}, {})", "alpha", 0.01)},
      {"ThresholdedRelu", 10, kNewestOpset, with_real("torch.threshold({}, {}, 0.0)", "alpha", 1)},
      {"Selu", 6, kNewestOpset, emit_selu},
      {"HardSigmoid", 6, kNewestOpset, emit_hard_sigmoid},
      {"PRelu", 6, kNewestOpset, emit_prelu},
      {"Shrink", 9, kNewestOpset, emit_shrink},
      {"Gelu", 20, kNewestOpset, emit_gelu},
      {"MatMul", 1, kNewestOpset, emit_matmul},
      {"Gemm", 6, kNewestOpset, emit_gemm},
      {"Einsum", 12, kNewestOpset, emit_einsum},
  };
}

}  // namespace galvani::onnx
