#include <gtest/gtest.h>
#include <torch/script.h>

#include <algorithm>

#include "galvani/base/files.h"
#include "galvani/model/network.h"
#include "galvani/model/train.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;
using testing::random_images;
using testing::zoo_network;

// A TorchScript network with batch norm, whose statistics are buffers.
std::unique_ptr<Network> normalised_script() {
  at::manual_seed(2);
  torch::jit::Module module("normalised");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("weight", at::randn({4, 3, 3, 3}), false);
  module.register_parameter("scale", at::rand({4}) + 0.5, false);
  module.register_parameter("shift", at::randn({4}), false);
  module.register_buffer("mean", at::randn({4}));
  module.register_buffer("variance", at::rand({4}) + 0.5);
  module.define(R"(
def forward(self, x):
    y = torch.conv2d(x, self.weight)
    y = torch.batch_norm(y, self.scale, self.shift, self.mean, self.variance, self.training, 0.1, 1e-05, False)
    return torch.mean(torch.relu(y), [2, 3])
)");
  TemporaryFolder folder;
  module.save((folder / "n.pt").string());
  Network::Options options;
  options.execution = {8, false};
  options.data_shape = {3, 8, 8};
  return Network::load(folder / "n.pt", options);
}

bool has_parameter(const Network& network, const std::string& name, bool trainable) {
  std::vector<NamedParameter> all = network.parameters();
  return std::any_of(all.begin(), all.end(),
                     [&](const NamedParameter& p) { return p.name == name && p.trainable == trainable; });
}

TEST(Parameters, AreNamedAsInTheFile) {
  auto network = zoo_network("resnet20:width=4");
  EXPECT_TRUE(has_parameter(*network, "conv1.weight", true));
  EXPECT_TRUE(has_parameter(*network, "bn1.running_mean", false));
  std::int64_t trainable = 0;
  for (const NamedParameter& p : network->parameters()) {
    EXPECT_EQ(network->parameter(p.name).sizes(), p.shape) << p.name;
    if (p.trainable) trainable += network->parameter(p.name).numel();
  }
  EXPECT_EQ(trainable, network->info().parameters);
  auto script = normalised_script();
  EXPECT_TRUE(has_parameter(*script, "weight", true));
  EXPECT_TRUE(has_parameter(*script, "variance", false));
  EXPECT_NE(error_of([&] { network->parameter("conv1.weigth"); }).find("did you mean 'conv1.weight'"),
            std::string::npos);
}

TEST(Parameters, AreCopiesUntilSet) {
  auto network = zoo_network("lenet5");
  at::Tensor images = random_images(*network, 4);
  at::Tensor before = network->run(images).logits;
  at::Tensor bias = network->parameter("fc3.bias");
  bias.add_(1);
  EXPECT_TRUE(at::equal(network->run(images).logits, before));
  network->set_parameter("fc3.bias", bias);
  EXPECT_TRUE(at::allclose(network->run(images).logits, before + 1, 1e-5, 1e-5));
  EXPECT_TRUE(at::equal(network->parameter("fc3.bias"), bias));
  EXPECT_NE(error_of([&] { network->set_parameter("fc3.bias", at::zeros({9})); }).find("shape [10]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { network->set_parameter("fc3.bias", at::zeros({10}, at::kLong)); }).find("float"),
            std::string::npos);
}

// Everything that can be set is what the executor computes with, and what is saved.
TEST(Parameters, SetAndSavedAgree) {
  for (int format = 0; format < 2; ++format) {
    auto network = format == 0 ? zoo_network("resnet20:width=4", {8, false}) : normalised_script();
    at::Tensor images = random_images(*network, 8);
    TemporaryFolder folder;
    at::Tensor last = network->run(images).logits;
    for (const NamedParameter& p : network->parameters()) {
      if (format == 0 && p.name.find("bn1") == std::string::npos && p.name != "conv1.weight") continue;
      network->set_parameter(p.name, network->parameter(p.name) * 1.5 + 0.125);
      at::Tensor now = network->run(images).logits;
      EXPECT_FALSE(at::equal(now, last)) << p.name;
      last = now;
    }
    network->save(folder / "model");
    Network::Options options;
    options.execution = {8, false};
    EXPECT_TRUE(at::equal(Network::load(folder / "model", options)->run(images).logits, last)) << format;
  }
}

TEST(Identity, IsTheFilesUntilAWeightChanges) {
  for (int format = 0; format < 2; ++format) {
    auto network = format == 0 ? zoo_network("resnet20:width=4") : normalised_script();
    std::string name = format == 0 ? "bn1.running_mean" : "mean";
    EXPECT_EQ(network->identity(), network->info().sha256);
    std::uint64_t version = network->weights_version();
    at::Tensor value = network->parameter(name);
    network->set_parameter(name, value + 0.5);
    EXPECT_GT(network->weights_version(), version);
    std::string other = network->identity();
    EXPECT_NE(other, network->info().sha256);
    network->set_parameter(name, value + 0.25);
    EXPECT_NE(network->identity(), other);
    network->set_parameter(name, value + 0.5);
    EXPECT_EQ(network->identity(), other);
    network->set_parameter(name, value);
    EXPECT_EQ(network->identity(), network->info().sha256);
  }
}

TEST(Identity, ChangesWithTraining) {
  auto network = zoo_network("lenet1");
  Dataset data;
  data.name = "noise";
  data.images = random_images(*network, 20);
  data.labels = at::arange(20).remainder(10);
  TrainOptions options;
  options.epochs = 1;
  train(*network, data, data, options, [](const EpochReport&) {});
  EXPECT_NE(network->identity(), network->info().sha256);
}

TEST(Clone, IsTheSameNetworkOnItsOwn) {
  for (int format = 0; format < 2; ++format) {
    auto network = format == 0 ? zoo_network("resnet20:width=4", {8, false}) : normalised_script();
    std::string name = format == 0 ? "conv1.weight" : "weight";
    network->set_parameter(name, network->parameter(name) * 1.25);
    at::Tensor images = random_images(*network, 9);
    Request request;
    request.taps = network->select_taps("all");
    Outputs before = network->run(images, request);
    auto copy = network->clone();
    EXPECT_EQ(copy->identity(), network->identity());
    EXPECT_EQ(copy->taps().size(), network->taps().size());
    EXPECT_EQ(copy->card().to_json(), network->card().to_json());
    Outputs same = copy->run(images, request);
    EXPECT_TRUE(at::equal(same.logits, before.logits));
    for (std::size_t i = 0; i < before.taps.size(); ++i) EXPECT_TRUE(at::equal(same.taps[i], before.taps[i]));
    for (const NamedParameter& p : copy->parameters()) copy->set_parameter(p.name, copy->parameter(p.name) * 0.5);
    EXPECT_TRUE(at::equal(network->run(images).logits, before.logits));
    EXPECT_FALSE(at::equal(copy->run(images).logits, before.logits));
    TemporaryFolder folder;
    at::Tensor halved = copy->run(images).logits;
    network.reset();
    EXPECT_TRUE(at::equal(copy->run(images).logits, halved));
    copy->save(folder / "copy");
    Network::Options options;
    options.execution = {8, false};
    EXPECT_TRUE(at::equal(Network::load(folder / "copy", options)->run(images).logits, halved));
  }
}

}  // namespace
}  // namespace galvani
