// Convolutions and pooling.
#include <ATen/ATen.h>

#include "model/onnx/emit.h"

namespace galvani::onnx {

namespace {

// The sliding window of a convolution or a pool, defaults filled in.
struct Window {
  int spatial = 0;
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> before;  // padding at the start and the end of every axis
  std::vector<std::int64_t> after;
  enum class Same { no, upper, lower } same = Same::no;  // padding that only the input's size decides

  bool symmetric() const { return same == Same::no && before == after; }
};

void check_list(const Node& node, const char* name, const std::vector<std::int64_t>& values, std::size_t length,
                std::int64_t least) {
  if (values.size() != length) node.refuse("has {} values in '{}' instead of {}", values.size(), name, length);
  for (std::int64_t value : values) {
    if (value < least || value > (std::int64_t{1} << 31)) node.refuse("has the value {} in '{}'", value, name);
  }
}

Window read_window(const Node& node, std::vector<std::int64_t> kernel) {
  Window window;
  window.kernel = node.integers("kernel_shape", std::move(kernel));
  std::size_t n = window.kernel.size();
  if (n < 1 || n > 3) node.refuse("has {} spatial dimensions; supported are 1 to 3", n);
  window.spatial = static_cast<int>(n);
  check_list(node, "kernel_shape", window.kernel, n, 1);
  window.strides = node.integers("strides", std::vector<std::int64_t>(n, 1));
  check_list(node, "strides", window.strides, n, 1);
  window.dilations = node.integers("dilations", std::vector<std::int64_t>(n, 1));
  check_list(node, "dilations", window.dilations, n, 1);
  std::vector<std::int64_t> pads = node.integers("pads", std::vector<std::int64_t>(2 * n, 0));
  check_list(node, "pads", pads, 2 * n, 0);
  std::string automatic = node.text("auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    window.same = automatic == "SAME_UPPER" ? Window::Same::upper : Window::Same::lower;
  } else if (automatic == "VALID") {
    std::fill(pads.begin(), pads.end(), 0);
  } else if (automatic != "NOTSET" && !automatic.empty()) {
    node.refuse("has an unknown value of 'auto_pad'");
  }
  window.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n));
  window.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(n), pads.end());
  // With stride 1 and an odd reach the padding is the same on both sides whatever the input's size is.
  if (window.same != Window::Same::no) {
    bool fixed = true;
    for (std::size_t i = 0; i < n; ++i) fixed &= window.strides[i] == 1 && (window.kernel[i] - 1) * window.dilations[i] % 2 == 0;
    if (fixed) {
      window.same = Window::Same::no;
      for (std::size_t i = 0; i < n; ++i) window.before[i] = window.after[i] = (window.kernel[i] - 1) * window.dilations[i] / 2;
    }
  }
  return window;
}

std::string window_text(const Window& window) {
  return fmt::format("{}, {}, {}", ints_text(window.kernel), ints_text(window.strides), ints_text(window.dilations));
}

// Pads the input by an operation of its own and clears the window's padding.
std::string pad_first(Node& node, Window& window, const std::string& x, const std::string& fill) {
  std::string padded;
  if (window.same != Window::Same::no) {
    padded = node.temporary(fmt::format("galvani_onnx.pad_same({}, {}, {}, {})", x, window_text(window),
                                        bool_text(window.same == Window::Same::upper), fill));
  } else {
    std::vector<std::int64_t> amounts;
    for (int i = window.spatial - 1; i >= 0; --i) {
      amounts.push_back(window.before[i]);
      amounts.push_back(window.after[i]);
    }
    padded = node.temporary(fmt::format("torch.constant_pad_nd({}, {}, {})", x, ints_text(amounts), fill));
  }
  window.same = Window::Same::no;
  std::fill(window.before.begin(), window.before.end(), 0);
  std::fill(window.after.begin(), window.after.end(), 0);
  return padded;
}

