#include <gtest/gtest.h>
#include <torch/script.h>

#include "galvani/base/error.h"
#include "galvani/model/network.h"
#include "galvani/model/onnx_graph.h"
#include "model/onnx/program.h"
#include "model/onnx/test_graph.h"

namespace galvani::onnx {
namespace {

using ::onnx::TensorProto;

at::Tensor whole_numbers(const std::vector<std::int64_t>& values) {
  return at::tensor(values, at::kLong);
}

at::Tensor row(const std::vector<float>& values) {
  return at::tensor(values);
}

at::Tensor run(const TestGraph& graph, const std::vector<c10::IValue>& inputs) {
  torch::jit::Module module("model");
  build_module(import_onnx(graph.bytes(), ".", "m.onnx"), "m.onnx", module);
  return module.forward(inputs).toTensor();
}

std::string error_of(const TestGraph& graph) {
  try {
    import_onnx(graph.bytes(), ".", "m.onnx");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return "";
}

// The message of what a run of the model throws.
std::string failure_of(const TestGraph& graph, const at::Tensor& input) {
  auto loaded = OnnxGraph::from_bytes(graph.bytes(), "m.onnx");
  try {
    loaded->run({input});
  } catch (const Error& error) {
    return error.what();
  }
  return "it runs";
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && at::allclose(a, b);
}

// A graph of one operator that gives `y`.
TestGraph branch(const std::string& op, const std::vector<std::string>& inputs) {
  TestGraph graph;
  graph.node(op, inputs, {"y"});
  graph.output("y");
  return graph;
}

// if sum(x) > 0: y = x * w, else y = x - w; both read names of the graph around them, which comes after the node.
TestGraph choosing() {
  TestGraph graph;
  graph.input("x", {-1});
  auto& node = graph.node("If", {"positive"}, {"out"}, "choose");
  TestGraph::set(node, "then_branch", branch("Mul", {"x", "double"}));
  TestGraph::set(node, "else_branch", branch("Sub", {"x", "double"}));
  graph.node("Add", {"w", "w"}, {"double"});
  graph.node("ReduceSum", {"x"}, {"sum"});
  graph.weight("zero", at::scalar_tensor(0.0F));
  graph.weight("w", row({5}));
  graph.node("Greater", {"sum", "zero"}, {"positive"});
  graph.output("out");
  return graph;
}

TEST(If, TakesTheBranchOfItsCondition) {
  EXPECT_TRUE(same(run(choosing(), {row({1, 2})}), row({10, 20})));
  EXPECT_TRUE(same(run(choosing(), {row({1, -2})}), row({-9, -12})));
}

TEST(If, GradientsFlowThroughTheBranchTaken) {
  torch::jit::Module module("model");
  build_module(import_onnx(choosing().bytes(), ".", "m.onnx"), "m.onnx", module);
  at::Tensor x = row({1, 2}).requires_grad_(true);
  module.forward({x}).toTensor().sum().backward();
  EXPECT_TRUE(same(x.grad(), row({10, 10})));
  for (const at::Tensor& weight : module.parameters()) {
    if (weight.dim() == 1) {
      EXPECT_TRUE(same(weight.grad(), row({6})));
    }
  }
}

// A name of the branch hides the same name outside; the other branch, and what follows, read the outer one.
TEST(If, ABranchMayReuseAName) {
  TestGraph graph = choosing();
  TestGraph hiding;
  hiding.node("Neg", {"x"}, {"double"});
  hiding.node("Identity", {"double"}, {"y"});
  hiding.output("y");
  graph.graph().mutable_node(0)->clear_attribute();
  TestGraph::set(*graph.graph().mutable_node(0), "then_branch", hiding);
  TestGraph::set(*graph.graph().mutable_node(0), "else_branch", branch("Identity", {"double"}));
  EXPECT_TRUE(same(run(graph, {row({1, 2})}), row({-1, -2})));
  EXPECT_TRUE(same(run(graph, {row({-1, -2})}), row({10})));
}

TEST(If, AConstantConditionLeavesNoBranch) {
  TestGraph graph;
  graph.input("x", {-1});
  graph.weight("yes", at::scalar_tensor(true, at::kBool));
  auto& node = graph.node("If", {"yes"}, {"out"});
  TestGraph::set(node, "then_branch", branch("Abs", {"x"}));
  TestGraph::set(node, "else_branch", branch("NoSuchOperator", {"x"}));
  graph.output("out");
  EXPECT_EQ(import_onnx(graph.bytes(), ".", "m.onnx").source.find("if "), std::string::npos);
  EXPECT_TRUE(same(run(graph, {row({-3})}), row({3})));
}

TEST(If, RefusesWhatDoesNotFit) {
  TestGraph graph = choosing();
  graph.graph().mutable_node(0)->mutable_attribute(1)->mutable_g()->mutable_node(0)->set_op_type("Greater");
  EXPECT_NE(error_of(graph).find("operator 'If' of node 'choose' gives values of two types"), std::string::npos);
  graph = choosing();
  graph.graph().mutable_node(0)->mutable_attribute()->RemoveLast();
  EXPECT_NE(error_of(graph).find("has no 'else_branch'"), std::string::npos);
  graph = choosing();
  graph.graph().mutable_node(0)->mutable_attribute(1)->mutable_g()->mutable_node(0)->set_input(0, "nowhere");
  EXPECT_NE(error_of(graph).find("reads 'nowhere', which nothing computes"), std::string::npos);
  // A branch that reads the output of its own node.
  graph = choosing();
  graph.graph().mutable_node(0)->mutable_attribute(1)->mutable_g()->mutable_node(0)->set_input(0, "out");
  EXPECT_NE(error_of(graph).find("cycle"), std::string::npos);
  graph = choosing();
  graph.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->clear_output();
  EXPECT_NE(error_of(graph).find("has 1 outputs and a branch of 0"), std::string::npos);
}

// A loop that carries a and b from pass to pass: (a, b) becomes (b, a + b), and each a is collected. It goes on while
// the new b is less than `limit`, if there is one.
TestGraph fibonacci(const std::string& trips, bool limited) {
  TestGraph body;
  body.input("i", {}, TensorProto::INT64);
  body.input("go", {}, TensorProto::BOOL);
  body.input("a", {1});
  body.input("b", {1});
  if (limited)
    body.node("Less", {"sum", "limit"}, {"on"});
  else
    body.node("Identity", {"go"}, {"on"});
  body.node("Identity", {"b"}, {"next"});
  body.node("Add", {"a", "b"}, {"sum"});
  for (const char* name : {"on", "next", "sum", "a"}) body.output(name);
  TestGraph graph;
  graph.input("x", {1});
  graph.weight("five", at::scalar_tensor(5, at::kLong));
  graph.weight("most", at::scalar_tensor(INT64_MAX, at::kLong));
  graph.weight("limit", row({20}));
  graph.node("Shape", {"x"}, {"sizes"});
  graph.node("ReduceSum", {"sizes"}, {"size"});
  graph.node("Add", {"size", "five"}, {"six"});
  auto& node = graph.node("Loop", {trips, "", "x", "x"}, {"last", "", "all"}, "loop");
  TestGraph::set(node, "body", body);
  graph.node("Flatten", {"all"}, {"flat"});
  graph.node("Transpose", {"flat"}, {"row"});
  graph.node("Unsqueeze", {"last", "axis"}, {"column"});
  graph.weight("axis", whole_numbers({0}));
  graph.node("Concat", {"row", "column"}, {"out"});
  TestGraph::set(graph.graph().mutable_node()->at(graph.graph().node_size() - 1), "axis", 1);
  graph.output("out");
  return graph;
}

TEST(Loop, CarriesAndCollects) {
  // Written out, run as often as another tensor says, and until the condition fails.
  EXPECT_TRUE(same(run(fibonacci("five", false), {row({1})}), row({1, 1, 2, 3, 5, 8}).unsqueeze(0)));
  EXPECT_TRUE(same(run(fibonacci("six", false), {row({1})}), row({1, 1, 2, 3, 5, 8, 13}).unsqueeze(0)));
  EXPECT_TRUE(same(run(fibonacci("most", true), {row({1})}), row({1, 1, 2, 3, 5, 8, 13}).unsqueeze(0)));
  EXPECT_TRUE(same(run(fibonacci("five", true), {row({4})}), row({4, 4, 8, 12}).unsqueeze(0)));
  EXPECT_TRUE(same(run(fibonacci("", true), {row({15})}), row({15, 15}).unsqueeze(0)));
}

TEST(Loop, AFewPassesAreWrittenOut) {
  auto loops = [](const TestGraph& graph) {
    std::string source = import_onnx(graph.bytes(), ".", "m.onnx").source;
    return source.find("for ") != std::string::npos || source.find("while ") != std::string::npos;
  };
  EXPECT_FALSE(loops(fibonacci("five", false)));
  EXPECT_TRUE(loops(fibonacci("six", false)));
  EXPECT_TRUE(loops(fibonacci("five", true)));
}

TEST(Loop, GradientsFlow) {
  torch::jit::Module module("model");
  build_module(import_onnx(fibonacci("six", false).bytes(), ".", "m.onnx"), "m.onnx", module);
  at::Tensor x = row({1}).requires_grad_(true);
  module.forward({x}).toTensor().sum().backward();
  EXPECT_TRUE(same(x.grad(), row({1 + 1 + 2 + 3 + 5 + 8 + 13})));
}

// The value carried has an axis more after each pass, which the first pass does not show.
TEST(Loop, LayersOfAFewPassesAreObserved) {
  auto taps = [](const char* trips) {
    TestGraph body;
    body.input("i", {}, TensorProto::INT64);
    body.input("go", {}, TensorProto::BOOL);
    body.input("v", {});
    body.node("MatMul", {"v", "w"}, {"p"});
    body.node("Relu", {"p"}, {"next"});
    for (const char* name : {"go", "next"}) body.output(name);
    TestGraph graph;
    graph.input("x", {-1, 4});
    graph.weight("w", at::eye(4));
    graph.weight("head", at::ones({4, 3}));
    graph.weight("three", at::scalar_tensor(3, at::kLong));
    graph.weight("one", whole_numbers({1}));
    graph.node("Shape", {"x"}, {"sizes"});
    graph.node("Gather", {"sizes", "one"}, {"width"});
    TestGraph::set(graph.node("Loop", {trips, "", "x"}, {"h"}), "body", body);
    graph.node("MatMul", {"h", "head"}, {"y"});
    graph.output("y");
    auto network = Network::from_onnx(graph.bytes(), "m.onnx", {});
    EXPECT_EQ(network->info().classes, 3);
    return network->taps().size();
  };
  // A product and a Relu for each pass, and the last product; of a loop that runs only the last is seen.
  EXPECT_EQ(taps("three"), 7U);
  EXPECT_EQ(taps("width"), 1U);
}

TEST(If, MakesANetwork) {
  TestGraph graph = choosing();
  graph.weight("head", at::ones({4, 3}));
  graph.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(4);
  graph.node("MatMul", {"out", "head"}, {"y"});
  graph.graph().mutable_output(0)->set_name("y");
  auto network = Network::from_onnx(graph.bytes(), "m.onnx", {});
  EXPECT_EQ(network->info().classes, 3);
}

TEST(Loop, TheRankMayChange) {
  TestGraph body;
  body.input("i", {}, TensorProto::INT64);
  body.input("go", {}, TensorProto::BOOL);
  body.input("v", {-1});
  body.weight("axis", whole_numbers({0}));
  body.node("Unsqueeze", {"v", "axis"}, {"grown"});
  body.node("Transpose", {"grown"}, {"next"});
  for (const char* name : {"go", "next"}) body.output(name);
  TestGraph graph;
  graph.input("x", {-1});
  graph.node("Size", {"x"}, {"trips"});
  TestGraph::set(graph.node("Loop", {"trips", "", "x"}, {"out"}), "body", body);
  graph.output("out");
  EXPECT_EQ(run(graph, {row({1, 2, 3})}).sizes().vec(), std::vector<std::int64_t>({1, 3, 1, 1}));
}

TEST(Loop, NoPassGivesWhatCameIn) {
  TestGraph graph = fibonacci("none", false);
  graph.weight("none", at::scalar_tensor(0, at::kLong));
  graph.graph().mutable_output(0)->set_name("last");
  EXPECT_TRUE(same(run(graph, {row({7})}), row({7})));
  graph.graph().mutable_output(0)->set_name("all");
  // The subgraph says that what it collects has one axis of any length.
  EXPECT_EQ(run(graph, {row({7})}).size(0), 0);
}

TEST(Loop, AnEndlessOneIsStopped) {
  TestGraph graph = fibonacci("most", false);
  EXPECT_NE(failure_of(graph, row({0})).find("its loops take more than 1048576 steps"), std::string::npos);
}

TEST(Loop, WhatItCollectsIsBounded) {
  TestGraph graph = fibonacci("most", false);
  auto& body = *graph.graph().mutable_node(3)->mutable_attribute(0)->mutable_g();
  auto& expand = *body.add_node();
  expand.set_op_type("Expand");
  expand.add_input("a");
  expand.add_input("large");
  expand.add_output("many");
  body.mutable_output(3)->set_name("many");
  graph.weight("large", whole_numbers({1 << 20}));
  EXPECT_NE(failure_of(graph, row({0})).find("a loop collects more than"), std::string::npos);
}

TEST(Loop, IsNestedOnlySoDeep) {
  TestGraph inner = branch("Abs", {"x"});
  for (int depth = 0; depth < 40; ++depth) {
    TestGraph outer;
    auto& node = outer.node("If", {"flag"}, {"y"}, "nested");
    TestGraph::set(node, "then_branch", inner);
    TestGraph::set(node, "else_branch", branch("Abs", {"x"}));
    outer.output("y");
    inner = outer;
  }
  inner.input("x", {1});
  inner.input("flag", {1}, TensorProto::BOOL);
  // Protocol buffers within each other end sooner than the importer's own limit does.
  EXPECT_NE(error_of(inner), "");
}

TEST(Scan, ReadsAndCollectsInEitherDirection) {
  TestGraph body;
  body.input("sum", {2});
  body.input("part", {2});
  body.node("Add", {"sum", "part"}, {"next"});
  body.node("Mul", {"next", "w"}, {"scaled"});
  for (const char* name : {"next", "scaled"}) body.output(name);
  TestGraph graph;
  graph.input("x", {2, -1});
  graph.weight("start", at::zeros({2}));
  graph.weight("w", row({1, 10}));
  auto& node = graph.node("Scan", {"start", "x"}, {"", "out"});
  TestGraph::set(node, "body", body);
  TestGraph::set(node, "num_scan_inputs", 1);
  TestGraph::set(node, "scan_input_axes", std::vector<std::int64_t>{1});
  TestGraph::set(node, "scan_input_directions", std::vector<std::int64_t>{1});
  TestGraph::set(node, "scan_output_axes", std::vector<std::int64_t>{1});
  graph.output("out");
  at::Tensor x = row({1, 2, 3, 4, 5, 6}).reshape({2, 3});
  // Sums from the last column to the first: 3, 5, 6 and 6, 11, 15.
  EXPECT_TRUE(same(run(graph, {x}), row({3, 5, 6, 60, 110, 150}).reshape({2, 3})));
  TestGraph::set(node, "scan_output_directions", std::vector<std::int64_t>{1});
  EXPECT_TRUE(same(run(graph, {x}), row({6, 5, 3, 150, 110, 60}).reshape({2, 3})));
}

// Split, one piece dropped, another put in front, and joined again.
TEST(Sequence, IsTakenApartAndJoined) {
  TestGraph graph;
  graph.input("x", {-1});
  graph.weight("two", at::scalar_tensor(2, at::kLong));
  graph.weight("last", at::scalar_tensor(-1, at::kLong));
  graph.weight("first", at::scalar_tensor(0, at::kLong));
  graph.node("SplitToSequence", {"x", "two"}, {"pieces"});
  graph.node("SequenceAt", {"pieces", "last"}, {"piece"});
  graph.node("SequenceErase", {"pieces", "last"}, {"fewer"});
  graph.node("SequenceInsert", {"fewer", "piece", "first"}, {"turned"});
  TestGraph::set(graph.node("ConcatFromSequence", {"turned"}, {"out"}), "axis", 0);
  graph.output("out");
  EXPECT_TRUE(same(run(graph, {row({1, 2, 3, 4, 5})}), row({5, 1, 2, 3, 4})));
}

// What a scripted loop that appends to a list becomes.
TEST(Sequence, GrowsInALoop) {
  TestGraph body;
  body.input("i", {}, TensorProto::INT64);
  body.input("go", {}, TensorProto::BOOL);
  body.input("list", {});
  body.node("Cast", {"i"}, {"number"});
  TestGraph::set(body.graph().mutable_node()->at(0), "to", std::int64_t{1});
  body.node("Mul", {"x", "number"}, {"scaled"});
  body.node("SequenceInsert", {"list", "scaled"}, {"longer"});
  for (const char* name : {"go", "longer"}) body.output(name);
  TestGraph graph;
  graph.input("x", {-1});
  graph.node("SequenceEmpty", {}, {"empty"});
  graph.node("Size", {"x"}, {"trips"});
  TestGraph::set(graph.node("Loop", {"trips", "", "empty"}, {"list"}), "body", body);
  auto& join = graph.node("ConcatFromSequence", {"list"}, {"out"});
  TestGraph::set(join, "axis", std::int64_t{0});
  TestGraph::set(join, "new_axis", std::int64_t{1});
  graph.output("out");
  auto loaded = OnnxGraph::from_bytes(graph.bytes(), "m.onnx");
  EXPECT_TRUE(same(loaded->run({row({3, 4})}).at(0), row({0, 0, 3, 4}).reshape({2, 2})));
}

TEST(Sequence, IsNoTensor) {
  TestGraph graph;
  graph.input("x", {-1});
  graph.node("SequenceConstruct", {"x", "x"}, {"list"});
  graph.node("Relu", {"list"}, {"y"}, "relu");
  graph.output("y");
  EXPECT_NE(error_of(graph).find("operator 'Relu' of node 'relu' reads 'list', which is a sequence of tensors"),
            std::string::npos);
  graph.graph().mutable_output(0)->set_name("list");
  graph.graph().mutable_node()->RemoveLast();
  EXPECT_NE(error_of(graph).find("output 'list' is a sequence of tensors"), std::string::npos);
}

TEST(Optional, IsKnownAtImport) {
  TestGraph graph(15);
  graph.input("x", {-1});
  graph.node("Optional", {"x"}, {"full"});
  graph.node("Optional", {}, {"empty"});
  graph.node("OptionalHasElement", {"empty"}, {"some"});
  auto& node = graph.node("If", {"some"}, {"out"});
  TestGraph::set(node, "then_branch", branch("OptionalGetElement", {"empty"}));
  TestGraph::set(node, "else_branch", branch("OptionalGetElement", {"full"}));
  graph.output("out");
  EXPECT_TRUE(same(run(graph, {row({3})}), row({3})));
}

}  // namespace
}  // namespace galvani::onnx
