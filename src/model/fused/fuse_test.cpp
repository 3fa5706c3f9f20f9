#include "model/fused/fuse.h"

#include <gtest/gtest.h>
#include <torch/script.h>

#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/base/rng.h"
#include "galvani/model/train.h"
#include "galvani/model/zoo.h"
#include "model/graph_tools.h"
#include "model/network_impl.h"
#include "model/testing.h"

namespace galvani {
namespace {

constexpr Execution kPlain = {16, false, false};
constexpr Execution kFused = {16, false, true};

// Statistics of batch norm that training would have left, the same for the same architecture.
void stir_statistics(Network& network) {
  at::NoGradGuard no_grad;
  double step = 0;
  for (const auto& attribute : network.impl().module.named_attributes()) {
    if (!attribute.value.isTensor()) continue;
    at::Tensor tensor = attribute.value.toTensor();
    if (tensor.dim() != 1 || !tensor.is_floating_point()) continue;
    at::Tensor wave = (at::arange(tensor.size(0)) * 0.7 + (step += 0.3)).sin();
    // Variances and scales stay positive.
    bool around_one = (tensor == 1).all().item<bool>();
    tensor.add_(wave.mul(around_one ? 0.5 : 0.2).to(tensor.scalar_type()));
  }
}

void expect_close(const at::Tensor& have, const at::Tensor& want, const std::string& name) {
  ASSERT_EQ(have.sizes(), want.sizes()) << name;
  EXPECT_LE(((have - want).abs().max() / want.abs().max()).item<double>(), 1e-5) << name;
}

void expect_same_outputs(Network& fused, Network& plain, const Request& request) {
  at::Tensor images = testing::random_images(plain, 21);
  Outputs have = fused.run(images, request);
  Outputs want = plain.run(images, request);
  expect_close(have.logits, want.logits, "logits");
  ASSERT_EQ(have.taps.size(), want.taps.size());
  for (std::size_t i = 0; i < want.taps.size(); ++i)
    expect_close(have.taps[i], want.taps[i], plain.taps()[static_cast<std::size_t>(request.taps[i])].name);
  ASSERT_EQ(have.layer_inputs.size(), want.layer_inputs.size());
  for (std::size_t i = 0; i < want.layer_inputs.size(); ++i)
    expect_close(have.layer_inputs[i], want.layer_inputs[i], "layer input");
}

class FusedZoo : public ::testing::TestWithParam<const char*> {};

TEST_P(FusedZoo, GivesWhatTheGraphGives) {
  auto plain = testing::zoo_network(GetParam(), kPlain);
  auto fused = testing::zoo_network(GetParam(), kFused);
  stir_statistics(*plain);
  stir_statistics(*fused);
  ASSERT_TRUE(fused->impl().executor->fusible());
  expect_same_outputs(*fused, *plain, {});
  for (const char* taps : {"default", "relu", "all"}) {
    Request request;
    request.taps = plain->select_taps(taps);
    expect_same_outputs(*fused, *plain, request);
    request.form = TapForm::full;
    expect_same_outputs(*fused, *plain, request);
  }
  Request inputs;
  for (int tap : plain->select_taps("default")) {
    if (plain->linear_layer(tap)) inputs.layer_inputs.push_back(tap);
  }
  expect_same_outputs(*fused, *plain, inputs);
}

INSTANTIATE_TEST_SUITE_P(Zoo, FusedZoo, ::testing::Values("lenet5", "resnet20", "vgg16", "resnet20:shortcut=B"));

TEST(Fused, TheGraphShrinks) {
  auto network = testing::zoo_network("resnet20");
  auto layers = [&](const std::vector<int>& taps) {
    Executor& executor = *network->impl().executor;
    auto graph = executor.plan({taps, {}, Executor::Form::means, {}, true});
    return graph->layers();
  };
  // 19 convolutions with all that follows them, and the dense layer; a tapped convolution's batch norm is another.
  EXPECT_EQ(layers({}), 20U);
  EXPECT_EQ(layers(network->select_taps("default")), 39U);
}

TEST(Fused, SameBitsForAnyNumberOfWorkers) {
  auto network = testing::zoo_network("resnet20", kFused);
  Request request;
  request.taps = network->select_taps("all");
  at::Tensor images = testing::random_images(*network, 70);
  set_workers(1);
  Outputs one = network->run(images, request);
  set_workers(4);
  auto fresh = testing::zoo_network("resnet20", kFused);
  Outputs four = fresh->run(images, request);
  EXPECT_TRUE(at::equal(one.logits, four.logits));
  for (std::size_t i = 0; i < one.taps.size(); ++i) EXPECT_TRUE(at::equal(one.taps[i], four.taps[i]));
}

TEST(Fused, GradientsMasksAndCanonicalPassesAreThoseOfTheGraph) {
  auto plain = testing::zoo_network("lenet5", kPlain);
  auto fused = testing::zoo_network("lenet5", kFused);
  at::Tensor images = testing::random_images(*plain, 5);
  auto same = [&](const Request& request) {
    Outputs have = fused->run(images, request);
    Outputs want = plain->run(images, request);
    EXPECT_TRUE(at::equal(have.logits, want.logits));
    if (request.input_gradient) {
      EXPECT_TRUE(at::equal(have.input_gradient, want.input_gradient));
    }
  };
  Request gradient;
  gradient.objective = [](const Pass& pass) { return pass.logits.select(1, 3); };
  gradient.input_gradient = true;
  same(gradient);
  Request masked;
  masked.masks = {{0, at::arange(6).to(at::kFloat)}};
  same(masked);
  Request alone;
  alone.alone = true;
  same(alone);
  EXPECT_FALSE(at::equal(fused->run(images).logits, plain->run(images).logits)) << "nothing was fused";
}

TEST(Fused, FollowsWeightsThatChange) {
  auto network = testing::zoo_network("lenet5", kFused);
  at::Tensor images = testing::random_images(*network, 4);
  at::Tensor before = network->run(images).logits;
  at::NoGradGuard no_grad;
  attribute_at(network->impl().module, network->impl().trainable.back()).add_(1);
  expect_close(network->run(images).logits, before + 1, "logits after the last bias rose by one");
  at::Tensor bias = attribute_at(network->impl().module, network->impl().trainable.back());
  for (const char* name : {"sgd:lr=1,momentum=0", "adam:lr=1"}) {
    auto optimizer = optimizers().create(Spec::parse(name));
    optimizer->prepare({bias});
    before = network->run(images).logits;
    optimizer->update(0, bias, at::full_like(bias, -1), 1, 1);
    expect_close(network->run(images).logits, before + 1, name);
  }
}

TEST(Fused, ShortcutsThatAreReadLaterStay) {
  // `a` is added to a convolution's result and read again, through a view, behind it; `b` is a convolution's input,
  // too.
  const char* source = R"(
    def forward(self, x):
        a = torch.relu(torch.conv2d(x, self.w, None, [1, 1], [1, 1], [1, 1], 1))
        v = torch.slice(a, 2, 0, 4, 1)
        b = torch.relu(torch.add(torch.conv2d(a, self.u, None, [1, 1], [1, 1], [1, 1], 1), a, alpha=1))
        b = torch.relu(torch.add(torch.conv2d(b, self.u, None, [1, 1], [1, 1], [1, 1], 1), b, alpha=1))
        c = torch.add(torch.conv2d(b, self.u, None, [1, 1], [1, 1], [1, 1], 1), self.row, alpha=1)
        return torch.cat([torch.mean(v, [2, 3]), torch.mean(b, [2, 3]), torch.mean(c, [2, 3])], 1)
  )";
  at::manual_seed(3);
  std::map<std::string, at::Tensor> parameters = {
      {"w", at::randn({4, 3, 3, 3})}, {"u", at::randn({4, 4, 3, 3})}, {"row", at::randn({1, 4, 1, 1})}};
  auto network = testing::scripted(source, parameters);
  at::Tensor images = testing::random_images(*network, 16);
  at::Tensor want = network->run(images).logits;
  network->impl().execution = kFused;
  expect_close(network->run(images).logits, want, "logits");
}

TEST(Fused, WeightsThatAreNoNumbersStayWithTheGraph) {
  const char* source = R"(
    def forward(self, x):
        return torch.mean(torch.relu(torch.conv2d(x, self.w, None, [1, 1], [1, 1], [1, 1], 1)), [2, 3])
  )";
  at::Tensor weight = at::ones({2, 3, 3, 3});
  weight[0][0][0][0] = NAN;
  auto network = testing::scripted(source, {{"w", weight}});
  EXPECT_FALSE(network->impl().executor->fusible());
}

TEST(Fused, IsChosenUnlessRefused) {
  TemporaryFolder folder;
  auto choice = [&](bool fused) {
    Rng rng(1);
    Network::Options options;
    options.unfused = !fused;
    std::string bytes = architectures().create(Spec::parse("lenet5"), {1, 28, 28, 10}, rng);
    return Network::from_onnx(bytes, "lenet5", options)->execution();
  };
  EXPECT_TRUE(choice(true).fused);
  EXPECT_FALSE(choice(false).fused);
  EXPECT_TRUE(choice(true).fused) << "the record of one choice was taken for the other";
}

}  // namespace
}  // namespace galvani