std::vector<std::int64_t> kernel_of_weight(const Node& node, int input) {
  const Value& weight = node.value(input);
  if (weight.known && weight.known->dim() > 2) return weight.known->sizes().slice(2).vec();
  // Without a known weight only the number of spatial dimensions can be told.
  int rank = weight.rank >= 0 ? weight.rank : node.rank(0);
  if (rank < 3) node.refuse("convolves by a weight whose number of dimensions the file does not tell");
  return std::vector<std::int64_t>(rank - 2, 1);
}

void require_floating(const Node& node) {
  if (!at::isFloatingType(node.type(0))) node.refuse("is not supported for {} tensors", c10::toString(node.type(0)));
}

void emit_conv(Node& node) {
  require_floating(node);
  bool kernel_known = node.given("kernel_shape") || node.value(1).known;
  Window window = read_window(node, kernel_of_weight(node, 1));
  if (window.same != Window::Same::no && !kernel_known) node.refuse("pads for a kernel whose size the file does not tell");
  std::string x = node.in(0);
  if (!window.symmetric()) x = pad_first(node, window, x, "0.0");
  node.out(fmt::format("torch.conv{}d({}, {}, {}, {}, {}, {}, {})", window.spatial, x, node.in(1), node.in_or_none(2),
                       ints_text(window.strides), ints_text(window.before), ints_text(window.dilations),
                       int_text(node.integer("group", 1))),
           window.spatial + 2);
}

void emit_conv_transpose(Node& node) {
  require_floating(node);
  std::string automatic = node.text("auto_pad", "NOTSET");
  Window window = read_window(node, kernel_of_weight(node, 1));
  std::size_t n = window.kernel.size();
  std::vector<std::int64_t> extra = node.integers("output_padding", std::vector<std::int64_t>(n, 0));
  check_list(node, "output_padding", extra, n, 0);
  std::vector<std::int64_t> shape = node.integers("output_shape");
  std::string group = int_text(node.integer("group", 1));
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
  node.out(fmt::format("galvani_onnx.conv_transpose({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})", node.in(0), node.in(1),
                       node.in_or_none(2), ints_text(window.strides), ints_text(window.dilations),
                       ints_text(window.before), ints_text(window.after), ints_text(extra), group, ints_text(shape),
                       same ? (automatic == "SAME_UPPER" ? "1" : "2") : "0"),
           window.spatial + 2);
}

bool narrow_padding(const Window& window) {
  bool narrow = window.symmetric();
  for (int i = 0; i < window.spatial && narrow; ++i) narrow = 2 * window.before[i] <= window.kernel[i];
  return narrow;
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
  Window window = read_window(node, {});
  bool ceil = node.integer("ceil_mode", 0) != 0;
  bool count_padding = node.integer("count_include_pad", 0) != 0;
  for (std::int64_t dilation : window.dilations) {
    if (dilation != 1) node.refuse("has dilations, which is not supported");
  }
  if (narrow_padding(window)) {
    return node.out(fmt::format("torch.avg_pool{}d({}, {}, {}, {}, {}, {})", window.spatial, node.in(0),
                                ints_text(window.kernel), ints_text(window.strides), ints_text(window.before),
                                bool_text(ceil), bool_text(count_padding)),
                    window.spatial + 2);
  }
  std::string x = node.in(0);
  Window copy = window;
  std::string padded = pad_first(node, window, x, "0.0");
  if (count_padding) {
    return node.out(fmt::format("torch.avg_pool{}d({}, {}, {}, {}, {})", window.spatial, padded,
                                ints_text(window.kernel), ints_text(window.strides), ints_text(window.before),
                                bool_text(ceil)),
                    window.spatial + 2);
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
  node.out(fmt::format("torch.div({}, {})", sums, shares), window.spatial + 2);
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
      {"MaxUnpool", 9, kNewestOpset, emit_max_unpool},
  };
}

}  // namespace galvani::onnx
