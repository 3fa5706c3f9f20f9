// Graphs that take the values of an image in another form than [N, C, H, W].
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/model/network.h"
#include "model/onnx/test_graph.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;
using Shape = std::vector<std::int64_t>;

// Scores are values 4 and 11 of those that the graph takes.
std::unique_ptr<Network> picks(const Shape& graph_input, const Shape& data, const std::string& layout = "",
                               const std::string& input = "") {
  onnx::TestGraph g;
  Shape shape = graph_input;
  shape.insert(shape.begin(), -1);
  g.input("x", shape);
  at::Tensor weight = at::zeros({12, 2});
  weight[4][0] = 1;
  weight[11][1] = 1;
  g.weight("w", weight);
  onnx::TestGraph::set(g.node("Flatten", {"x"}, {"row"}), "axis", 1);
  g.node("MatMul", {"row", "w"}, {"y"}, "product");
  g.output("y");
  Network::Options options;
  options.micro_batch = 2;
  options.data_shape = data;
  options.flags.layout = layout;
  options.flags.input = input;
  return Network::from_onnx(g.bytes(), "flat", options);
}

// What the network's scores are, as values of the image, and where its gradients lie.
void expect_picked(Network& network, at::Tensor image, const at::Tensor& first, const at::Tensor& second) {
  image = image.unsqueeze(0);
  Request request;
  request.objective = [](const Pass& pass) { return pass.logits.select(1, 0); };
  request.input_gradient = true;
  Outputs outputs = network.run(image, request);
  EXPECT_TRUE(at::allclose(outputs.logits[0] * 255, at::stack({first, second}).to(at::kFloat)));
  ASSERT_EQ(outputs.input_gradient.sizes(), image.sizes());
  at::Tensor where = outputs.input_gradient.ne(0);
  EXPECT_EQ(where.sum().item<std::int64_t>(), 1);
  EXPECT_TRUE(image.masked_select(where)[0].equal(first));
}

TEST(FlatInputs, AreImagesOfTheDataChannelByChannelOrPixelByPixel) {
  at::Tensor image = at::arange(12, at::kByte).view({3, 2, 2}) * 20;
  auto planes = picks({12}, {3, 2, 2});
  EXPECT_EQ(planes->info().input, (Shape{3, 2, 2}));
  expect_picked(*planes, image, image[1][0][0], image[2][1][1]);
  auto pixels = picks({12}, {3, 2, 2}, "nhwc");
  expect_picked(*pixels, image, image[1][0][1], image[2][1][1]);
  expect_picked(*planes->clone(), image, image[1][0][0], image[2][1][1]);
}

TEST(FlatInputs, RowsOfAGrayImage) {
  at::Tensor image = at::arange(12, at::kByte).view({1, 3, 4}) * 20;
  for (const Shape& graph : {Shape{12}, Shape{3, 4}}) {
    for (const Shape& data : {Shape{1, 3, 4}, Shape{3, 3, 4}}) {
      auto network = picks(graph, data);
      EXPECT_EQ(network->info().input, (Shape{1, 3, 4}));
      expect_picked(*network, image, image[0][1][0], image[0][2][3]);
    }
    EXPECT_EQ(picks(graph, {}, "", "1,3,4")->info().input, (Shape{1, 3, 4}));
  }
  // Neither the number of values nor the sides are enough by themselves.
  EXPECT_EQ(picks({3, 4}, {1, 4, 3})->info().input, (Shape{3, 4}));
  EXPECT_EQ(picks({12}, {1, 5, 5})->info().input, (Shape{1, 12}));
}

TEST(FlatInputs, OfANetworkThatIsLoadedAlready) {
  auto network = picks({12}, {});
  EXPECT_EQ(network->info().input, (Shape{1, 12}));
  network->read_as_images({3, 5, 5});
  EXPECT_EQ(network->info().input, (Shape{1, 12}));
  network->read_as_images({3, 2, 2});
  at::Tensor image = at::arange(12, at::kByte).view({3, 2, 2}) * 20;
  expect_picked(*network, image, image[1][0][0], image[2][1][1]);
  network->read_as_images({1, 3, 4});
  EXPECT_EQ(network->info().input, (Shape{3, 2, 2}));
}

TEST(FlatInputs, OfTorchScript) {
  at::Tensor weight = at::zeros({2, 12});
  weight[0][4] = weight[1][11] = 1;
  std::string source = "    def forward(self, x):\n        return torch.linear(x, self.weight)\n";
  Network::Options options;
  options.micro_batch = 2;
  std::string message = error_of([&] { testing::scripted(source, {{"weight", weight}}, options); });
  EXPECT_NE(message.find("--input says what it takes"), std::string::npos) << message;
  at::Tensor image = at::arange(12, at::kByte).view({3, 2, 2}) * 20;
  options.data_shape = {3, 2, 2};
  expect_picked(*testing::scripted(source, {{"weight", weight}}, options), image, image[1][0][0], image[2][1][1]);
  options.data_shape = {};
  options.flags.input = "3,2,2";
  expect_picked(*testing::scripted(source, {{"weight", weight}}, options), image, image[1][0][0], image[2][1][1]);
  options.flags.input = "12";
  EXPECT_EQ(testing::scripted(source, {{"weight", weight}}, options)->info().input, (Shape{1, 12}));
  options.data_shape = {3, 2, 2};
  expect_picked(*testing::scripted(source, {{"weight", weight}}, options), image, image[1][0][0], image[2][1][1]);
}

TEST(FlatInputs, WhatDoesNotFitIsToldWhatWould) {
  auto flat = picks({12}, {});
  std::string message = error_of([&] { flat->run(at::zeros({1, 1, 5, 5}, at::kByte)); });
  EXPECT_NE(message.find("--input channels,height,width says which images its 12 values are"), std::string::npos)
      << message;
  auto pixels = picks({2, 2, 3}, {});
  message = error_of([&] { pixels->run(at::zeros({1, 3, 2, 2}, at::kByte)); });
  EXPECT_NE(message.find("--layout nhwc"), std::string::npos) << message;
  EXPECT_EQ(message.find("--resize"), std::string::npos) << message;
  auto planes = picks({3, 2, 2}, {});
  message = error_of([&] { planes->run(at::zeros({1, 2, 2, 3}, at::kByte)); });
  EXPECT_NE(message.find("give them as channels, height, width"), std::string::npos) << message;
  message = error_of([&] { planes->run(at::zeros({1, 3, 4, 4}, at::kByte)); });
  EXPECT_NE(message.find("--resize fit"), std::string::npos) << message;
}

}  // namespace
}  // namespace galvani
