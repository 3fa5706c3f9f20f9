// Reductions over axes.
#include <ATen/ATen.h>

#include "model/onnx/emit.h"

namespace galvani::onnx {

namespace {

// `function` takes (x, axes, keepdim), with an empty list for all axes.
Emit reduce(const char* function) {
  std::string name = function;
  return [name](Node& node) {
    bool keep = node.integer("keepdims", 1) != 0;
    bool nothing_for_none = node.integer("noop_with_empty_axes", 0) != 0;
    std::string axes;
    int rank = keep ? node.rank(0) : -1;
    if (node.has(1)) {
      auto known = node.known_integers(1);
      if (known && known->empty() && nothing_for_none) return node.same_as(0);
      if (!known && nothing_for_none) {
        std::string list = node.integers(1);
        std::string reduced = fmt::format("{}({}, {}, {})", name, node.in(0), list, bool_text(keep));
        return node.out(fmt::format("{} if len({}) > 0 else {}", reduced, list, node.in(0)), rank);
      }
      if (known && !known->empty() && !keep && node.rank(0) >= 0) rank = node.rank(0) - static_cast<int>(known->size());
      axes = node.integers(1);
    } else {
      std::vector<std::int64_t> listed = node.integers("axes");
      if (listed.empty() && nothing_for_none) return node.same_as(0);
      if (!keep && node.rank(0) >= 0) rank = listed.empty() ? 0 : node.rank(0) - static_cast<int>(listed.size());
      axes = ints_text(listed);
    }
    node.out(fmt::format("{}({}, {}, {})", name, node.in(0), axes, bool_text(keep)), rank);
  };
}

Emit arg(const char* function) {
  std::string name = function;
  return [name](Node& node) {
    std::string axis = int_text(node.integer("axis", 0));
    std::string keep = bool_text(node.integer("keepdims", 1) != 0);
    std::string call = node.integer("select_last_index", 0) != 0
                           ? fmt::format("galvani_onnx.{}_last({}, {}, {})", name, node.in(0), axis, keep)
                           : fmt::format("torch.{}({}, {}, {})", name, node.in(0), axis, keep);
    node.out(call, at::kLong);
  };
}

Operator row(const char* name, const char* function, bool foldable = false) {
  return {name, 1, kNewestOpset, reduce(function), foldable};
}

}  // namespace

std::vector<Operator> reduce_operators() {
  return {
      row("ReduceMean", "torch.mean"),
      row("ReduceSum", "galvani_onnx.reduce_sum", true),
      row("ReduceMax", "torch.amax", true),
      row("ReduceMin", "torch.amin", true),
      row("ReduceProd", "galvani_onnx.reduce_prod", true),
      row("ReduceL1", "galvani_onnx.reduce_l1"),
      row("ReduceL2", "galvani_onnx.reduce_l2"),
      row("ReduceLogSum", "galvani_onnx.reduce_log_sum"),
      row("ReduceLogSumExp", "galvani_onnx.reduce_log_sum_exp"),
      row("ReduceSumSquare", "galvani_onnx.reduce_sum_square"),
      {"ArgMax", 1, kNewestOpset, arg("argmax")},
      {"ArgMin", 1, kNewestOpset, arg("argmin")},
  };
}

}  // namespace galvani::onnx
