#include "galvani/model/translator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/model/network.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;

std::unique_ptr<Network> load(const std::string& bytes) {
  Network::Options options;
  options.execution = {4, false};
  options.any_output = true;
  return Network::from_onnx(bytes, "translator", options);
}

std::string build(const std::string& spec, const ArchitectureShape& shape, const std::vector<std::string>& prefixes) {
  return translators().create(Spec::parse(spec), TranslatorRequest{shape, prefixes, Rng(3)});
}

at::Tensor some_images(const ArchitectureShape& shape) {
  at::manual_seed(1);
  return at::randint(0, 256, {5, shape.channels, shape.height, shape.width}, at::kByte);
}

// Sides that halve evenly, and sides that do not.
TEST(Translator, GivesImagesOfTheSizeItReads) {
  for (const ArchitectureShape& shape :
       {ArchitectureShape{1, 28, 28, 2}, ArchitectureShape{3, 32, 32, 2}, ArchitectureShape{3, 29, 31, 2},
        ArchitectureShape{1, 8, 9, 2}, ArchitectureShape{1, 70, 130, 2}}) {
    for (const char* spec : {"resnet:width=4", "unet:width=4"}) {
      auto network = load(build(spec, shape, {"p.", "q."}));
      std::vector<at::Tensor> made = network->apply(some_images(shape));
      std::vector<std::string> names = {"example", "transformed", "example_of_second", "transformed_of_second",
                                        "domain_score"};
      ASSERT_EQ(made.size(), names.size());
      for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(network->info().outputs[i].name, names[i]);
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(made[i].sizes(), some_images(shape).sizes()) << spec;
        EXPECT_LE(made[i].abs().max().item<double>(), 1);
      }
      EXPECT_EQ(made[4].sizes(), (std::vector<std::int64_t>{5, 1}));
    }
  }
}

TEST(Translator, ACycleHasBothWays) {
  ArchitectureShape shape{1, 28, 28, 2};
  auto both = load(build("resnet:width=4", shape, {"p.", "q."}));
  auto first = load(build("resnet:width=4", shape, {"p."}));
  auto second = load(build("resnet:width=4", shape, {"q."}));
  // The usual preprocessing: 0..255 becomes 0..1.
  at::Tensor images = some_images(shape);
  at::Tensor transformed = first->apply(images)[0];
  std::vector<at::Tensor> made = both->apply(images);
  EXPECT_TRUE(at::allclose(made[1], transformed, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(made[0], second->apply(transformed * 255)[0], 1e-3, 1e-4));
  at::Tensor of_second = second->apply(images)[0];
  EXPECT_TRUE(at::allclose(made[3], of_second, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(made[2], first->apply(of_second * 255)[0], 1e-3, 1e-4));
  // What is not asked for is not computed, and changes nothing.
  Application how;
  how.outputs = {3, 0};
  std::vector<at::Tensor> some = both->apply(images, how);
  ASSERT_EQ(some.size(), 2U);
  EXPECT_TRUE(at::allclose(some[0], made[3], 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(some[1], made[0], 1e-5, 1e-6));
  EXPECT_EQ(both->parameter("q.last.weight").sizes(), second->parameter("q.last.weight").sizes());
}

TEST(Translator, KeepsItsDropoutForTheTimeExamplesAreMade) {
  ArchitectureShape shape{1, 28, 28, 2};
  at::Tensor images = some_images(shape);
  for (const char* spec : {"resnet:width=4,dropout=0.5", "unet:width=4,dropout=0.5"}) {
    auto network = load(build(spec, shape, {"p.", "q."}));
    EXPECT_GE(network->info().random_layers, 2) << spec;
    Application awake;
    awake.random = RandomLayers{7, 0};
    at::Tensor once = network->apply(images, awake)[0];
    EXPECT_TRUE(at::equal(once, network->apply(images, awake)[0])) << spec;
    awake.random = RandomLayers{8, 0};
    EXPECT_FALSE(at::equal(once, network->apply(images, awake)[0])) << spec;
  }
}

TEST(Translator, CriticsScorePatches) {
  auto small = load(critic_onnx({1, 28, 28, 2}, 4, "d.", Rng(1)));
  EXPECT_EQ(small->info().outputs[0].shape, (std::vector<std::int64_t>{1, 7, 7}));
  auto large = load(critic_onnx({3, 128, 128, 2}, 2, "d.", Rng(1)));
  EXPECT_EQ(large->info().outputs[0].shape, (std::vector<std::int64_t>{1, 8, 8}));
}

TEST(Translator, BeginsWithImagesAndScoresThatCanBeLearnedFrom) {
  ArchitectureShape shape{1, 28, 28, 2};
  at::Tensor images = some_images(shape);
  for (const char* spec : {"resnet", "unet"}) {
    at::Tensor made = load(build(spec, shape, {"p."}))->apply(images)[0];
    // A tanh that is at its end has no gradient.
    EXPECT_LT((made.abs() > 0.99).to(at::kFloat).mean().item<double>(), 0.1) << spec;
  }
  at::Tensor scores = load(critic_onnx(shape, 16, "d.", Rng(1)))->apply(images)[0];
  EXPECT_LT(scores.abs().mean().item<double>(), 3);
}

TEST(Translator, RefusesImagesWithoutRoom) {
  EXPECT_NE(error_of([] { build("resnet", {1, 7, 28, 2}, {"p."}); }).find("8x8"), std::string::npos);
  EXPECT_NE(error_of([] { build("resnet:depth=3", {1, 28, 28, 2}, {"p."}); }).find("depth"), std::string::npos);
}

}  // namespace
}  // namespace galvani
