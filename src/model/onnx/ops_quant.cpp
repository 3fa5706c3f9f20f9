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

void emit_quantize(Node& node) {
  // The type's ONNX number: that of the zero point, or what the file states.
  int target = static_cast<int>(node.integer("output_dtype", 0));
  if (node.has(2)) {
    int zero = node.value(2).element != 0 ? node.value(2).element : onnx_type(node.type(2));
    if (target != 0 && target != zero)
      node.refuse("has the element type {} as its 'output_dtype' and a zero point of {}", type_name(target),
                  type_name(zero));
    target = zero;
  }
  if (target == 0) target = ::onnx::TensorProto::UINT8;
  int precision = static_cast<int>(node.integer("precision", 0));
  if (precision != 0 && precision != ::onnx::TensorProto::FLOAT && precision != ::onnx::TensorProto::DOUBLE &&
      scalar_type(precision) != node.type(1))
    node.refuse("has the element type {} as its 'precision', which is not supported", type_name(precision));
  std::string scale = node.in(1, false);
  if (precision != 0 && scalar_type(precision) != node.type(1))
    scale = node.temporary(fmt::format("torch.to({}, {})", scale, type_text(*scalar_type(precision))));
  std::int64_t block = node.integer("block_size", 0);
  bool saturate = node.integer("saturate", 1) != 0;
  std::string axis = int_text(node.integer("axis", 1));
  std::optional<at::ScalarType> type = held_type(target);
  bool small = type == at::kByte || type == at::kChar;
  if (scalar_type(target) && small && block == 0) {
    return node.out(fmt::format("galvani_onnx.quantize({}, {}, {}, {}, {})", node.in(0), scale, node.in_or_none(2),
                                axis, type_text(*type)),
                    *type, node.rank(0));
  }
  if (!type || (scalar_type(target) && !small && *type != at::kShort) || type_name(target) == "float8e8m0" ||
      *type == at::kLong || block < 0)
    node.refuse("quantises to {}, which is not supported", type_name(target));
  node.out(fmt::format("galvani_onnx.quantize_to({}, {}, {}, {}, {}, {}, {})", node.in(0), scale, node.in_or_none(2),
                       axis, int_text(block), target, bool_text(saturate)),
           *type, node.rank(0));
  if (!scalar_type(target)) node.results()[0].element = target;
}

void emit_dequantize(Node& node) {
  at::ScalarType type = node.type(1);
  if (int wanted = static_cast<int>(node.integer("output_dtype", 0)); wanted != 0) {
    std::optional<at::ScalarType> stated = scalar_type(wanted);
    if (!stated || !at::isFloatingType(*stated))
      node.refuse("has the element type {} as its 'output_dtype', which is not supported", type_name(wanted));
    type = *stated;
  }
  std::int64_t block = node.integer("block_size", 0);
  std::string axis = int_text(node.integer("axis", 1));
  if (block == 0 && type == node.type(1)) {
    return node.out(
        fmt::format("galvani_onnx.dequantize({}, {}, {}, {})", node.in(0), node.in(1, false), node.in_or_none(2), axis),
        type, node.rank(0));
  }
  if (block < 0) node.refuse("has blocks of {}", block);
  std::string y = node.temporary(fmt::format("galvani_onnx.dequantize_blocks({}, {}, {}, {}, {})", node.in(0),
                                             node.in(1, false), node.in_or_none(2), axis, int_text(block)));
  node.out(fmt::format("torch.to({}, {})", y, type_text(type == at::kHalf ? at::kFloat : type)), type, node.rank(0));
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
