// Sequences of tensors, and optionals as far as it is known at import what they hold.
#include <ATen/ATen.h>

#include "model/onnx/emit.h"
#include "model/onnx/tensors.h"

namespace galvani::onnx {

namespace {

void emit_sequence_construct(Node& node) {
  at::ScalarType type = node.type(0);
  for (int i = 1; i < node.input_count(); ++i) {
    if (node.type(i) != type) node.refuse("joins tensors of different element types");
  }
  node.out_sequence(list_text(node.all_inputs()), type);
}

void emit_sequence_empty(Node& node) {
  int wanted = static_cast<int>(node.integer("dtype", ::onnx::TensorProto::FLOAT));
  std::optional<at::ScalarType> type = scalar_type(wanted);
  if (!type) node.refuse("has the element type {}, which is not supported", type_name(wanted));
  node.out_sequence("annotate(List[Tensor], [])", *type);
}

void emit_sequence_insert(Node& node) {
  at::ScalarType type = node.any_value(0).type;
  if (node.type(1) != type) node.refuse("joins tensors of different element types");
  std::string sequence = node.sequence(0);
  std::string position = node.has(2) ? node.integer(2) : fmt::format("len({})", sequence);
  node.out_sequence(fmt::format("galvani_onnx.sequence_insert({}, {}, {})", sequence, node.in(1), position), type);
}

void emit_sequence_erase(Node& node) {
  std::string position = node.has(1) ? node.integer(1) : "-1";
  node.out_sequence(fmt::format("galvani_onnx.sequence_erase({}, {})", node.sequence(0), position),
                    node.any_value(0).type);
}

void emit_sequence_at(Node& node) {
  node.out(fmt::format("galvani_onnx.sequence_at({}, {})", node.sequence(0), node.integer(1)), node.any_value(0).type);
}

void emit_sequence_length(Node& node) {
  node.out(fmt::format("torch.tensor(len({}))", node.sequence(0)), at::kLong, 0);
}

void emit_sequence_split(Node& node) {
  std::string axis = int_text(node.integer("axis", 0));
  bool keep = node.integer("keepdims", 1) != 0;
  std::string sizes = ints_text({1});
  bool chunks = !node.has(1);
  if (node.has(1)) {
    if (node.rank(1) < 0) node.refuse("splits by sizes whose number of axes is not known, which is not supported");
    chunks = node.rank(1) == 0;
    keep = true;
    sizes = node.integers(1);
  }
  node.out_sequence(fmt::format("galvani_onnx.split_sequence({}, {}, {}, {}, {})", node.in(0), sizes, axis,
                                bool_text(chunks), bool_text(keep)),
                    node.type(0));
}

void emit_sequence_concat(Node& node) {
  if (!node.given("axis")) node.refuse("has no axis");
  const char* function = node.integer("new_axis", 0) != 0 ? "stack" : "cat";
  node.out(fmt::format("torch.{}({}, {})", function, node.sequence(0), int_text(node.integer("axis", 0))),
           node.any_value(0).type);
}

void emit_optional(Node& node) {
  if (node.has(0)) return node.same_as(0);
  if (node.results().empty()) node.refuse("has no output");
  node.given("type");
  node.results()[0].absent = true;
  node.results()[0].problem = "which is an optional without a value";
}

void emit_has_element(Node& node) {
  if (node.results().empty()) node.refuse("has no output");
  bool holds = node.has(0) && !node.any_input(0).absent;
  if (holds) node.any_value(0);
  Value& result = node.results()[0];
  result.known = at::scalar_tensor(holds, at::kBool);
  result.type = result.stored = at::kBool;
  result.rank = 0;
  result.origin = Value::Origin::constant;
}

void emit_get_element(Node& node) {
  node.same_as(0);
}

}  // namespace

std::vector<Operator> sequence_operators() {
  return {
      {"SequenceConstruct", 11, kNewestOpset, emit_sequence_construct, false, true},
      {"SequenceEmpty", 11, kNewestOpset, emit_sequence_empty, false, true},
      {"SequenceInsert", 11, kNewestOpset, emit_sequence_insert, false, true},
      {"SequenceErase", 11, kNewestOpset, emit_sequence_erase, false, true},
      {"SequenceAt", 11, kNewestOpset, emit_sequence_at, false, true},
      {"SequenceLength", 11, kNewestOpset, emit_sequence_length, false, true},
      {"SplitToSequence", 11, kNewestOpset, emit_sequence_split, false, true},
      {"ConcatFromSequence", 11, kNewestOpset, emit_sequence_concat, false, true},
      {"Optional", 15, kNewestOpset, emit_optional, false, true},
      {"OptionalHasElement", 15, kNewestOpset, emit_has_element, false, true},
      {"OptionalGetElement", 15, kNewestOpset, emit_get_element, false, true},
  };
}

}  // namespace galvani::onnx
