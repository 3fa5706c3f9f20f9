// The operators of com.microsoft that ONNX Runtime's quantiser and its graph optimisations write.
#include <ATen/ATen.h>

#include "model/onnx/window.h"

namespace galvani::onnx {

namespace {

// Of a quantised tensor, three inputs: integers, scale and zero point. One scale and zero point serve all of it.
std::string dequantized(Node& node, int i) {
  return node.temporary(
      fmt::format("galvani_onnx.dequantize({}, {}, {}, 1)", node.in(i), node.in(i + 1, false), node.in_or_none(i + 2)));
}

// Output 0 from a floating-point expression, with its scale and zero point in inputs i and i + 1.
void out_quantized(Node& node, const std::string& expression, int i, at::ScalarType type, int rank) {
  if (type != at::kByte && type != at::kChar)
    node.refuse("quantises to {}, which is not supported", c10::toString(type));
  node.out(fmt::format("galvani_onnx.quantize({}, {}, {}, 1, {})", node.temporary(expression), node.in(i, false),
                       node.in_or_none(i + 1), type_text(type)),
           type, rank);
}

Emit quantized_binary(const char* function) {
  std::string name = function;
  return [name](Node& node) {
    std::string a = dequantized(node, 0);
    std::string b = dequantized(node, 3);
    int rank = node.rank(0) < 0 || node.rank(3) < 0 ? -1 : std::max(node.rank(0), node.rank(3));
    out_quantized(node, fmt::format("torch.{}({}, {})", name, a, b), 6, node.type(0), rank);
  };
}

void emit_quantized_sigmoid(Node& node) {
  out_quantized(node, fmt::format("torch.sigmoid({})", dequantized(node, 0)), 3, node.type(0), node.rank(0));
}

void emit_quantized_leaky_relu(Node& node) {
  std::string slope = number_text(node.real("alpha", 0.01));
  out_quantized(node, fmt::format("torch.leaky_relu({}, {})", dequantized(node, 0), slope), 3, node.type(0),
                node.rank(0));
}

void emit_quantized_softmax(Node& node) {
  // The version of the Softmax that it stands for decides what the axis means.
  std::int64_t opset = node.integer("opset", node.opset());
  std::int64_t axis = node.integer("axis", opset >= 13 ? -1 : 1);
  out_quantized(node,
                fmt::format("{}({}, {})", opset >= 13 ? "torch.softmax" : "galvani_onnx.softmax_flattened",
                            dequantized(node, 0), int_text(axis)),
                3, node.type(0), node.rank(0));
}

void emit_quantized_concat(Node& node) {
  if (!node.given("axis")) node.refuse("has no axis");
  std::vector<std::string> parts;
  for (int i = 2; i < node.input_count(); i += 3) parts.push_back(dequantized(node, i));
  out_quantized(node, fmt::format("torch.cat({}, {})", list_text(parts), int_text(node.integer("axis", 0))), 0,
                node.type(1), node.rank(2));
}

// The channels of [n, ..., c] come second, or what was second comes last again.
std::string moved_channels(Node& node, const std::string& x, int rank, bool last) {
  if (rank < 3) node.refuse("has channels last in a tensor whose number of axes the file does not tell");
  std::vector<std::int64_t> order{0};
  if (!last) order.push_back(rank - 1);
  for (int i = last ? 2 : 1; i < (last ? rank : rank - 1); ++i) order.push_back(i);
  if (last) order.push_back(1);
  return node.temporary(fmt::format("torch.permute({}, {})", x, ints_text(order)));
}

void emit_quantized_pool(Node& node, bool global) {
  std::string x = dequantized(node, 0);
  bool channels_last = node.integer("channels_last", 0) != 0;
  if (channels_last) x = moved_channels(node, x, node.rank(0), false);
  Expression y =
      global ? Expression{fmt::format("galvani_onnx.global_average_pool({})", x), node.rank(0)} : average_pool(node, x);
  if (channels_last) y.text = moved_channels(node, node.temporary(y.text), node.rank(0), true);
  out_quantized(node, y.text, 3, node.type(0), y.rank);
}

void emit_quantized_mean(Node& node) {
  bool keep = node.integer("keepdims", 1) != 0;
  std::vector<std::int64_t> axes = node.integers("axes");
  int rank = keep ? node.rank(0) : -1;
  out_quantized(node, fmt::format("torch.mean({}, {}, {})", dequantized(node, 0), ints_text(axes), bool_text(keep)), 3,
                node.type(0), rank);
}

void emit_quantized_where(Node& node) {
  std::string x = dequantized(node, 1);
  std::string y = dequantized(node, 4);
  int rank = std::min({node.rank(0), node.rank(1), node.rank(4)});
  if (rank >= 0) rank = std::max({node.rank(0), node.rank(1), node.rank(4)});
  out_quantized(node, fmt::format("torch.where({}, {}, {})", node.in(0), x, y), 7, node.type(1), rank);
}

void emit_quantized_gemm(Node& node) {
  std::string a = node.in(0);
  std::string b = node.in(3);
  if (node.integer("transA", 0) != 0) a = node.temporary(fmt::format("torch.t({})", a));
  if (node.integer("transB", 0) != 0) b = node.temporary(fmt::format("torch.t({})", b));
  std::string sums = node.temporary(
      fmt::format("galvani_onnx.matmul_integer({}, {}, {}, {})", a, b, node.in_or_none(2), node.in_or_none(5)));
  if (node.has(6)) sums = node.temporary(fmt::format("torch.add({}, {})", sums, node.in(6)));
  std::string scale =
      node.temporary(fmt::format("torch.mul({}, {})", node.in(1, false), number_text(node.real("alpha", 1))));
  if (!node.has(7)) {
    std::string both = node.temporary(fmt::format("torch.mul({}, {})", scale, node.in(4, false)));
    return node.out(fmt::format("torch.mul({}, {})", sums, both), node.type(1), 2);
  }
  at::ScalarType type = node.has(8) ? node.type(8) : at::kByte;
  node.out(fmt::format("galvani_onnx.requantize({}, {}, {}, {}, {}, {}, -1)", sums, scale, node.in(4, false),
                       node.in(7, false), node.in_or_none(8), type_text(type)),
           type, 2);
}

// a [m, k] float times b [k, n] quantised; a is quantised on the way as ONNX Runtime does it.
void emit_dynamic_quantized_matmul(Node& node) {
  std::string quantized = node.temporary(fmt::format("galvani_onnx.dynamic_quantize({})", node.in(0)));
  std::string sums = node.temporary(fmt::format("galvani_onnx.matmul_integer({}[0], {}, {}[2], {})", quantized,
                                                node.in(1), quantized, node.in_or_none(3)));
  std::string scale = node.temporary(fmt::format("torch.mul({}[1], {})", quantized, node.in(2, false)));
  std::string product = fmt::format("torch.mul({}, {})", sums, scale);
  if (node.has(4)) product = fmt::format("torch.add({}, {})", node.temporary(product), node.in(4));
  node.out(product, node.rank(0));
}

void emit_matmul_to_float(Node& node) {
  std::string sums = node.temporary(fmt::format("galvani_onnx.matmul_integer({}, {}, {}, {})", node.in(0), node.in(1),
                                                node.in_or_none(4), node.in_or_none(5)));
  std::string scale = node.temporary(fmt::format("torch.mul({}, {})", node.in(2, false), node.in(3, false)));
  std::string product = fmt::format("torch.mul({}, {})", sums, scale);
  if (node.has(6)) product = fmt::format("torch.add({}, {})", node.temporary(product), node.in(6));
  node.out(product, node.type(2));
}

void emit_matmul_bits(Node& node) {
  std::int64_t bits = node.integer("bits", 4), block = node.integer("block_size", 0), k = node.integer("K", 0);
  if ((bits != 2 && bits != 4 && bits != 8) || block < 1 || k < 1)
    node.refuse("has weights of {} bits in blocks of {}, which is not supported", bits, block);
  if (node.has(4)) node.refuse("orders its groups by an index, which is not supported");
  node.integer("N", 0);
  node.integer("accuracy_level", 0);
  std::string weight =
      node.temporary(fmt::format("galvani_onnx.unpack_blocks({}, {}, {}, {}, {}, {})", node.in(1), node.in(2, false),
                                 node.in_or_none(3), bits, int_text(block), int_text(k)));
  node.out(fmt::format("torch.linear({}, {}, {})", node.in(0), weight, node.in_or_none(5)), node.rank(0));
}

void emit_fused_matmul(Node& node) {
  if (node.integer("transBatchA", 0) != 0 || node.integer("transBatchB", 0) != 0)
    node.refuse("transposes batches, which is not supported");
  auto side = [&](int i, const char* transposed) {
    std::string text = node.in(i);
    return node.integer(transposed, 0) != 0 ? node.temporary(fmt::format("torch.transpose({}, -1, -2)", text)) : text;
  };
  std::string a = side(0, "transA");
  std::string b = side(1, "transB");
  double alpha = node.real("alpha", 1);
  std::string product = fmt::format("torch.matmul({}, {})", a, b);
  if (alpha != 1) product = fmt::format("torch.mul({}, {})", node.temporary(product), number_text(alpha));
  node.out(product, node.rank(0) >= 2 && node.rank(1) >= 2 ? std::max(node.rank(0), node.rank(1)) : -1);
}

// `parameters` in the order in which the attributes of the activation stand in its own operator.
std::string activated(const Node& node, const std::string& x, const std::vector<double>& parameters) {
  std::string name = node.text("activation", "");
  auto parameter = [&](std::size_t i, double fallback) {
    return number_text(i < parameters.size() ? parameters[i] : fallback);
  };
  if (name.empty()) return x;
  if (name == "Relu") return fmt::format("torch.relu({})", x);
  if (name == "Tanh") return fmt::format("torch.tanh({})", x);
  if (name == "Sigmoid") return fmt::format("torch.sigmoid({})", x);
  if (name == "LeakyRelu") return fmt::format("torch.leaky_relu({}, {})", x, parameter(0, 0.01));
  if (name == "Clip") return fmt::format("torch.clamp({}, {}, {})", x, parameter(0, -3.4e38), parameter(1, 3.4e38));
  if (name == "HardSigmoid")
    return fmt::format("torch.clamp(torch.add(torch.mul({}, {}), {}), 0.0, 1.0)", x, parameter(0, 0.2),
                       parameter(1, 0.5));
  node.refuse("has the activation '{}', which is not supported", printable(name));
}

void emit_fused_conv(Node& node) {
  Expression y = convolution(node);
  if (node.has(3)) y.text = fmt::format("torch.add({}, {})", node.temporary(y.text), node.in(3));
  std::vector<double> parameters = node.reals("activation_params");
  if (!node.text("activation", "").empty()) y.text = activated(node, node.temporary(y.text), parameters);
  node.out(y.text, y.rank);
}

void emit_fused_gemm(Node& node) {
  std::string a = node.in(0);
  std::string b = node.in(1);
  if (node.integer("transA", 0) != 0) a = node.temporary(fmt::format("torch.t({})", a));
  if (node.integer("transB", 0) != 0) b = node.temporary(fmt::format("torch.t({})", b));
  std::string alpha = number_text(node.real("alpha", 1)), beta = number_text(node.real("beta", 1));
  std::string y = node.has(2) ? fmt::format("torch.addmm({}, {}, {}, beta={}, alpha={})", node.in(2), a, b, beta, alpha)
                              : fmt::format("torch.mul(torch.mm({}, {}), {})", a, b, alpha);
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (node.given(name)) parameters.push_back(node.real(name, 0));
  }
  node.given("activation_gamma");
  node.out(activated(node, node.temporary(y), parameters), 2);
}

Emit gelu(const char* approximate) {
  std::string mode = approximate;
  return [mode](Node& node) {
    std::string x = node.in(0);
    if (node.has(1)) x = node.temporary(fmt::format("torch.add({}, {})", x, node.in(1)));
    node.out(fmt::format("torch.gelu({}, approximate='{}')", x, mode), node.rank(0));
  };
}

void emit_quick_gelu(Node& node) {
  std::string x = node.in(0);
  std::string gate =
      node.temporary(fmt::format("torch.sigmoid(torch.mul({}, {}))", x, number_text(node.real("alpha", 1.702))));
  node.out(fmt::format("torch.mul({}, {})", x, gate), node.rank(0));
}

// Input, skip and bias together, then normalised; that sum is the fourth output.
void emit_skip_norm(Node& node, bool simplified) {
  if (node.wants(1) || node.wants(2)) node.refuse("gives statistics, which is not supported");
  int bias = simplified ? 3 : 4;
  std::string sum = node.temporary(fmt::format("torch.add({}, {})", node.in(0), node.in(1)), "o");
  if (node.has(bias)) sum = node.temporary(fmt::format("torch.add({}, {})", sum, node.in(bias)), "o");
  std::string epsilon = number_text(node.real("epsilon", 1e-12));
  if (simplified)
    node.out(fmt::format("galvani_onnx.rms_norm({}, {}, -1, {})", sum, node.in(2), epsilon), node.rank(0));
  else
    node.out(
        fmt::format("galvani_onnx.layer_norm({}, {}, {}, -1, {})[0]", sum, node.in(2), node.in_or_none(3), epsilon),
        node.rank(0));
  if (!node.wants(3)) return;
  Value& result = node.results().at(3);
  result.variable = sum;
  result.type = node.type(0);
  result.rank = node.rank(0);
}

void emit_bias_add(Node& node) {
  std::string sum = node.temporary(fmt::format("torch.add({}, {})", node.in(0), node.in(1)));
  node.out(fmt::format("torch.add({}, {})", sum, node.in(2)), node.rank(0));
}

// What is added to the scores for a mask of [b, keys] ones and zeros, and for a bias of its own; "None" for neither.
std::string score_bias(Node& node, int mask, int bias) {
  std::string text = node.has(bias) ? node.in(bias) : "None";
  if (!node.has(mask)) return text;
  if (node.rank(mask) != 2) node.refuse("has a mask that is not one of samples and keys, which is not supported");
  std::string hidden =
      node.temporary(fmt::format("torch.rsub(torch.to({}, {}), 1)", node.in(mask, false), type_text(at::kFloat)));
  std::string added = node.temporary(fmt::format("torch.unsqueeze(torch.unsqueeze(torch.mul({}, {}), 1), 1)", hidden,
                                                 number_text(node.real("mask_filter_value", -10000))));
  return text == "None" ? added : node.temporary(fmt::format("torch.add({}, {})", added, text));
}

void out_attention(Node& node, const std::string& q, const std::string& k, const std::string& v,
                   const std::string& bias) {
  std::int64_t heads = node.integer("num_heads", 0);
  std::string scale = node.given("scale") ? number_text(node.real("scale", 1)) : "None";
  bool causal = node.integer("unidirectional", 0) != 0;
  if (node.wants(1) || node.wants(2) || node.wants(3)) node.refuse("gives its state, which is not supported");
  node.out(
      fmt::format("galvani_onnx.attention({}, {}, {}, {}, None, None, None, {}, {}, {}, {}, 0.0, 0, -1, -1, -1)[0]", q,
                  k, v, bias, int_text(heads), int_text(heads), scale, bool_text(causal)),
      node.rank(0));
}

void require_absent(const Node& node, std::initializer_list<int> inputs) {
  for (int i : inputs) {
    if (node.has(i)) node.refuse("has an input {}, which is not supported", i);
  }
}

// Attention whose input is multiplied by the weights of queries, keys and values side by side.
void emit_self_attention(Node& node) {
  require_absent(node, {4, 6});
  if (node.integer("do_rotary", 0) != 0) node.refuse("turns its keys, which is not supported");
  std::string all = node.temporary(fmt::format("torch.matmul({}, {})", node.in(0), node.in(1)));
  if (node.has(2)) all = node.temporary(fmt::format("torch.add({}, {})", all, node.in(2)));
  std::vector<std::int64_t> sizes = node.integers("qkv_hidden_sizes");
  if (!sizes.empty() && sizes.size() != 3) node.refuse("has {} values in 'qkv_hidden_sizes'", sizes.size());
  std::string parts =
      node.temporary(sizes.empty() ? fmt::format("torch.chunk({}, 3, -1)", all)
                                   : fmt::format("torch.split_with_sizes({}, {}, -1)", all, ints_text(sizes)));
  out_attention(node, parts + "[0]", parts + "[1]", parts + "[2]", score_bias(node, 3, 5));
}

void emit_multi_head_attention(Node& node) {
  require_absent(node, {6, 7, 8, 9});
  std::string q = node.in(0);
  if (!node.has(1) || !node.has(2) || node.rank(0) > 3 || node.rank(1) > 3 || node.rank(2) > 3)
    node.refuse("has queries, keys and values in one tensor or by heads, which is not supported");
  std::string k = node.in(1), v = node.in(2);
  if (node.has(3)) {
    std::string bias = node.in(3);
    std::string first = node.temporary(fmt::format("torch.size({}, 2)", q));
    auto add = [&](const std::string& x, const std::string& from, const std::string& to) {
      return node.temporary(fmt::format("torch.add({}, torch.slice({}, 0, {}, {}))", x, bias, from, to));
    };
    std::string second = node.temporary(fmt::format("{} + torch.size({}, 2)", first, k));
    q = add(q, "0", first);
    k = add(k, first, second);
    v = add(v, second, int_text(INT64_MAX));
  }
  out_attention(node, q, k, v, score_bias(node, 4, 5));
}

// The operator of the default domain of that name.
Operator as_default(const char* name) {
  bool known = false;
  Operator row = *find_operator(name, kNewestOpset, known);
  row.foldable = false;
  return row;
}

}  // namespace

