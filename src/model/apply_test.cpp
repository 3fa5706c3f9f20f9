// Networks that give no class scores.
#include <gtest/gtest.h>
#include <torch/script.h>

#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/model/evaluate.h"
#include "model/onnx/test_graph.h"
#include "model/testing.h"

namespace galvani {
namespace {

using onnx::TestGraph;
using testing::error_of;
using testing::random_images;

Network::Options for_any_output(std::int64_t micro_batch = 4) {
  Network::Options options;
  options.execution = {micro_batch, false};
  options.data_shape = {3, 8, 8};
  options.any_output = true;
  return options;
}

// 3x8x8 → an image of the same size and, as a second output, a softmax over two features of it.
TestGraph generator_graph() {
  at::manual_seed(6);
  TestGraph graph;
  graph.input("x", {-1, 3, 8, 8});
  graph.weight("conv.weight", at::randn({3, 3, 3, 3}) * 0.2);
  TestGraph::set(graph.node("Conv", {"x", "conv.weight"}, {"c"}, "conv"), "pads",
                 std::vector<std::int64_t>{1, 1, 1, 1});
  graph.weight("ratio", at::full({}, 0.5));
  graph.node("Dropout", {"c", "ratio"}, {"d"});
  graph.node("Tanh", {"d"}, {"image"}, "tanh");
  graph.node("Flatten", {"image"}, {"f"});
  graph.weight("fc.weight", at::randn({192, 2}));
  graph.node("MatMul", {"f", "fc.weight"}, {"m"}, "fc");
  TestGraph::set(graph.node("Softmax", {"m"}, {"p"}), "axis", std::int64_t{1});
  graph.output("image");
  graph.output("p");
  return graph;
}

TEST(Apply, GivesEveryOutputAsTheFileHasIt) {
  auto network = Network::from_onnx(generator_graph().bytes(), "generator.onnx", for_any_output());
  EXPECT_EQ(network->info().classes, 0);
  ASSERT_EQ(network->info().outputs.size(), 2U);
  EXPECT_EQ(network->info().outputs[0].name, "image");
  EXPECT_EQ(network->info().outputs[0].shape, (std::vector<std::int64_t>{3, 8, 8}));
  EXPECT_EQ(network->info().outputs[1].shape, (std::vector<std::int64_t>{2}));
  at::Tensor images = random_images(*network, 11);
  std::vector<at::Tensor> found = network->apply(images);
  at::Tensor x = images.to(at::kFloat) / 255;
  at::Tensor image = at::tanh(at::conv2d(x, network->parameter("conv.weight"), {}, 1, 1));
  at::Tensor p = at::matmul(image.flatten(1), network->parameter("fc.weight")).softmax(1);
  EXPECT_TRUE(at::allclose(found[0], image, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(found[1], p, 1e-4, 1e-5));
  for (int n : {1, 3}) {
    set_workers(n);
    EXPECT_TRUE(at::equal(network->apply(images)[0], found[0]));
  }
  Application alone;
  alone.alone = true;
  EXPECT_TRUE(at::equal(network->apply(images, alone)[0][7], network->apply(images.narrow(0, 7, 1), alone)[0][0]));
  EXPECT_EQ(network->apply(images.narrow(0, 0, 0))[0].sizes(), (std::vector<std::int64_t>{0, 3, 8, 8}));
}

TEST(Apply, DropoutMakesChildrenDiffer) {
  auto network = Network::from_onnx(generator_graph().bytes(), "generator.onnx", for_any_output(2));
  at::Tensor images = random_images(*network, 1).expand({6, 3, 8, 8}).contiguous();
  Application how;
  how.random = RandomLayers{3, 10};
  at::Tensor children = network->apply(images, how)[0];
  EXPECT_FALSE(at::equal(children[0], children[1]));
  EXPECT_NEAR(children.eq(0).to(at::kFloat).mean().item<double>(), 0.5, 0.06);
  set_workers(3);
  EXPECT_TRUE(at::equal(network->apply(images, how)[0], children));
  how.random->first_row = 14;
  EXPECT_TRUE(at::allclose(network->apply(images.narrow(0, 0, 2), how)[0], children.narrow(0, 4, 2), 1e-5, 1e-6));
}

TEST(Apply, WhatNeedsScoresRefuses) {
  auto network = Network::from_onnx(generator_graph().bytes(), "generator.onnx", for_any_output());
  at::Tensor images = random_images(*network, 2);
  EXPECT_NE(error_of([&] { network->run(images); }).find("generator.onnx: gives no score per class"),
            std::string::npos);
  EXPECT_NE(error_of([&] { predict(*network, images); }).find("score per class"), std::string::npos);
  Network::Options classifier = for_any_output();
  classifier.any_output = false;
  EXPECT_NE(error_of([&] { Network::from_onnx(generator_graph().bytes(), "g", classifier); }).find("not supported yet"),
            std::string::npos);
  auto usual = testing::zoo_network("lenet5");
  EXPECT_FALSE(error_of([&] { usual->apply(random_images(*usual, 1)); }).empty());
}

TEST(Apply, ClassifiersKeepTheirScores) {
  TestGraph graph;
  graph.input("x", {-1, 3, 8, 8});
  graph.node("Flatten", {"x"}, {"f"});
  at::manual_seed(6);
  graph.weight("fc.weight", at::randn({192, 3}));
  graph.node("MatMul", {"f", "fc.weight"}, {"m"});
  TestGraph::set(graph.node("Softmax", {"m"}, {"p"}), "axis", std::int64_t{1});
  graph.output("p");
  auto network = Network::from_onnx(graph.bytes(), "c.onnx", for_any_output());
  EXPECT_EQ(network->info().classes, 3);
  at::Tensor images = random_images(*network, 5);
  EXPECT_TRUE(at::allclose(network->apply(images)[0], network->run(images).logits.softmax(1), 1e-5, 1e-6));
}

TEST(Apply, TorchScriptTuplesClonesAndFiles) {
  at::manual_seed(6);
  torch::jit::Module module("encoder");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("weight", at::randn({16, 192}) / 10, false);
  module.define(R"(
def forward(self, x):
    y = torch.linear(torch.flatten(x, 1), self.weight)
    return y.view([-1, 4, 4]), torch.sum(y, [1])
)");
  TemporaryFolder folder;
  module.save((folder / "encoder.pt").string());
  auto network = Network::load(folder / "encoder.pt", for_any_output());
  ASSERT_EQ(network->info().outputs.size(), 2U);
  EXPECT_EQ(network->info().outputs[0].shape, (std::vector<std::int64_t>{4, 4}));
  EXPECT_TRUE(network->info().outputs[1].shape.empty());
  at::Tensor images = random_images(*network, 6);
  std::vector<at::Tensor> found = network->apply(images);
  EXPECT_TRUE(at::allclose(found[0].sum({1, 2}), found[1], 1e-4, 1e-5));
  auto copy = network->clone();
  copy->set_parameter("weight", copy->parameter("weight") * 2);
  EXPECT_TRUE(at::allclose(copy->apply(images)[0], found[0] * 2));
  EXPECT_TRUE(at::equal(network->apply(images)[0], found[0]));
  copy->save(folder / "copy.pt");
  EXPECT_TRUE(at::equal(Network::load(folder / "copy.pt", for_any_output())->apply(images)[0], copy->apply(images)[0]));
}

TEST(Apply, AnOutputWithoutARowPerInputIsRefused) {
  TestGraph graph;
  graph.input("x", {-1, 3, 8, 8});
  TestGraph::set(graph.node("ReduceMean", {"x"}, {"y"}), "axes", std::vector<std::int64_t>{0});
  graph.output("y");
  EXPECT_NE(error_of([&] { Network::from_onnx(graph.bytes(), "mean.onnx", for_any_output()); }).find("'y'"),
            std::string::npos);
}

}  // namespace
}  // namespace galvani
