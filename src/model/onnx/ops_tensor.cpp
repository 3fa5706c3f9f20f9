// Shapes: what rearranges, joins, cuts and makes tensors.
#include <ATen/ATen.h>

#include <numeric>

#include "model/limits.h"
#include "model/onnx/emit.h"
#include "model/onnx/tensors.h"

namespace galvani::onnx {

namespace {

// Axes moved from an attribute to an input over the opsets.
std::string axes_text(Node& node, int input) {
  if (node.has(input)) return node.integers(input);
  return ints_text(node.integers("axes"));
}

int axes_count(const Node& node, int input) {
  if (!node.has(input)) return static_cast<int>(node.integers("axes").size());
  auto axes = node.known_integers(input);
  return axes ? static_cast<int>(axes->size()) : -1;
}

// Sizes that the file states; of an empty tensor no memory bounds them.
void check_literals(const Node& node, const std::vector<std::int64_t>& sizes) {
  std::int64_t elements = 1;
  for (std::int64_t size : sizes) {
    if (size > 0 && elements > kMostElements / size)
      node.refuse("makes a tensor of more than {} elements", kMostElements);
    elements *= std::max<std::int64_t>(size, 1);
  }
}

void emit_reshape(Node& node) {
  std::string x = node.in(0);
  bool allow_zero = node.integer("allowzero", 0) != 0;
  std::optional<std::vector<std::int64_t>> shape;
  if (node.opset() < 5) {
    shape = node.integers("shape");
  } else {
    shape = node.known_integers(1);
  }
  if (!shape) {
    return node.out(fmt::format("galvani_onnx.reshape({}, {}, {})", x, node.integers(1), bool_text(allow_zero)));
  }
  std::vector<std::string> sizes;
  for (std::size_t i = 0; i < shape->size(); ++i) {
    std::int64_t size = (*shape)[i];
    if (size < -1) node.refuse("has a dimension of {} in its shape", size);
    // 0 copies the input's size, so that a batch stays as large as it is.
    sizes.push_back(size == 0 && !allow_zero ? fmt::format("torch.size({}, {})", x, i) : int_text(size));
  }
  check_literals(node, *shape);
  int rank = static_cast<int>(sizes.size());
  node.out(fmt::format("torch.reshape({}, {})", x, sizes.empty() ? ints_text({}) : list_text(sizes)), rank);
}

void emit_flatten(Node& node) {
  std::int64_t axis = node.integer("axis", 1);
  if (axis == 1 && node.rank(0) >= 2) return node.out(fmt::format("torch.flatten({}, 1)", node.in(0)), 2);
  node.out(fmt::format("galvani_onnx.flatten({}, {})", node.in(0), int_text(axis)), 2);
}

void emit_transpose(Node& node) {
  std::vector<std::int64_t> order = node.integers("perm");
  if (order.empty() && node.rank(0) >= 0) {
    for (int i = node.rank(0) - 1; i >= 0; --i) order.push_back(i);
  }
  if (order.empty() && node.rank(0) != 0) return node.out(fmt::format("galvani_onnx.reverse_axes({})", node.in(0)));
  node.out(fmt::format("torch.permute({}, {})", node.in(0), ints_text(order)), node.rank(0));
}

void emit_squeeze(Node& node) {
  int count = axes_count(node, 1);
  int rank = count > 0 && node.rank(0) >= 0 ? node.rank(0) - count : -1;
  auto axes = node.has(1) ? node.known_integers(1) : std::optional(node.integers("axes"));
  if (axes && axes->size() == 1)
    return node.out(fmt::format("torch.squeeze({}, {})", node.in(0), int_text(axes->front())), rank);
  node.out(fmt::format("galvani_onnx.squeeze({}, {})", node.in(0), axes_text(node, 1)), rank);
}

void emit_unsqueeze(Node& node) {
  int count = axes_count(node, 1);
  int rank = count >= 0 && node.rank(0) >= 0 ? node.rank(0) + count : -1;
  auto axes = node.has(1) ? node.known_integers(1) : std::optional(node.integers("axes"));
  if (axes && axes->size() == 1)
    return node.out(fmt::format("torch.unsqueeze({}, {})", node.in(0), int_text(axes->front())), rank);
  node.out(fmt::format("galvani_onnx.unsqueeze({}, {})", node.in(0), axes_text(node, 1)), rank);
}

void emit_concat(Node& node) {
  if (node.opset() >= 4 && !node.given("axis")) node.refuse("has no axis");
  for (int i = 0; i < node.input_count(); ++i) {
    if (node.type(i) != node.type(0)) node.refuse("joins tensors of different element types");
  }
  node.out(fmt::format("torch.cat({}, {})", list_text(node.all_inputs()), int_text(node.integer("axis", 1))),
           node.rank(0));
}

void emit_split(Node& node) {
  std::int64_t axis = node.integer("axis", 0);
  std::string sizes = node.has(1) ? node.integers(1) : ints_text(node.integers("split"));
  int parts = node.output_count();
  if (parts < 1) node.refuse("has no output");
  if (node.integer("num_outputs", parts) != parts) node.refuse("has {} outputs and says otherwise", parts);
  std::string pieces =
      node.temporary(fmt::format("galvani_onnx.split({}, {}, {}, {})", node.in(0), sizes, int_text(axis), parts));
  std::string list;
  for (int i = 0; i < parts; ++i) list += fmt::format("{}{}[{}]", i ? ", " : "", pieces, i);
  if (parts == 1) return node.out(list, node.rank(0));
  node.outs("(" + list + ")", std::vector<at::ScalarType>(parts, node.type(0)), std::vector<int>(parts, node.rank(0)));
}

void emit_slice(Node& node) {
  std::string x = node.in(0);
  std::optional<std::vector<std::int64_t>> starts, ends, axes, steps;
  if (node.opset() < 10) {
    starts = node.integers("starts");
    ends = node.integers("ends");
    axes = node.integers("axes");
    steps = std::vector<std::int64_t>();
  } else {
    starts = node.known_integers(1);
    ends = node.known_integers(2);
    axes = node.has(3) ? node.known_integers(3) : std::vector<std::int64_t>();
    steps = node.has(4) ? node.known_integers(4) : std::vector<std::int64_t>();
  }
  // The common slice is one axis and a step of one.
  bool forward = steps && (steps->empty() || (steps->size() == 1 && steps->front() > 0));
  if (starts && ends && axes && forward && starts->size() == 1 && ends->size() == 1 && axes->size() <= 1) {
    return node.out(fmt::format("torch.slice({}, {}, {}, {}, {})", x, axes->empty() ? "0" : int_text(axes->front()),
                                int_text(starts->front()), int_text(ends->front()),
                                steps->empty() ? "1" : int_text(steps->front())),
                    node.rank(0));
  }
  auto text = [&](const std::optional<std::vector<std::int64_t>>& list, int input) {
    return list ? ints_text(*list) : node.integers(input);
  };
  std::string arguments = text(starts, 1) + ", " + text(ends, 2) + ", " + text(axes, 3) + ", " + text(steps, 4);
  node.out(fmt::format("galvani_onnx.slice({}, {})", x, arguments), node.rank(0));
}

std::int64_t pad_mode(const Node& node) {
  std::string mode = node.text("mode", "constant");
  if (mode == "constant") return 0;
  if (mode == "reflect") return 1;
  if (mode == "edge") return 2;
  if (mode == "wrap") return 3;
  node.refuse("has an unknown mode");
}

void emit_pad(Node& node) {
  std::int64_t mode = pad_mode(node);
  std::string fill = "0.0";
  std::optional<std::vector<std::int64_t>> pads;
  if (node.opset() < 11) {
    pads = node.integers("pads");
    fill = number_text(node.real("value", 0));
  } else {
    pads = node.known_integers(1);
    if (node.has(2)) fill = node.number(2);
  }
  if (!at::isFloatingType(node.type(0)) && fill == "0.0") fill = "0";
  bool positive = pads && !node.has(3) && pads->size() % 2 == 0 && !pads->empty();
  if (positive && mode == 0) {
    std::vector<std::int64_t> amounts;
    std::vector<std::int64_t> least;  // of the result's sizes
    for (std::size_t n = pads->size() / 2, i = n; i-- > 0;) {
      amounts.push_back((*pads)[i]);
      amounts.push_back((*pads)[n + i]);
      for (std::int64_t amount : {(*pads)[i], (*pads)[n + i]}) {
        if (amount < -kMostElements || amount > kMostElements) node.refuse("pads by {}", amount);
      }
      least.push_back((*pads)[i] + (*pads)[n + i]);
    }
    check_literals(node, least);
    // The leading axes are usually not padded, and kernels are fastest without them.
    while (amounts.size() > 2 && amounts.back() == 0 && amounts[amounts.size() - 2] == 0)
      amounts.resize(amounts.size() - 2);
    return node.out(fmt::format("torch.constant_pad_nd({}, {}, {})", node.in(0), ints_text(amounts), fill),
                    node.rank(0));
  }
  std::string list = pads ? ints_text(*pads) : node.integers(1);
  std::string axes = node.has(3) ? node.integers(3) : ints_text({});
  node.out(fmt::format("galvani_onnx.pad({}, {}, {}, {}, {})", node.in(0), list, axes, mode, fill), node.rank(0));
}

void emit_tile(Node& node) {
  auto repeats = node.known_integers(1);
  if (repeats && node.value(0).known) {
    std::vector<std::int64_t> total = *repeats;
    total.push_back(std::max<std::int64_t>(node.value(0).known->numel(), 1));
    check_size(node, total, node.type(0));
  }
  node.out(fmt::format("galvani_onnx.tile({}, {})", node.in(0), node.integers(1)), node.rank(0));
}

void emit_expand(Node& node) {
  int rank = -1;
  if (auto shape = node.known_integers(1)) {
    if (node.value(0).known) {
      std::vector<std::int64_t> total = node.value(0).known->sizes().vec();
      if (shape->size() > total.size()) total.insert(total.begin(), shape->size() - total.size(), 1);
      std::size_t offset = total.size() - shape->size();
      for (std::size_t i = 0; i < shape->size(); ++i) total[offset + i] = std::max(total[offset + i], (*shape)[i]);
      check_size(node, total, node.type(0));
    }
    if (node.rank(0) >= 0) rank = std::max(node.rank(0), static_cast<int>(shape->size()));
  }
  node.out(fmt::format("galvani_onnx.expand({}, {})", node.in(0), node.integers(1)), rank);
}

void emit_constant_of_shape(Node& node) {
  at::ScalarType type = at::kFloat;
  std::string fill = "0.0";
  if (const auto* found = node.attribute("value", ::onnx::AttributeProto::TENSOR)) {
    auto wanted = scalar_type(found->t().data_type());
    if (!wanted) node.refuse("makes the element type {}, which is not supported", type_name(found->t().data_type()));
    type = *wanted;
    at::Tensor value = TensorReader({}, "value").read(found->t());
    if (value.numel() != 1) node.refuse("needs one value and has {}", value.numel());
    fill = at::isFloatingType(type) ? number_text(value.to(at::kDouble).reshape({-1})[0].item<double>())
                                    : int_text(value.to(at::kLong).reshape({-1})[0].item<std::int64_t>());
  }
  int rank = -1;
  if (auto shape = node.known_integers(0)) {
    check_size(node, *shape, type);
    rank = static_cast<int>(shape->size());
  }
  node.out(fmt::format("galvani_onnx.full({}, {}, {})", node.integers(0), fill, type_text(type)), type, rank);
}

void emit_shape(Node& node) {
  std::string end = node.given("end") ? int_text(node.integer("end", 0)) : int_text(INT64_MAX);
  node.out(fmt::format("galvani_onnx.shape({}, {}, {})", node.in(0), int_text(node.integer("start", 0)), end),
           at::kLong, 1);
}

void emit_size(Node& node) {
  node.out(fmt::format("galvani_onnx.size({})", node.in(0)), at::kLong, 0);
}

void emit_range(Node& node) {
  at::ScalarType type = node.type(0);
  auto start = node.known_number(0);
  auto limit = node.known_number(1);
  auto delta = node.known_number(2);
  if (start && limit && delta) {
    double count = *delta == 0 ? -1 : (*limit - *start) / *delta;
    if (*delta == 0 || !(count < 9e15)) node.refuse("counts without an end");
    check_size(node, {std::max<std::int64_t>(0, static_cast<std::int64_t>(count) + 1)}, type);
  }
  node.out(fmt::format("torch.arange({}, {}, {}, dtype={})", node.number(0), node.number(1), node.number(2),
                       type_text(type)),
           type, 1);
}

void emit_eye_like(Node& node) {
  at::ScalarType type = node.type(0);
  if (node.given("dtype")) {
    int wanted = static_cast<int>(node.integer("dtype", 0));
    auto found = scalar_type(wanted);
    if (!found) node.refuse("makes the element type {}, which is not supported", type_name(wanted));
    type = *found;
  }
  node.out(
      fmt::format("galvani_onnx.eye_like({}, {}, {})", node.in(0), int_text(node.integer("k", 0)), type_text(type)),
      type, 2);
}

void emit_trilu(Node& node) {
  bool upper = node.integer("upper", 1) != 0;
  std::string k = node.has(1) ? node.integer(1) : "0";
  node.out(fmt::format("torch.{}({}, {})", upper ? "triu" : "tril", node.in(0), k), node.rank(0));
}

Emit depth(const char* function) {
  std::string name = function;
  return [name](Node& node) {
    std::int64_t block = node.integer("blocksize", 0);
    if (block < 1 || block > 4096) node.refuse("has a block size of {}", block);
    std::string mode = node.text("mode", "DCR");
    if (mode != "DCR" && mode != "CRD") node.refuse("has an unknown mode");
    node.out(fmt::format("galvani_onnx.{}({}, {}, {})", name, node.in(0), int_text(block), bool_text(mode == "CRD")),
             4);
  };
}

}  // namespace

std::vector<Operator> tensor_operators() {
  return {
      {"Reshape", 1, kNewestOpset, emit_reshape, true, true},
      {"Flatten", 1, kNewestOpset, emit_flatten, true, true},
      {"Transpose", 1, kNewestOpset, emit_transpose, true, true},
      {"Squeeze", 1, kNewestOpset, emit_squeeze, true, true},
      {"Unsqueeze", 1, kNewestOpset, emit_unsqueeze, true, true},
      {"Concat", 1, kNewestOpset, emit_concat, true, true},
      {"Split", 2, kNewestOpset, emit_split, true, true},
      {"Slice", 1, kNewestOpset, emit_slice, true, true},
      {"Pad", 2, kNewestOpset, emit_pad},
      {"Tile", 6, kNewestOpset, emit_tile, true, true},
      {"Expand", 8, kNewestOpset, emit_expand, true, true},
      {"ConstantOfShape", 9, kNewestOpset, emit_constant_of_shape, true, true},
      {"Shape", 1, kNewestOpset, emit_shape, true, true},
      {"Size", 1, kNewestOpset, emit_size, true, true},
      {"Range", 11, kNewestOpset, emit_range, true, true},
      {"EyeLike", 9, kNewestOpset, emit_eye_like, false, true},
      {"Trilu", 14, kNewestOpset, emit_trilu},
      {"DepthToSpace", 1, kNewestOpset, depth("depth_to_space"), false, true},
      {"SpaceToDepth", 1, kNewestOpset, depth("space_to_depth"), false, true},
  };
}

}  // namespace galvani::onnx
