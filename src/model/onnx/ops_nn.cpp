// Convolutions and pooling.
#include <ATen/ATen.h>

#include "model/onnx/window.h"

namespace galvani::onnx {

namespace {

void require_floating(const Node& node) {
  if (!at::isFloatingType(node.type(0))) node.refuse("is not supported for {} tensors", c10::toString(node.type(0)));
}

bool narrow_padding(const Window& window) {
  bool narrow = window.symmetric();
  for (int i = 0; i < window.spatial && narrow; ++i) narrow = 2 * window.before[i] <= window.kernel[i];
  return narrow;
}

// Since opset 22 windows that start in the padding behind the image do not count; padding by an operator of its own
// cannot be told from the image.
void require_even_padding(const Node& node, bool ceil) {
  if (ceil && node.opset() >= 22)
    node.refuse("rounds its size up behind padding that is not symmetric, which is not supported");
}

// The sums over windows of any dilation, with zeros around the image.
std::string window_sums(Node& node, Window window, const std::string& x, bool ceil) {
  std::string padded = x;
  if (window.same != Window::Same::no) padded = pad_first(node, window, x, "0.0");
  return fmt::format("galvani_onnx.window_sums({}, {}, {}, {}, {}, {}, {})", padded, ints_text(window.kernel),
                     ints_text(window.strides), ints_text(window.dilations), ints_text(window.before),
                     ints_text(window.after), bool_text(ceil));
}

}  // namespace

Expression convolution(Node& node) {
  require_floating(node);
  bool kernel_known = node.given("kernel_shape") || node.value(1).known;
  Window window = read_window(node, kernel_of_weight(node, 1));
  if (window.same != Window::Same::no && !kernel_known)
    node.refuse("pads for a kernel whose size the file does not tell");
  std::string x = node.in(0);
  if (!window.symmetric()) x = pad_first(node, window, x, "0.0");
  return {fmt::format("torch.conv{}d({}, {}, {}, {}, {}, {}, {})", window.spatial, x, node.in(1), node.in_or_none(2),
                      ints_text(window.strides), ints_text(window.before), ints_text(window.dilations),
                      int_text(group_count(node))),
          window.spatial + 2};
}

Expression average_pool(Node& node, const std::string& x) {
  Window window = read_window(node, {});
  int rank = window.spatial + 2;
  bool ceil = node.integer("ceil_mode", 0) != 0;
  bool count_padding = node.integer("count_include_pad", 0) != 0;
  bool dilated = std::any_of(window.dilations.begin(), window.dilations.end(), [](auto step) { return step != 1; });
  if (dilated || (ceil && window.same == Window::Same::no && !narrow_padding(window))) {
    std::string sums = window_sums(node, window, x, ceil);
    Window own = window;
    std::string ones = fmt::format("torch.ones_like({})", x);
    // Padding that the file states counts as part of the image, what rounding up adds does not.
    if (count_padding) ones = pad_first(node, own, node.temporary(ones), "1.0");
    return {fmt::format("torch.div({}, {})", node.temporary(sums),
                        node.temporary(window_sums(node, own, count_padding ? ones : node.temporary(ones), ceil))),
            rank};
  }
  if (narrow_padding(window)) {
    return {fmt::format("torch.avg_pool{}d({}, {}, {}, {}, {}, {})", window.spatial, x, ints_text(window.kernel),
                        ints_text(window.strides), ints_text(window.before), bool_text(ceil), bool_text(count_padding)),
            rank};
  }
  Window copy = window;
  std::string padded = pad_first(node, window, x, "0.0");
  if (count_padding) {
    return {fmt::format("torch.avg_pool{}d({}, {}, {}, {}, {})", window.spatial, padded, ints_text(window.kernel),
                        ints_text(window.strides), ints_text(window.before), bool_text(ceil)),
            rank};
  }
  // Padding does not count: divide by the share of the window that lies on the input.
  std::string ones = pad_first(node, copy, node.temporary(fmt::format("torch.ones_like({})", x)), "0.0");
  auto pool = [&](const std::string& of) {
    return node.temporary(fmt::format("torch.avg_pool{}d({}, {}, {}, {}, {})", window.spatial, of,
                                      ints_text(window.kernel), ints_text(window.strides), ints_text(window.before),
                                      bool_text(ceil)));
  };
  std::string sums = pool(padded);
  std::string shares = pool(ones);
  return {fmt::format("torch.div({}, {})", sums, shares), rank};
}

namespace {

void emit_conv(Node& node) {
  Expression y = convolution(node);
  node.out(y.text, y.rank);
}

void emit_conv_transpose(Node& node) {
  require_floating(node);
  std::string automatic = node.text("auto_pad", "NOTSET");
  Window window = read_window(node, kernel_of_weight(node, 1));
  std::size_t n = window.kernel.size();
  std::vector<std::int64_t> extra = node.integers("output_padding", std::vector<std::int64_t>(n, 0));
  check_list(node, "output_padding", extra, n, 0);
  std::vector<std::int64_t> shape = node.integers("output_shape");
  std::string group = int_text(group_count(node));
  bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  bool fits = true;
  for (std::size_t i = 0; i < n; ++i) fits &= extra[i] < std::max(window.strides[i], window.dilations[i]);
  if (shape.empty() && !same && window.symmetric() && fits) {
    return node.out(fmt::format("torch.conv_transpose{}d({}, {}, {}, {}, {}, {}, {}, {})", window.spatial, node.in(0),
                                node.in(1), node.in_or_none(2), ints_text(window.strides), ints_text(window.before),
                                ints_text(extra), group, ints_text(window.dilations)),
                    window.spatial + 2);
  }
  // The output's size is given, or the padding differs between the sides: crop the full result.
  if (!shape.empty()) {
    if (shape.size() == n + 2) shape.erase(shape.begin(), shape.begin() + 2);
    check_list(node, "output_shape", shape, n, 1);
  }
  node.out(fmt::format("galvani_onnx.conv_transpose({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})", node.in(0),
                       node.in(1), node.in_or_none(2), ints_text(window.strides), ints_text(window.dilations),
                       ints_text(window.before), ints_text(window.after), ints_text(extra), group, ints_text(shape),
                       same ? (automatic == "SAME_UPPER" ? "1" : "2") : "0"),
           window.spatial + 2);
}

void emit_max_pool(Node& node) {
  Window window = read_window(node, {});
  at::ScalarType type = node.type(0);
  std::string x = node.in(0);
  bool ceil = node.integer("ceil_mode", 0) != 0;
  std::int64_t order = node.integer("storage_order", 0);
  // Small integers have no pooling kernel and are exact as floats.
  bool integral = at::isIntegralType(type, false);
  if (integral) x = node.temporary(fmt::format("torch.to({}, {})", x, type_text(at::kFloat)));
  if (!narrow_padding(window)) {
    if (window.same == Window::Same::no) require_even_padding(node, ceil);
    if (node.wants(1)) node.refuse("gives indices for padding that is not symmetric, which is not supported");
    x = pad_first(node, window, x, "float('-inf')");
  }
  std::string arguments = fmt::format("{}, {}, {}, {}, {}, {}", x, ints_text(window.kernel), ints_text(window.strides),
                                      ints_text(window.before), ints_text(window.dilations), bool_text(ceil));
  if (node.wants(1)) {
    return node.outs(fmt::format("galvani_onnx.max_pool_indices({}, {})", arguments, bool_text(order != 0)),
                     {type, at::kLong}, {node.rank(0), node.rank(0)});
  }
  std::string pooled = fmt::format("torch.max_pool{}d({})", window.spatial, arguments);
  if (integral) pooled = fmt::format("torch.to({}, {})", node.temporary(pooled), type_text(type));
  node.out(pooled, window.spatial + 2);
}

void emit_average_pool(Node& node) {
  require_floating(node);
  Expression y = average_pool(node, node.in(0));
  node.out(y.text, y.rank);
}

void emit_global_average_pool(Node& node) {
  require_floating(node);
  if (node.rank(0) >= 3 && node.rank(0) <= 5) {
    int spatial = node.rank(0) - 2;
    return node.out(fmt::format("torch.adaptive_avg_pool{}d({}, {})", spatial, node.in(0),
                                ints_text(std::vector<std::int64_t>(spatial, 1))),
                    node.rank(0));
  }
  node.out(fmt::format("galvani_onnx.global_average_pool({})", node.in(0)), node.rank(0));
}

void emit_lp_pool(Node& node) {
  require_floating(node);
  Window window = read_window(node, {});
  std::int64_t p = node.integer("p", 2);
  if (p < 1) node.refuse("has a norm of order {}", p);
  std::string powers = node.temporary(fmt::format("torch.pow(torch.abs({}), {})", node.in(0), p));
  std::string sums = node.temporary(window_sums(node, window, powers, node.integer("ceil_mode", 0) != 0));
  node.out(fmt::format("torch.pow({}, {})", sums, number_text(1.0 / static_cast<double>(p))), window.spatial + 2);
}

void emit_global_lp_pool(Node& node) {
  require_floating(node);
  std::int64_t p = node.integer("p", 2);
  if (p < 1) node.refuse("has a norm of order {}", p);
  node.out(fmt::format("galvani_onnx.global_lp_pool({}, {})", node.in(0), p), node.rank(0));
}

void emit_global_max_pool(Node& node) {
  node.out(fmt::format("galvani_onnx.global_max_pool({})", node.in(0)), node.rank(0));
}

void emit_max_unpool(Node& node) {
  Window window = read_window(node, {});
  std::string shape = node.has(2) ? node.integers(2) : ints_text({});
  node.out(fmt::format("galvani_onnx.max_unpool({}, {}, {}, {}, {}, {}, {})", node.in(0), node.in(1),
                       ints_text(window.kernel), ints_text(window.strides), ints_text(window.before),
                       ints_text(window.after), shape),
           node.rank(0));
}

}  // namespace

std::vector<Operator> nn_operators() {
  return {
      {"Conv", 1, kNewestOpset, emit_conv},
      {"ConvTranspose", 1, kNewestOpset, emit_conv_transpose},
      {"MaxPool", 1, kNewestOpset, emit_max_pool},
      {"AveragePool", 1, kNewestOpset, emit_average_pool},
      {"GlobalAveragePool", 1, kNewestOpset, emit_global_average_pool},
      {"GlobalMaxPool", 1, kNewestOpset, emit_global_max_pool},
      {"LpPool", 2, kNewestOpset, emit_lp_pool},
      {"GlobalLpPool", 2, kNewestOpset, emit_global_lp_pool},
      {"MaxUnpool", 9, kNewestOpset, emit_max_unpool},
  };
}

}  // namespace galvani::onnx
