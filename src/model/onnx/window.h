// The sliding windows of convolutions and pools.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/onnx/emit.h"

namespace galvani::onnx {

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

// `kernel` is the kernel's size where the node does not state it.
Window read_window(const Node& node, std::vector<std::int64_t> kernel);
// The kernel size of a convolution's weight; ones where only its number of axes is known.
std::vector<std::int64_t> kernel_of_weight(const Node& node, int input);
// Pads the input by an operation of its own and clears the window's padding.
std::string pad_first(Node& node, Window& window, const std::string& x, const std::string& fill);
// Conv with its bias, and AveragePool of `x`.
struct Expression {
  std::string text;
  int rank;
};
Expression convolution(Node& node);
Expression average_pool(Node& node, const std::string& x);
// The attribute 'group', checked: kernels divide by it.
std::int64_t group_count(const Node& node);
void check_list(const Node& node, const char* name, const std::vector<std::int64_t>& values, std::size_t length,
                std::int64_t least);

}  // namespace galvani::onnx
