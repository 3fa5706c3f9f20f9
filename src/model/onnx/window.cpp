#include "model/onnx/window.h"

#include <ATen/ATen.h>

namespace galvani::onnx {

void check_list(const Node& node, const char* name, const std::vector<std::int64_t>& values, std::size_t length,
                std::int64_t least) {
  if (values.size() != length) node.refuse("has {} values in '{}' instead of {}", values.size(), name, length);
  for (std::int64_t value : values) {
    // Images are no larger.
    constexpr std::int64_t kMost = 65536;
    if (value < least || value > kMost)
      node.refuse("has the value {} in '{}'; at most {} is supported", value, name, kMost);
  }
}

Window read_window(const Node& node, std::vector<std::int64_t> kernel) {
  Window window;
  window.kernel = node.integers("kernel_shape", std::move(kernel));
  std::size_t n = window.kernel.size();
  if (n < 1 || n > 3) node.refuse("has {} spatial dimensions; supported are 1 to 3", n);
  window.spatial = static_cast<int>(n);
  check_list(node, "kernel_shape", window.kernel, n, 1);
  // More than any image asks for; "same" padding would fit the image to it and pool for minutes.
  constexpr std::int64_t kLargestWindow = 1 << 18;
  std::int64_t area = 1;
  for (std::int64_t side : window.kernel) {
    if (side > kLargestWindow / area) node.refuse("has a window of more than {} values", kLargestWindow);
    area *= side;
  }
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
    for (std::size_t i = 0; i < n; ++i)
      fixed &= window.strides[i] == 1 && (window.kernel[i] - 1) * window.dilations[i] % 2 == 0;
    if (fixed) {
      window.same = Window::Same::no;
      for (std::size_t i = 0; i < n; ++i)
        window.before[i] = window.after[i] = (window.kernel[i] - 1) * window.dilations[i] / 2;
    }
  }
  return window;
}

std::string pad_first(Node& node, Window& window, const std::string& x, const std::string& fill) {
  std::string padded;
  if (window.same != Window::Same::no) {
    padded = node.temporary(fmt::format("galvani_onnx.pad_same({}, {}, {}, {}, {}, {})", x, ints_text(window.kernel),
                                        ints_text(window.strides), ints_text(window.dilations),
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

std::int64_t group_count(const Node& node) {
  std::int64_t groups = node.integer("group", 1);
  if (groups < 1 || groups >= (std::int64_t{1} << 31)) node.refuse("has {} groups", groups);
  return groups;
}

std::vector<std::int64_t> kernel_of_weight(const Node& node, int input) {
  const Value& weight = node.value(input);
  if (weight.known && weight.known->dim() > 2) return weight.known->sizes().slice(2).vec();
  // Without a known weight only the number of spatial dimensions can be told.
  int rank = weight.rank >= 0 ? weight.rank : node.rank(0);
  if (rank < 3) node.refuse("convolves by a weight whose number of dimensions the file does not tell");
  return std::vector<std::int64_t>(rank - 2, 1);
}

}  // namespace galvani::onnx
