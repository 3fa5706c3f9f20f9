// Graphs and values of absurd sizes: they run, or are refused by a stated limit before they take memory or time.
#include <gtest/gtest.h>

#include <functional>

#include "galvani/base/error.h"
#include "galvani/base/runtime.h"
#include "model/graph_tools.h"
#include "model/limits.h"
#include "model/onnx/test_graph.h"
#include "model/testing.h"

namespace galvani {
namespace {

using onnx::TestGraph;
using testing::error_of;

std::unique_ptr<Network> load(const TestGraph& graph, std::int64_t batch = 1) {
  init_runtime();
  Network::Options options;
  options.execution = {batch, false};
  return Network::from_onnx(graph.bytes(), "m.onnx", options);
}

// x, images of 1x2x2, → "conv", twice the image.
TestGraph doubled(std::int64_t batch = -1) {
  TestGraph graph;
  graph.input("x", {batch, 1, 2, 2});
  graph.weight("w", at::full({1, 1, 1, 1}, 2.0F));
  graph.node("Conv", {"x", "w"}, {"conv"}, "first");
  graph.output("y");
  return graph;
}

TestGraph chain(const std::string& op, int length) {
  TestGraph graph = doubled();
  std::string last = "conv";
  for (int i = 0; i < length; ++i) {
    std::string next = "c" + std::to_string(i);
    graph.node(op, {last}, {next});
    last = next;
  }
  graph.node("Flatten", {last}, {"y"});
  return graph;
}

TestGraph side_by_side(int width) {
  TestGraph graph = doubled();
  std::vector<std::string> all;
  for (int i = 0; i < width; ++i) {
    all.push_back("c" + std::to_string(i));
    graph.node("Relu", {"conv"}, {all.back()});
  }
  graph.node("Sum", all, {"sum"});
  graph.node("Flatten", {"sum"}, {"y"});
  return graph;
}

at::Tensor image() {
  return at::tensor(std::vector<std::uint8_t>{1, 2, 3, 4}, at::kByte).view({1, 1, 2, 2});
}

TEST(LargeGraph, ChainOfTwelveThousandNodesRuns) {
  auto network = load(chain("Relu", 12000));
  EXPECT_EQ(network->taps().size(), 12001U);
  Request request;
  request.objective = [](const Pass& pass) { return pass.logits.sum(1); };
  request.input_gradient = true;
  Outputs out = network->run(image(), request);
  EXPECT_FLOAT_EQ(out.objective.item<float>(), 2 * (1 + 2 + 3 + 4) / 255.0F);
  EXPECT_TRUE(at::allclose(out.input_gradient, at::full({1, 1, 2, 2}, 2 / 255.0F)));
}

TEST(LargeGraph, ChainOfViewsRuns) {
  auto network = load(chain("Transpose", 12000));
  // Every second value has its axes in the order in which the batch comes first.
  EXPECT_EQ(network->layers().size(), 6002U);
  EXPECT_EQ(network->info().classes, 4);
}

TEST(LargeGraph, TenThousandNodesSideBySideRun) {
  auto network = load(side_by_side(10000));
  // Equal subexpressions are one.
  EXPECT_EQ(network->taps().size(), 2U);
  EXPECT_NEAR(network->run(image()).logits[0][3].item<float>(), 10000 * 2 * 4 / 255.0F, 0.1);
}

TEST(LargeGraph, MoreNodesThanTheLimitAreRefused) {
  std::string nodes = error_of([] { load(chain("Relu", static_cast<int>(kMostStatements))); });
  EXPECT_EQ(nodes, "m.onnx: has more than 100000 nodes");
  // A sum of n tensors is n - 1 statements.
  std::string statements = error_of([] { load(side_by_side(static_cast<int>(kMostStatements / 2 + 1))); });
  EXPECT_EQ(statements, "m.onnx: its nodes become more than 100000 statements");
}

TEST(LargeGraph, MoreWeightsThanTheLimitAreRefused) {
  TestGraph graph = doubled();
  std::string last = "conv";
  for (std::int64_t i = 0; i < kMostTensors; ++i) {
    std::string n = std::to_string(i);
    graph.weight("w" + n, at::ones({1}));
    graph.node("Add", {last, "w" + n}, {"c" + n});
    last = "c" + n;
  }
  graph.node("Flatten", {last}, {"y"});
  EXPECT_EQ(error_of([&] { load(graph); }), "m.onnx: reads more than 20000 weights and constants");
}

TEST(LargeGraph, FunctionsThatRepeatLongAttributesAreRefused) {
  TestGraph graph = doubled();
  auto& function = *graph.model.add_functions();
  function.set_name("Long");
  function.set_domain("own");
  function.add_input("a");
  function.add_output("b");
  function.add_opset_import()->set_version(13);
  ::onnx::NodeProto& inner = *function.add_node();
  inner.set_op_type("Transpose");
  inner.add_input("a");
  inner.add_output("b");
  TestGraph::set(inner, "perm", std::vector<std::int64_t>(100000, 1));
  graph.model.add_opset_import()->set_domain("own");
  for (int i = 0; i < 50000; ++i) {
    std::string n = std::to_string(i);
    graph.node("Long", {"conv"}, {"c" + n}).set_domain("own");
  }
  graph.node("Flatten", {"conv"}, {"y"});
  EXPECT_EQ(error_of([&] { load(graph); }), "m.onnx: its statements take more than 67108864 bytes");
}

TEST(LargeGraph, SubgraphsNestedDeeplyAreRefused) {
  TestGraph graph = doubled();
  ::onnx::GraphProto* inner = &graph.graph();
  for (int i = 0; i < 10000; ++i) {
    ::onnx::NodeProto* node = inner->add_node();
    node->set_op_type("If");
    node->add_output("o");
    ::onnx::AttributeProto* branch = node->add_attribute();
    branch->set_name("then_branch");
    branch->set_type(::onnx::AttributeProto::GRAPH);
    inner = branch->mutable_g();
  }
  EXPECT_NE(error_of([&] { load(graph); }).find("is not an ONNX model"), std::string::npos);
}

TEST(LargeGraph, FixedBatchesAreBounded) {
  auto with_batch = [](std::int64_t batch) {
    TestGraph graph = doubled(batch);
    graph.weight("shape", at::tensor({batch, std::int64_t{4}}, at::kLong));
    graph.node("Reshape", {"conv", "shape"}, {"y"});
    return graph;
  };
  EXPECT_EQ(load(with_batch(kLargestBatch), kLargestBatch)->info().fixed_batch, kLargestBatch);
  EXPECT_EQ(error_of([&] { load(with_batch(1'000'000)); }),
            "m.onnx: takes batches of 1000000 only, more than the 4096 supported for its input; export it with an open "
            "batch size");
  // Of large images fewer fit.
  TestGraph large;
  large.input("x", {4096, 3, 224, 224});
  large.node("Flatten", {"x"}, {"y"});
  large.output("y");
  EXPECT_NE(error_of([&] { load(large); }).find("more than the 1783 supported"), std::string::npos);
}

struct Bomb {
  const char* what;
  std::function<void(TestGraph&)> add;  // makes "big" from "conv"
  const char* message;
};

at::Tensor ints(const std::vector<std::int64_t>& values) {
  return at::tensor(values, at::kLong);
}

constexpr const char* kTooLarge = "is larger than the 4.0 GiB that one may take";
constexpr const char* kTooMany = "a tensor of more than 1073741824 elements";
constexpr std::int64_t kMillion = 1'000'000;

const Bomb kBombs[] = {
    {"Expand",
     [](TestGraph& g) {
       TestGraph::set(g.node("ReduceMean", {"conv"}, {"mean"}), "axes", std::vector<std::int64_t>{2, 3});
       g.weight("s", ints({1, 1, kMillion, kMillion}));
       g.node("Expand", {"mean", "s"}, {"big"});
     },
     kTooMany},
    {"Tile",
     [](TestGraph& g) {
       g.weight("s", ints({1, 1, kMillion, kMillion}));
       g.node("Tile", {"conv", "s"}, {"big"});
     },
     kTooMany},
    {"Resize",
     [](TestGraph& g) {
       g.weight("s", at::tensor({1.0F, 1.0F, 50000.0F, 50000.0F}));
       g.node("Resize", {"conv", "", "s"}, {"big"});
     },
     "a resized tensor of more than 1073741824 elements"},
    {"Pad",
     [](TestGraph& g) {
       g.weight("s", ints({0, 0, kMillion, kMillion, 0, 0, kMillion, kMillion}));
       g.node("Pad", {"conv", "s"}, {"big"});
     },
     kTooMany},
    {"padding of a convolution",
     [](TestGraph& g) {
       TestGraph::set(g.node("Conv", {"conv", "w"}, {"big"}), "pads", std::vector<std::int64_t>(4, 60000));
     },
     kTooLarge},
    {"stride of a transposed convolution",
     [](TestGraph& g) {
       TestGraph::set(g.node("ConvTranspose", {"conv", "w"}, {"big"}), "strides", std::vector<std::int64_t>(2, 60000));
     },
     kTooLarge},
    {"ConstantOfShape of a computed shape",
     [](TestGraph& g) {
       g.weight("k", ints({1, 1, kMillion, kMillion}));
       g.node("Shape", {"conv"}, {"shape"});
       g.node("Mul", {"shape", "k"}, {"larger"});
       g.node("ConstantOfShape", {"larger"}, {"big"});
     },
     kTooMany},
    {"ConstantOfShape of an empty tensor whose strides overflow",
     [](TestGraph& g) {
       g.weight("k", ints({kMillion * kMillion, 0, kMillion * kMillion, kMillion}));
       g.node("Shape", {"conv"}, {"shape"});
       g.node("Mul", {"shape", "k"}, {"larger"});
       g.node("ConstantOfShape", {"larger"}, {"big"});
     },
     kTooMany},
    {"the same at import",
     [](TestGraph& g) {
       g.weight("k", ints({kMillion * kMillion, 0, kMillion * kMillion, kMillion}));
       g.node("ConstantOfShape", {"k"}, {"big"});
     },
     "makes a tensor larger than"},
    {"Reshape of an empty tensor",
     [](TestGraph& g) {
       g.weight("none", ints({0, 1}));
       g.weight("s", ints({-1, kMillion * kMillion, kMillion * kMillion}));
       g.node("ConstantOfShape", {"none"}, {"empty"});
       g.node("Reshape", {"empty", "s"}, {"big"});
     },
     kTooMany},
    {"Range of a computed length",
     [](TestGraph& g) {
       g.weight("k", at::scalar_tensor(kMillion * kMillion, at::kLong));
       g.weight("zero", at::scalar_tensor(0, at::kLong));
       g.weight("one", at::scalar_tensor(1, at::kLong));
       g.node("Size", {"conv"}, {"size"});
       g.node("Mul", {"size", "k"}, {"length"});
       TestGraph::set(g.node("Cast", {"range"}, {"big"}), "to", 1);
       g.node("Range", {"zero", "length", "one"}, {"range"});
     },
     kTooLarge},
    {"OneHot of a computed depth",
     [](TestGraph& g) {
       g.weight("k", at::scalar_tensor(kMillion * kMillion, at::kLong));
       g.weight("values", at::tensor({0.0F, 1.0F}));
       g.node("Size", {"conv"}, {"size"});
       g.node("Mul", {"size", "k"}, {"depth"});
       TestGraph::set(g.node("Cast", {"conv"}, {"index"}), "to", 7);
       g.node("OneHot", {"index", "depth", "values"}, {"big"});
     },
     kTooLarge},
    {"products of products",
     [](TestGraph& g) {
       g.weight("rows", ints({-1, 1}));
       g.weight("columns", ints({1, -1}));
       std::string last = "conv";
       for (int i = 0; i < 6; ++i) {
         std::string n = std::to_string(i);
         g.node("Reshape", {last, "rows"}, {"r" + n});
         g.node("Reshape", {last, "columns"}, {"c" + n});
         g.node("Add", {"r" + n, "c" + n}, {"a" + n});
         last = "a" + n;
       }
       g.node("Relu", {last}, {"big"});
     },
     kTooLarge},
};

TEST(LargeGraph, ValuesBeyondTheLimitAreRefusedBeforeTheyExist) {
  for (const Bomb& bomb : kBombs) {
    TestGraph graph = doubled();
    bomb.add(graph);
    TestGraph::set(graph.node("ReduceMean", {"big"}, {"mean_of_big"}), "keepdims", 0);
    graph.node("Add", {"conv", "mean_of_big"}, {"sum"});
    graph.node("Flatten", {"sum"}, {"y"});
    auto start = std::chrono::steady_clock::now();
    std::string error = error_of([&] { load(graph); });
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_NE(error.find(bomb.message), std::string::npos) << bomb.what << ": " << error;
    EXPECT_LT(took.count(), 1) << bomb.what;
  }
}

TEST(LargeGraph, SequencesBeyondTheLimitAreRefused) {
  TestGraph graph = doubled();
  graph.weight("sizes", ints({0, 100'000'000, 1}));
  graph.weight("rw", at::ones({1, 3, 1}));
  graph.weight("rr", at::ones({1, 3, 3}));
  graph.node("ConstantOfShape", {"sizes"}, {"sequence"});
  TestGraph::set(graph.node("RNN", {"sequence", "rw", "rr"}, {"steps"}), "layout", 1);
  TestGraph::set(graph.node("ReduceSum", {"steps"}, {"total"}), "keepdims", 0);
  graph.node("Add", {"conv", "total"}, {"sum"});
  graph.node("Flatten", {"sum"}, {"y"});
  std::string error = error_of([&] { load(graph); });
  EXPECT_NE(error.find("a sequence of 100000000 steps"), std::string::npos) << error;
}

TEST(Network, RefusesResultsWhoseShapeDependsOnTheImages) {
  TestGraph graph = doubled();
  TestGraph::set(graph.node("Unique", {"conv"}, {"different"}), "axis", 0);
  graph.node("Flatten", {"different"}, {"y"});
  auto network = load(graph, 2);
  Request request;
  request.objective = [](const Pass& pass) { return pass.logits.sum(1); };
  at::Tensor twins = image().repeat({2, 1, 1, 1});
  std::string sentence = "m.onnx: the shape of its results depends on the images, which is not supported";
  EXPECT_EQ(error_of([&] { network->run(twins, request); }), sentence);
  EXPECT_EQ(error_of([&] { network->run(twins); }), sentence);
}

TEST(GraphTools, ReasonOfAnInterpreterErrorIsItsLastLine) {
  EXPECT_EQ(first_line("The following operation failed in the TorchScript interpreter.\nTraceback ...\n    x = f(y)\n"
                       "RuntimeError: sizes differ\nmore"),
            "sizes differ");
  EXPECT_EQ(first_line("\n  one\ntwo"), "one");
}

}  // namespace
}  // namespace galvani
