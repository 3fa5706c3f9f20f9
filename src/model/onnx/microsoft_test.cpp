// What ONNX Runtime has no CPU kernel for, so that the cases of tests/conformance/onnxruntime have none either.
#include <gtest/gtest.h>
#include <torch/script.h>

#include "galvani/base/error.h"
#include "model/onnx/program.h"
#include "model/onnx/test_graph.h"

namespace galvani::onnx {
namespace {

at::Tensor run(const TestGraph& graph, const at::Tensor& input) {
  torch::jit::Module module("model");
  build_module(import_onnx(graph.bytes(), ".", "m.onnx"), "m.onnx", module);
  return module.forward({input}).toTensor();
}

TEST(Microsoft, ReducesQuantisedMeans) {
  TestGraph graph;
  graph.input("x", {-1, 2}, ::onnx::TensorProto::UINT8);
  graph.weight("x_scale", at::scalar_tensor(0.5F));
  graph.weight("x_zero", at::scalar_tensor(10, at::kByte));
  graph.weight("y_scale", at::scalar_tensor(0.25F));
  graph.weight("y_zero", at::scalar_tensor(100, at::kByte));
  auto& node = graph.node("QLinearReduceMean", {"x", "x_scale", "x_zero", "y_scale", "y_zero"}, {"y"});
  node.set_domain("com.microsoft");
  TestGraph::set(node, "axes", std::vector<std::int64_t>{1});
  TestGraph::set(node, "keepdims", std::int64_t{0});
  graph.output("y");
  at::Tensor x = at::tensor({10, 14, 4, 6, 255, 255}).to(at::kByte).reshape({3, 2});
  // (0 + 2) / 2 = 1 and (-3 - 2) / 2 = -2.5 in steps of 0.25 from 100; 122.5 is 490 steps, so the end of the range.
  EXPECT_TRUE(run(graph, x).equal(at::tensor({104, 90, 255}).to(at::kByte)));
}

TEST(Microsoft, AddsBiasAndSkip) {
  TestGraph graph;
  graph.input("x", {-1, 2});
  graph.weight("bias", at::tensor({1.0F, 2.0F}));
  auto& node = graph.node("BiasAdd", {"x", "bias", "x"}, {"y"});
  node.set_domain("com.microsoft");
  graph.output("y");
  EXPECT_TRUE(run(graph, at::tensor({3.0F, 4.0F}).reshape({1, 2})).equal(at::tensor({7.0F, 10.0F}).reshape({1, 2})));
}

TEST(Microsoft, NamesWhatIsNotSupported) {
  TestGraph graph;
  graph.input("x", {-1, 2});
  auto& node = graph.node("BeamSearch", {"x"}, {"y"}, "search");
  node.set_domain("com.microsoft");
  graph.output("y");
  try {
    import_onnx(graph.bytes(), ".", "m.onnx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "m.onnx: operator 'BeamSearch' of node 'search' is not supported");
  }
}

}  // namespace
}  // namespace galvani::onnx
