#include "graft_onnx.h"

#include <cstring>
#include <map>
#include <string>

#include "galvani/base/files.h"
#include "model/onnx/emit.h"
#include "model_seeds.h"

namespace galvani {
namespace {

using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

std::int64_t integer(Rng& rng) {
  constexpr std::int64_t kIntegers[] = {0,
                                        1,
                                        2,
                                        3,
                                        4,
                                        -1,
                                        -2,
                                        16,
                                        1000,
                                        65536,
                                        1000000,
                                        INT32_MAX,
                                        INT32_MIN,
                                        std::int64_t{1} << 32,
                                        1000000000000,
                                        INT64_MAX,
                                        INT64_MIN};
  return kIntegers[rng.below(rng.chance(0.7) ? 7 : std::size(kIntegers))];
}

// A constant of one to four axes, or one number, as shapes, indices, scales and weights are.
std::string add_constant(GraphProto& graph, Rng& rng) {
  std::string name = "fuzz_constant_" + std::to_string(graph.initializer_size());
  TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  std::int64_t count = 1;
  for (std::uint64_t i = 0, axes = rng.below(rng.chance(0.5) ? 2 : 5); i < axes; ++i) {
    auto size = static_cast<std::int64_t>(rng.below(6));
    tensor.add_dims(size);
    count *= size;
  }
  static const int kTypes[] = {TensorProto::INT64, TensorProto::INT64, TensorProto::FLOAT, TensorProto::FLOAT,
                               TensorProto::INT32, TensorProto::BOOL,  TensorProto::UINT8, TensorProto::FLOAT16};
  int type = kTypes[rng.below(std::size(kTypes))];
  tensor.set_data_type(type);
  for (std::int64_t i = 0; i < count; ++i) {
    if (type == TensorProto::INT64)
      tensor.add_int64_data(integer(rng));
    else if (type == TensorProto::FLOAT)
      tensor.add_float_data(rng.chance(0.8) ? static_cast<float>(rng.uniform(-2, 4)) : 1e20F);
    else
      tensor.add_int32_data(static_cast<std::int32_t>(integer(rng)));
  }
  return name;
}

// Any name that stands for a tensor before node `before`.
std::string some_value(const GraphProto& graph, int before, Rng& rng) {
  std::vector<std::string> names;
  for (const auto& input : graph.input()) names.push_back(input.name());
  for (const auto& tensor : graph.initializer()) names.push_back(tensor.name());
  for (int i = 0; i < before; ++i) {
    for (const std::string& output : graph.node(i).output()) names.push_back(output);
  }
  return names.empty() ? "x" : names[rng.below(names.size())];
}

void change_attribute(NodeProto& node, Rng& rng) {
  if (node.attribute_size() == 0) return;
  AttributeProto& attribute = *node.mutable_attribute(static_cast<int>(rng.below(node.attribute_size())));
  switch (attribute.type()) {
    case AttributeProto::INT:
      attribute.set_i(integer(rng));
      break;
    case AttributeProto::FLOAT:
      attribute.set_f(rng.chance(0.5) ? 1e30F : static_cast<float>(rng.uniform(-2, 2)));
      break;
    case AttributeProto::INTS:
      if (attribute.ints_size() > 0 && rng.chance(0.8))
        attribute.set_ints(static_cast<int>(rng.below(attribute.ints_size())), integer(rng));
      else
        attribute.add_ints(integer(rng));
      break;
    default:
      node.mutable_attribute()->RemoveLast();
  }
}

void nest_subgraphs(GraphProto& graph, Rng& rng) {
  constexpr int kDepths[] = {1, 10, 30, 60, 100, 1000};
  GraphProto* inner = &graph;
  for (int i = 0, depth = kDepths[rng.below(std::size(kDepths))]; i < depth; ++i) {
    NodeProto& node = *inner->add_node();
    node.set_op_type(i % 2 == 0 ? "If" : "Loop");
    node.add_input(some_value(graph, 0, rng));
    node.add_output("nested_" + std::to_string(i));
    AttributeProto& branch = *node.add_attribute();
    branch.set_name(i % 2 == 0 ? "then_branch" : "body");
    branch.set_type(AttributeProto::GRAPH);
    inner = branch.mutable_g();
  }
}

// A function that calls the next one several times, or itself.
void nest_functions(ModelProto& model, Rng& rng) {
  // A few nodes or more than there may be: what lies between only takes time.
  constexpr std::uint64_t kDepths[] = {1, 2, 5, 31, 32, 40};
  std::uint64_t depth = kDepths[rng.below(std::size(kDepths))];
  std::uint64_t calls = depth > 5 && rng.chance(0.5) ? 1 : 1 + rng.below(4);
  if (depth > 5 && calls == 2) calls = 3;
  bool endless = rng.chance(0.3);
  for (std::uint64_t i = 0; i < depth; ++i) {
    auto& function = *model.add_functions();
    function.set_name("F" + std::to_string(i));
    function.set_domain("fuzz");
    function.add_input("a");
    function.add_output("b");
    function.add_opset_import()->set_version(13);
    function.add_opset_import()->set_domain("fuzz");
    bool last = i + 1 == depth;
    for (std::uint64_t c = 0; c < calls; ++c) {
      NodeProto& node = *function.add_node();
      node.set_op_type(!last ? "F" + std::to_string(i + 1) : endless ? "F0" : "Relu");
      node.set_domain(last && !endless ? "" : "fuzz");
      node.add_input(c == 0 ? "a" : "b" + std::to_string(c - 1));
      node.add_output(c + 1 == calls ? "b" : "b" + std::to_string(c));
    }
  }
  NodeProto& node = *model.mutable_graph()->add_node();
  node.set_op_type("F0");
  node.set_domain("fuzz");
  node.add_input(some_value(model.graph(), model.graph().node_size() - 1, rng));
  node.add_output("from_function");
}

void change_input(GraphProto& graph, Rng& rng) {
  if (graph.input_size() == 0) return;
  auto& tensor = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type();
  auto& shape = *tensor.mutable_shape();
  if (shape.dim_size() == 0 || rng.chance(0.1)) {
    shape.add_dim()->set_dim_value(integer(rng));
  } else {
    shape.mutable_dim(static_cast<int>(rng.below(shape.dim_size())))->set_dim_value(integer(rng));
  }
  if (rng.chance(0.1)) tensor.set_elem_type(static_cast<int>(rng.below(17)));
}

void rewire(GraphProto& graph, Rng& rng) {
  int at = static_cast<int>(rng.below(graph.node_size()));
  NodeProto& node = *graph.mutable_node(at);
  if (node.input_size() == 0) return;
  std::string source = rng.chance(0.4) ? add_constant(graph, rng) : some_value(graph, at, rng);
  node.set_input(static_cast<int>(rng.below(node.input_size())), source);
}

// The logits plus the mean of the value, whatever its type and shape, so that it is computed.
void add_to_output(GraphProto& graph, const std::string& value) {
  if (graph.output_size() == 0) return;
  std::string logits = graph.output(0).name();
  set_int(add_node(graph, "Cast", {value}, value + "_float"), "to", TensorProto::FLOAT);
  set_int(add_node(graph, "ReduceMean", {value + "_float"}, value + "_mean"), "keepdims", 0);
  add_node(graph, "Add", {logits, value + "_mean"}, value + "_sum");
  graph.mutable_output(0)->set_name(value + "_sum");
}

// A branch, or the body of a loop, that is part of the graph itself: what it carries in it carries out.
::onnx::GraphProto part_of(const GraphProto& graph, int from, int count, bool loop, Rng& rng) {
  GraphProto part;
  std::string result = some_value(graph, from, rng);
  if (loop) {
    for (const char* name : {"pass", "go", "carried"}) part.add_input()->set_name(name);
    part.add_output()->set_name("go");
  }
  for (int i = from; i < from + count && i < graph.node_size(); ++i) {
    NodeProto& node = *part.add_node();
    node = graph.node(i);
    for (std::string& output : *node.mutable_output()) output += "_inside";
    if (loop && node.input_size() > 0 && rng.chance(0.7)) node.set_input(0, "carried");
    if (i > from && node.input_size() > 0 && rng.chance(0.7)) node.set_input(0, result);
    if (node.output_size() > 0) result = node.output(0);
  }
  part.add_output()->set_name(result);
  return part;
}

// An If whose condition depends on the input, or a Loop of some or very many passes, around copies of nodes.
void add_control(GraphProto& graph, Rng& rng) {
  int from = static_cast<int>(rng.below(graph.node_size()));
  int count = 1 + static_cast<int>(rng.below(4));
  std::string name = "control_" + std::to_string(graph.node_size());
  bool loop = rng.chance(0.5);
  std::string source = some_value(graph, from, rng);
  std::string number = rng.chance(0.5) ? add_constant(graph, rng) : name + "_size";
  if (number == name + "_size") add_node(graph, "Size", {source}, number);
  if (!loop) set_int(add_node(graph, "Cast", {number}, name + "_flag"), "to", TensorProto::BOOL);
  NodeProto& node = add_node(graph, loop ? "Loop" : "If", {loop ? number : name + "_flag"}, name);
  if (loop) {
    node.add_input("");
    node.add_input(source);
  }
  for (const char* attribute : {"then_branch", "else_branch"}) {
    AttributeProto& branch = *node.add_attribute();
    branch.set_name(loop ? "body" : attribute);
    branch.set_type(AttributeProto::GRAPH);
    *branch.mutable_g() = part_of(graph, from, count, loop, rng);
    if (loop) break;
  }
  add_to_output(graph, name);
}

}  // namespace

NodePool::NodePool(const std::vector<std::filesystem::path>& cases) {
  std::map<std::string, int> seen;
  for (const auto& folder : cases) {
    ModelProto model;
    if (!model.ParseFromString(read_file(folder / "model.onnx"))) continue;
    for (const NodeProto& node : model.graph().node()) {
      bool supported = false;
      onnx::find_operator(node.domain(), node.op_type(), 0, supported);
      if (!supported) continue;
      // As many of each operator, so that the ones with many cases are not drawn all the time.
      if (++seen[node.op_type()] <= 4) nodes_.push_back(node);
    }
  }
}

void NodePool::insert_node(GraphProto& graph, Rng& rng) const {
  NodeProto node = nodes_[rng.below(nodes_.size())];
  std::string name = "fuzz_node_" + std::to_string(graph.node_size());
  int at = static_cast<int>(rng.below(graph.node_size() + 1));
  for (int i = 0; i < node.input_size(); ++i) {
    if (node.input(i).empty()) continue;
    // The first input is data, the others are arguments as often as not.
    bool constant = rng.chance(i == 0 ? 0.1 : 0.6);
    node.set_input(i, constant ? add_constant(graph, rng) : some_value(graph, at, rng));
  }
  for (int i = 0; i < node.output_size(); ++i) node.set_output(i, name + "_" + std::to_string(i));
  if (rng.chance(0.5)) change_attribute(node, rng);
  node.set_name(name);
  std::string made = node.output_size() > 0 ? node.output(0) : "";
  *graph.add_node() = std::move(node);
  if (made.empty()) return;
  if (rng.chance(0.6)) return add_to_output(graph, made);
  // Nodes may stand in any order; the importer sorts them.
  if (at >= graph.node_size() - 1) return;
  NodeProto& reader = *graph.mutable_node(at + static_cast<int>(rng.below(graph.node_size() - 1 - at)));
  if (reader.input_size() > 0) reader.set_input(static_cast<int>(rng.below(reader.input_size())), made);
}

void NodePool::graft(ModelProto& model, Rng& rng) const {
  GraphProto& graph = *model.mutable_graph();
  std::uint64_t rounds = 1 + rng.below(3);
  for (std::uint64_t round = 0; round < rounds && graph.node_size() > 0; ++round) {
    switch (rng.below(14)) {
      case 0:
        rewire(graph, rng);
        break;
      case 1:
        change_attribute(*graph.mutable_node(static_cast<int>(rng.below(graph.node_size()))), rng);
        break;
      case 2:
        change_input(graph, rng);
        break;
      case 3:
        if (rng.chance(0.5))
          nest_subgraphs(graph, rng);
        else
          nest_functions(model, rng);
        break;
      case 4:
        graph.mutable_node()->SwapElements(static_cast<int>(rng.below(graph.node_size())),
                                           static_cast<int>(rng.below(graph.node_size())));
        break;
      case 5:
      case 6:
        add_control(graph, rng);
        break;
      default:
        if (!nodes_.empty()) insert_node(graph, rng);
    }
  }
}

}  // namespace galvani
