// Reading and writing elements by index.
#include <ATen/ATen.h>

#include "model/onnx/emit.h"

namespace galvani::onnx {

namespace {

void require_indices(const Node& node, int i) {
  if (node.type(i) != at::kLong && node.type(i) != at::kInt) node.refuse("needs int32 or int64 indices");
}

void emit_gather(Node& node) {
  require_indices(node, 1);
  std::int64_t axis = node.integer("axis", 0);
  int rank = node.rank(0) >= 0 && node.rank(1) >= 0 ? node.rank(0) + node.rank(1) - 1 : -1;
  auto index = node.known_integers(1);
  // One fixed index picks a plane; this is how exporters take a token or a size.
  if (index && index->size() == 1 && node.rank(1) == 0)
    return node.out(fmt::format("torch.select({}, {}, {})", node.in(0), int_text(axis), int_text(index->front())),
                    rank);
  node.out(fmt::format("galvani_onnx.gather({}, {}, {})", node.in(0), node.in(1), int_text(axis)), rank);
}

void emit_gather_elements(Node& node) {
  require_indices(node, 1);
  node.out(fmt::format("galvani_onnx.gather_elements({}, {}, {})", node.in(0), node.in(1),
                       int_text(node.integer("axis", 0))),
           node.rank(0));
}

void emit_gather_nd(Node& node) {
  require_indices(node, 1);
  node.out(fmt::format("galvani_onnx.gather_nd({}, {}, {})", node.in(0), node.in(1),
                       int_text(node.integer("batch_dims", 0))));
}

std::int64_t reduction(const Node& node) {
  std::string kind = node.text("reduction", "none");
  const char* const kinds[] = {"none", "add", "mul", "max", "min"};
  for (int i = 0; i < 5; ++i) {
    if (kind == kinds[i]) return i;
  }
  node.refuse("has an unknown reduction");
}

Emit scatter(const char* function, bool has_axis) {
  std::string name = function;
  return [name, has_axis](Node& node) {
    require_indices(node, 1);
    if (node.type(2) != node.type(0)) node.refuse("writes elements of another type");
    std::string axis = has_axis ? int_text(node.integer("axis", 0)) + ", " : "";
    node.out(fmt::format("galvani_onnx.{}({}, {}, {}, {}{})", name, node.in(0), node.in(1), node.in(2), axis,
                         reduction(node)),
             node.rank(0));
  };
}

void emit_compress(Node& node) {
  bool flat = !node.given("axis");
  node.out(fmt::format("galvani_onnx.compress({}, {}, {}, {})", node.in(0), node.in(1),
                       int_text(node.integer("axis", 0)), bool_text(flat)),
           flat ? 1 : node.rank(0));
}

void emit_one_hot(Node& node) {
  if (auto depth = node.known_number(1)) {
    if (*depth < 1 || *depth > 1e9) node.refuse("has a depth of {}", *depth);
  }
  // The depth may be of any type of number.
  std::string depth = node.temporary(fmt::format("galvani_onnx.integer({})", node.in(1, false)));
  node.out(fmt::format("galvani_onnx.one_hot({}, {}, {}, {})", node.in(0), depth, node.in(2),
                       int_text(node.integer("axis", -1))),
           node.type(2), node.rank(0) >= 0 ? node.rank(0) + 1 : -1);
}

void emit_non_zero(Node& node) {
  node.out(fmt::format("torch.t(torch.nonzero({}))", node.in(0)), at::kLong, 2);
}

void emit_reverse_sequence(Node& node) {
  require_indices(node, 1);
  node.out(fmt::format("galvani_onnx.reverse_sequence({}, {}, {}, {})", node.in(0), node.in(1),
                       int_text(node.integer("batch_axis", 1)), int_text(node.integer("time_axis", 0))),
           node.rank(0));
}

void emit_top_k(Node& node) {
  std::string k = node.opset() < 10 ? int_text(node.integer("k", 1)) : node.integer(1);
  bool largest = node.integer("largest", 1) != 0;
  node.integer("sorted", 1);
  node.outs(fmt::format("galvani_onnx.top_k({}, {}, {}, {})", node.in(0), k, int_text(node.integer("axis", -1)),
                        bool_text(largest)),
            {node.type(0), at::kLong}, {node.rank(0), node.rank(0)});
}

void emit_unique(Node& node) {
  bool flat = !node.given("axis");
  node.outs(fmt::format("galvani_onnx.unique({}, {}, {}, {})", node.in(0), int_text(node.integer("axis", 0)),
                        bool_text(flat), bool_text(node.integer("sorted", 1) != 0)),
            {node.type(0), at::kLong, at::kLong, at::kLong}, {flat ? 1 : node.rank(0), 1, 1, 1});
}

void emit_cum_sum(Node& node) {
  node.out(fmt::format("galvani_onnx.cum_sum({}, {}, {}, {})", node.in(0), node.integer(1),
                       bool_text(node.integer("exclusive", 0) != 0), bool_text(node.integer("reverse", 0) != 0)),
           node.rank(0));
}

void emit_cum_prod(Node& node) {
  node.out(fmt::format("galvani_onnx.cum_prod({}, {}, {}, {})", node.in(0), node.integer(1),
                       bool_text(node.integer("exclusive", 0) != 0), bool_text(node.integer("reverse", 0) != 0)),
           node.rank(0));
}

}  // namespace

std::vector<Operator> index_operators() {
  return {
      {"Gather", 1, kNewestOpset, emit_gather, true, true},
      {"GatherElements", 11, kNewestOpset, emit_gather_elements, false, true},
      {"GatherND", 11, kNewestOpset, emit_gather_nd, false, true},
      {"Scatter", 9, 10, scatter("scatter_elements", true), false, true},
      {"ScatterElements", 11, kNewestOpset, scatter("scatter_elements", true), false, true},
      {"ScatterND", 11, kNewestOpset, scatter("scatter_nd", false), true, true},
      {"Compress", 9, kNewestOpset, emit_compress, false, true},
      {"OneHot", 9, kNewestOpset, emit_one_hot, false, true},
      {"NonZero", 9, kNewestOpset, emit_non_zero, false, true},
      {"ReverseSequence", 10, kNewestOpset, emit_reverse_sequence, false, true},
      {"TopK", 1, kNewestOpset, emit_top_k},
      {"Unique", 11, kNewestOpset, emit_unique},
      {"CumSum", 11, kNewestOpset, emit_cum_sum, true},
      {"CumProd", 26, kNewestOpset, emit_cum_prod, true},
  };
}

}  // namespace galvani::onnx
