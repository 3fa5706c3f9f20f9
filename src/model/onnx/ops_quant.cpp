// Linear quantisation: 8-bit integers with a scale and a zero point.
#include <ATen/ATen.h>

#include "model/onnx/tensors.h"
#include "model/onnx/window.h"

namespace galvani::onnx {

namespace {

at::ScalarType zero_point_type(const Node& node, int input) {
  if (!node.has(input)) return at::kByte;
  at::ScalarType type = node.type(input);
  if (type != at::kByte && type != at::kChar)
    node.refuse("quantises to {}, which is not supported", c10::toString(type));
  return type;
}

// Opset 21 added scales of blocks, opset 23 the type of what is computed.
void require_plain_scale(const Node& node) {
  if (node.integer("block_size", 0) != 0) node.refuse("has a scale for each block, which is not supported");
}

// An attribute that names an element type agrees with the one that follows from the inputs.
void require_type(const Node& node, const char* name, at::ScalarType type) {
  auto wanted = static_cast<int>(node.integer(name, 0));
  if (wanted != 0 && scalar_type(wanted) != type)
    node.refuse("has the element type {} as its '{}', which is not supported", type_name(wanted), name);
}

void emit_quantize(Node& node) {
  at::ScalarType type = zero_point_type(node, 2);
  auto stated = static_cast<int>(node.integer("output_dtype", 0));
  if (!node.has(2) && scalar_type(stated) == at::kChar) type = at::kChar;
  require_type(node, "output_dtype", type);
  require_type(node, "precision", node.type(1));
  require_plain_scale(node);
  node.integer("saturate", 1);
  node.out(fmt::format("galvani_onnx.quantize({}, {}, {}, {}, {})", node.in(0), node.in(1, false), node.in_or_none(2),
                       int_text(node.integer("axis", 1)), type_text(type)),
           type, node.rank(0));
}

void emit_dequantize(Node& node) {
  require_type(node, "output_dtype", node.type(1));
  require_plain_scale(node);
  node.out(fmt::format("galvani_onnx.dequantize({}, {}, {}, {})", node.in(0), node.in(1, false), node.in_or_none(2),
                       int_text(node.integer("axis", 1))),
           node.type(1), node.rank(0));
}

void emit_dynamic_quantize(Node& node) {
  node.outs(fmt::format("galvani_onnx.dynamic_quantize({})", node.in(0)), {at::kByte, at::kFloat, at::kByte},
            {node.rank(0), 0, 0});
}

void emit_matmul_integer(Node& node) {
  node.out(fmt::format("galvani_onnx.matmul_integer({}, {}, {}, {})", node.in(0), node.in(1), node.in_or_none(2),
                       node.in_or_none(3)),
           at::kInt);
}

void emit_qlinear_matmul(Node& node) {
  at::ScalarType type = zero_point_type(node, 7);
  std::string product = node.temporary(
      fmt::format("galvani_onnx.matmul_integer({}, {}, {}, {})", node.in(0), node.in(3), node.in(2), node.in(5)));
  node.out(fmt::format("galvani_onnx.requantize({}, {}, {}, {}, {}, {}, -1)", product, node.in(1, false),
                       node.in(4, false), node.in(6, false), node.in(7), type_text(type)),
           type);
}

std::string integer_conv(Node& node, int x, int w, int x_zero, int w_zero) {
  Window window = read_window(node, kernel_of_weight(node, w));
  if (!window.symmetric() && window.same != Window::Same::no && !node.given("kernel_shape"))
    node.refuse("pads for a kernel whose size the file does not tell");
  // Integers of this size are exact as doubles.
  auto centred = [&](int value, int zero, const char* function) {
    return node.temporary(fmt::format("galvani_onnx.{}({}, {})", function, node.in(value), node.in_or_none(zero)));
  };
  std::string image = centred(x, x_zero, "centre");
  std::string kernel = centred(w, w_zero, "centre_rows");
  if (!window.symmetric()) image = pad_first(node, window, image, "0.0");
  return node.temporary(fmt::format("torch.conv{}d({}, {}, None, {}, {}, {}, {})", window.spatial, image, kernel,
                                    ints_text(window.strides), ints_text(window.before), ints_text(window.dilations),
                                    int_text(group_count(node))));
}

void emit_conv_integer(Node& node) {
  node.out(fmt::format("torch.to({}, {})", integer_conv(node, 0, 1, 2, 3), type_text(at::kInt)), at::kInt,
           node.rank(0));
}

void emit_qlinear_conv(Node& node) {
  at::ScalarType type = zero_point_type(node, 7);
  std::string sums = integer_conv(node, 0, 3, 2, 5);
  if (node.has(8))
    sums = node.temporary(fmt::format("torch.add({}, galvani_onnx.align({}, {}, 1))", sums, node.in(8), sums));
  node.out(fmt::format("galvani_onnx.requantize({}, {}, {}, {}, {}, {}, 1)", sums, node.in(1, false), node.in(4, false),
                       node.in(6, false), node.in(7), type_text(type)),
           type, node.rank(0));
}

}  // namespace

std::vector<Operator> quant_operators() {
  return {
      {"QuantizeLinear", 10, kNewestOpset, emit_quantize},
      {"DequantizeLinear", 10, kNewestOpset, emit_dequantize},
      {"DynamicQuantizeLinear", 11, kNewestOpset, emit_dynamic_quantize},
      {"MatMulInteger", 10, kNewestOpset, emit_matmul_integer},
      {"QLinearMatMul", 10, kNewestOpset, emit_qlinear_matmul},
      {"ConvInteger", 10, kNewestOpset, emit_conv_integer},
      {"QLinearConv", 10, kNewestOpset, emit_qlinear_conv},
  };
}

}  // namespace galvani::onnx