std::vector<Operator> microsoft_operators() {
  return {
      as_default("QuantizeLinear"),
      as_default("DequantizeLinear"),
      as_default("Gelu"),
      as_default("Trilu"),
      {"QLinearAdd", 1, kNewestOpset, quantized_binary("add")},
      {"QLinearMul", 1, kNewestOpset, quantized_binary("mul")},
      {"QLinearSigmoid", 1, kNewestOpset, emit_quantized_sigmoid},
      {"QLinearLeakyRelu", 1, kNewestOpset, emit_quantized_leaky_relu},
      {"QLinearSoftmax", 1, kNewestOpset, emit_quantized_softmax},
      {"QLinearConcat", 1, kNewestOpset, emit_quantized_concat},
      {"QLinearAveragePool", 1, kNewestOpset, [](Node& node) { emit_quantized_pool(node, false); }},
      {"QLinearGlobalAveragePool", 1, kNewestOpset, [](Node& node) { emit_quantized_pool(node, true); }},
      {"QLinearReduceMean", 1, kNewestOpset, emit_quantized_mean},
      {"QLinearWhere", 1, kNewestOpset, emit_quantized_where},
      {"QGemm", 1, kNewestOpset, emit_quantized_gemm},
      {"DynamicQuantizeMatMul", 1, kNewestOpset, emit_dynamic_quantized_matmul},
      {"MatMulIntegerToFloat", 1, kNewestOpset, emit_matmul_to_float},
      {"MatMulNBits", 1, kNewestOpset, emit_matmul_bits},
      {"FusedMatMul", 1, kNewestOpset, emit_fused_matmul},
      {"TransposeMatMul", 1, kNewestOpset, emit_fused_matmul},
      {"FusedConv", 1, kNewestOpset, emit_fused_conv},
      {"FusedGemm", 1, kNewestOpset, emit_fused_gemm},
      {"BiasGelu", 1, kNewestOpset, gelu("none")},
      {"FastGelu", 1, kNewestOpset, gelu("tanh")},
      {"QuickGelu", 1, kNewestOpset, emit_quick_gelu},
      {"Attention", 1, kNewestOpset, emit_self_attention},
      {"MultiHeadAttention", 1, kNewestOpset, emit_multi_head_attention},
      {"BiasAdd", 1, kNewestOpset, emit_bias_add},
      {"SkipLayerNormalization", 1, kNewestOpset, [](Node& node) { emit_skip_norm(node, false); }},
      {"SkipSimplifiedLayerNormalization", 1, kNewestOpset, [](Node& node) { emit_skip_norm(node, true); }},
  };
}

}  // namespace galvani::onnx
