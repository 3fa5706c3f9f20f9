// Networks of sounds: [channels, length] of 16 bits.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/model/evaluate.h"
#include "galvani/model/inputs.h"
#include "galvani/model/network.h"
#include "model/onnx/test_graph.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;

// Two channels, the sound and its negative, averaged over time: logits (mean, -mean) of what the network sees.
std::unique_ptr<Network> means(std::int64_t length, const std::string& range = "",
                               const std::vector<std::int64_t>& data = {}) {
  onnx::TestGraph g;
  g.input("x", {-1, 1, length});
  g.weight("w", at::tensor({1.F, -1.F}, at::kFloat).view({2, 1, 1}));
  g.node("Conv", {"x", "w"}, {"both"}, "conv");
  g.node("GlobalAveragePool", {"both"}, {"mean"});
  onnx::TestGraph::set(g.node("Flatten", {"mean"}, {"y"}), "axis", 1);
  g.output("y");
  Network::Options options;
  options.flags.range = range;
  options.micro_batch = 4;
  options.data_shape = data;
  return Network::from_onnx(g.bytes(), "means", options);
}

TEST(Sounds, RunThroughANetwork) {
  std::unique_ptr<Network> network = means(4);
  EXPECT_EQ(network->info().input, (std::vector<std::int64_t>{1, 4}));
  at::Tensor sounds = at::tensor({32767, 32767, 32767, 32767, -32768, 0, 0, 0, 0, 0, 16384, 0}, at::kShort);
  Request request;
  request.taps = network->select_taps("conv");
  Outputs outputs = network->run(sounds.view({3, 1, 4}), request);
  // 16 bits are divided by 32768.
  at::Tensor expected = at::tensor({32767.F / 32768, -0.25F, 0.125F});
  EXPECT_TRUE(at::allclose(outputs.logits.select(1, 0), expected, 0, 1e-7)) << outputs.logits;
  EXPECT_TRUE(at::allclose(outputs.taps[0], outputs.logits, 0, 1e-7));
  EXPECT_EQ(predict(*network, sounds.view({3, 1, 4})).labels[1].item<std::int64_t>(), 1);
  // Floats are on the same scale.
  EXPECT_TRUE(network->run(sounds.view({3, 1, 4}).to(at::kFloat)).logits.equal(outputs.logits));
  EXPECT_NE(error_of([&] {
              network->run(at::zeros({3, 1, 5}, at::kShort));
            }).find("clips of shape 1x5"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              network->run(at::zeros({3, 1, 4, 4}, at::kByte));
            }).find("images of shape 1x4x4"),
            std::string::npos);
}

TEST(Sounds, TheCardSaysWhatTheNetworkSees) {
  std::unique_ptr<Network> raw = means(2, "0..32768");
  at::Tensor sound = at::tensor({100, 300}, at::kShort).view({1, 1, 2});
  EXPECT_NEAR(raw->run(sound).logits[0][0].item<float>(), 200, 1e-3);
  Request request;
  request.objective = [](const Pass& pass) { return pass.logits.select(1, 0); };
  request.input_gradient = true;
  at::Tensor gradient = means(2)->run(sound, request).input_gradient;
  EXPECT_EQ(gradient.sizes().vec(), (std::vector<std::int64_t>{1, 1, 2}));
  EXPECT_TRUE(at::allclose(gradient, at::full({1, 1, 2}, 0.5 / 32768))) << gradient;
}

TEST(Sounds, PreprocessingIsThatOfSamples) {
  EXPECT_EQ(preprocessing_text(*means(2)), "samples -1..1");
  EXPECT_EQ(preprocessing_text(*means(2, "0..32768")), "samples -32768..32768");
  Evaluation poor;
  poor.images = 1000;
  poor.accuracy = 0.5;
  std::string told = suspicious(*means(2), poor, "words/").value_or("");
  EXPECT_NE(told.find("samples -1..1 (assumed"), std::string::npos) << told;
  EXPECT_EQ(told.find("--guess"), std::string::npos) << told;
}

// Some networks of sounds have no axis for the channel.
TEST(Sounds, WithoutAnAxisForTheChannel) {
  onnx::TestGraph g;
  g.input("x", {-1, 3});
  g.weight("w", at::tensor({1.F, 0.F, 0.F, 2.F, 0.F, 0.F}, at::kFloat).view({3, 2}));
  g.node("MatMul", {"x", "w"}, {"y"}, "product");
  g.output("y");
  Network::Options options;
  options.micro_batch = 2;
  std::unique_ptr<Network> network = Network::from_onnx(g.bytes(), "flat", options);
  EXPECT_EQ(network->info().input, (std::vector<std::int64_t>{1, 3}));
  at::Tensor sound = at::tensor({16384, 8192, 1}, at::kShort).view({1, 1, 3});
  Request request;
  request.objective = [](const Pass& pass) { return pass.logits.select(1, 1); };
  request.input_gradient = true;
  Outputs outputs = network->run(sound, request);
  EXPECT_TRUE(at::allclose(outputs.logits, at::tensor({0.5F, 0.5F}).view({1, 2})));
  EXPECT_TRUE(at::allclose(outputs.input_gradient * 32768, at::tensor({0.F, 2.F, 0.F}).view({1, 1, 3})));
}

TEST(Sounds, AnOpenLengthIsThatOfTheData) {
  EXPECT_EQ(means(-1)->info().input, (std::vector<std::int64_t>{1, 16000}));
  EXPECT_EQ(means(-1, "", {1, 70001})->info().input, (std::vector<std::int64_t>{1, 70001}));
}

}  // namespace
}  // namespace galvani
