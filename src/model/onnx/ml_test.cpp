// What the cases of tests/conformance/onnxruntime do not show of ai.onnx.ml: damaged trees, and networks.
#include <gtest/gtest.h>
#include <torch/script.h>

#include "galvani/base/error.h"
#include "galvani/model/network.h"
#include "model/onnx/program.h"
#include "model/onnx/test_graph.h"

namespace galvani::onnx {
namespace {

using ::onnx::AttributeProto;

void set_reals(::onnx::NodeProto& node, const std::string& name, const std::vector<float>& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(AttributeProto::FLOATS);
  for (float value : values) attribute->add_floats(value);
}

AttributeProto& attribute_of(TestGraph& graph, const std::string& name) {
  for (auto& attribute : *graph.graph().mutable_node(0)->mutable_attribute()) {
    if (attribute.name() == name) return attribute;
  }
  throw std::runtime_error("no attribute " + name);
}

// One tree: the first feature is at most 0 (class 0), or the second at most 1 (class 1), else class 2.
TestGraph tree_graph() {
  TestGraph graph;
  graph.input("x", {-1, 2});
  auto& node = graph.node("TreeEnsembleClassifier", {"x"}, {"label", "scores"}, "tree");
  node.set_domain("ai.onnx.ml");
  using List = std::vector<std::int64_t>;
  TestGraph::set(node, "nodes_treeids", List{0, 0, 0, 0, 0});
  TestGraph::set(node, "nodes_nodeids", List{0, 1, 2, 3, 4});
  TestGraph::set(node, "nodes_featureids", List{0, 0, 1, 0, 0});
  TestGraph::set(node, "nodes_truenodeids", List{1, 0, 3, 0, 0});
  TestGraph::set(node, "nodes_falsenodeids", List{2, 0, 4, 0, 0});
  set_reals(node, "nodes_values", {0, 0, 1, 0, 0});
  auto* modes = node.add_attribute();
  modes->set_name("nodes_modes");
  modes->set_type(AttributeProto::STRINGS);
  for (const char* mode : {"BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"}) modes->add_strings(mode);
  TestGraph::set(node, "class_treeids", List{0, 0, 0});
  TestGraph::set(node, "class_nodeids", List{1, 3, 4});
  TestGraph::set(node, "class_ids", List{0, 1, 2});
  set_reals(node, "class_weights", {0.5F, 0.75F, 1});
  TestGraph::set(node, "classlabels_int64s", List{10, 20, 30});
  graph.output("label");
  graph.output("scores");
  return graph;
}

std::string refusal_by_tree_of(const TestGraph& graph, const at::Tensor& x) {
  torch::jit::Module module("model");
  try {
    build_module(import_onnx(graph.bytes(), ".", "m.onnx"), "m.onnx", module);
    module.forward({x});
  } catch (const std::exception& error) {
    return error.what();
  }
  return "it runs";
}

at::Tensor rows() {
  return at::tensor({-1.0F, 5.0F, 1.0F, 1.0F, 1.0F, 2.0F}).reshape({3, 2});
}

TEST(Trees, ScoresComeFirst) {
  TestGraph graph = tree_graph();
  Program program = import_onnx(graph.bytes(), ".", "m.onnx");
  EXPECT_EQ(program.outputs.at(0).name, "scores");
  torch::jit::Module module("model");
  build_module(program, "m.onnx", module);
  auto outputs = module.forward({rows()}).toTupleRef().elements().vec();
  at::Tensor scores = at::tensor({0.5F, 0.0F, 0.0F, 0.0F, 0.75F, 0.0F, 0.0F, 0.0F, 1.0F}).reshape({3, 3});
  EXPECT_TRUE(outputs.at(0).toTensor().equal(scores));
  EXPECT_TRUE(outputs.at(1).toTensor().equal(at::tensor({10, 20, 30}, at::kLong)));
}

TEST(Trees, MakeANetwork) {
  auto network = Network::from_onnx(tree_graph().bytes(), "m.onnx", {});
  EXPECT_EQ(network->info().classes, 3);
}

TEST(Trees, DamagedOnesAreRefused) {
  struct Damage {
    const char* attribute;
    int place;
    std::int64_t value;
    const char* message;
  };
  const Damage damages[] = {
      {"nodes_truenodeids", 0, 9, "operator 'TreeEnsembleClassifier' of node 'tree' names the node 9 of its tree 0"},
      {"nodes_falsenodeids", 2, 2, "has two roots in its tree 0"},
      {"nodes_nodeids", 1, 0, "has two nodes 0 in its tree 0"},
      {"nodes_treeids", 4, 7, "which there is not"},
      {"nodes_featureids", 2, 2, "trees that read 3 features"},
      {"nodes_featureids", 2, -1, "names the feature -1"},
      {"class_ids", 0, 3, "names the target 3 of 3"},
      {"class_nodeids", 0, 5, "names the node 5"},
  };
  for (const Damage& damage : damages) {
    TestGraph graph = tree_graph();
    attribute_of(graph, damage.attribute).set_ints(damage.place, damage.value);
    EXPECT_NE(refusal_by_tree_of(graph, rows()).find(damage.message), std::string::npos) << damage.attribute;
  }
  // The third node is its own child, and the leaf that it had is another's.
  TestGraph graph = tree_graph();
  attribute_of(graph, "nodes_falsenodeids").set_ints(2, 2);
  attribute_of(graph, "nodes_modes").set_strings(3, "BRANCH_LEQ");
  attribute_of(graph, "nodes_truenodeids").set_ints(3, 4);
  attribute_of(graph, "nodes_falsenodeids").set_ints(3, 1);
  EXPECT_NE(refusal_by_tree_of(graph, rows()).find("a tree has a cycle"), std::string::npos);
  graph = tree_graph();
  attribute_of(graph, "nodes_values").mutable_floats()->RemoveLast();
  EXPECT_NE(refusal_by_tree_of(graph, rows()).find("has 4 values in 'nodes_values' instead of 5"), std::string::npos);
}

TEST(LinearClassifier, GradientsFlow) {
  TestGraph graph;
  graph.input("x", {-1, 2});
  auto& node = graph.node("LinearClassifier", {"x"}, {"label", "scores"});
  node.set_domain("ai.onnx.ml");
  set_reals(node, "coefficients", {1, 2, 3, 4});
  set_reals(node, "intercepts", {0, 1});
  TestGraph::set(node, "classlabels_ints", std::vector<std::int64_t>{0, 1});
  graph.output("scores");
  torch::jit::Module module("model");
  build_module(import_onnx(graph.bytes(), ".", "m.onnx"), "m.onnx", module);
  at::Tensor x = at::ones({1, 2}).requires_grad_(true);
  module.forward({x}).toTensor().sum().backward();
  EXPECT_TRUE(x.grad().equal(at::tensor({4.0F, 6.0F}).reshape({1, 2})));
}

}  // namespace
}  // namespace galvani::onnx
