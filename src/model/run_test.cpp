// What a request can ask for: several objectives, a reducer, groups of rows, random layers.
#include <gtest/gtest.h>
#include <torch/script.h>

#include <atomic>
#include <set>

#include "galvani/base/parallel.h"
#include "galvani/model/network.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;
using testing::random_images;
using testing::scripted;
using testing::zoo_network;

// Two dense layers with weights small enough to work out by hand.
std::unique_ptr<Network> two_layers() {
  at::manual_seed(3);
  return scripted(R"(
    def forward(self, x):
        h = torch.relu(torch.linear(torch.flatten(x, 1), self.fc1_weight))
        return torch.linear(h, self.fc2_weight)
  )",
                  {{"fc1_weight", at::randn({5, 3 * 8 * 8}) * 0.1}, {"fc2_weight", at::randn({4, 5})}});
}

TEST(Objectives, EachColumnIsTheGradientOfItsOwnRequest) {
  for (Execution form : {Execution{4, false}, Execution{8, true}}) {
    auto network = zoo_network("lenet5", form);
    at::Tensor images = random_images(*network, 11);
    int conv2 = network->select_taps("conv2")[0];
    Request request;
    request.taps = {conv2};
    request.masks = {{conv2, at::ones({16})}};
    request.input_gradient = request.tap_gradients = request.mask_gradients = true;
    request.objectives = 3;
    request.objective = [](const Pass& pass) { return pass.logits.narrow(1, 2, 3) * 2; };
    Outputs all = network->run(images, request);
    EXPECT_EQ(all.objective.sizes(), (std::vector<std::int64_t>{11, 3}));
    EXPECT_EQ(all.input_gradient.sizes(), (std::vector<std::int64_t>{11, 3, 1, 28, 28}));
    EXPECT_EQ(all.tap_gradients[0].sizes(), (std::vector<std::int64_t>{11, 3, 16, 10, 10}));
    EXPECT_EQ(all.mask_gradients[0].sizes(), (std::vector<std::int64_t>{11, 3, 16}));
    for (int k = 0; k < 3; ++k) {
      request.objectives = 0;
      request.objective = [k](const Pass& pass) { return pass.logits.select(1, 2 + k) * 2; };
      Outputs one = network->run(images, request);
      EXPECT_TRUE(at::equal(all.objective.select(1, k), one.objective));
      EXPECT_TRUE(at::allclose(all.input_gradient.select(1, k), one.input_gradient, 1e-5, 1e-8));
      EXPECT_TRUE(at::allclose(all.tap_gradients[0].select(1, k), one.tap_gradients[0], 1e-5, 1e-8));
      EXPECT_TRUE(at::allclose(all.mask_gradients[0].select(1, k), one.mask_gradients[0], 1e-5, 1e-6));
    }
  }
}

// The Jacobian of a network of two dense layers is W2 · diag(h > 0) · W1, per 255th.
TEST(Objectives, JacobianByHand) {
  auto network = two_layers();
  at::Tensor images = random_images(*network, 6);
  at::Tensor w1 = network->linear_layer(network->select_taps("fc1")[0])->weight;
  at::Tensor w2 = network->linear_layer(network->select_taps("fc2")[0])->weight;
  Request request;
  request.objectives = 4;
  request.objective = [](const Pass& pass) { return pass.logits; };
  request.input_gradient = true;
  at::Tensor jacobian = network->run(images, request).input_gradient.flatten(2);
  at::Tensor active = at::matmul(images.flatten(1).to(at::kFloat) / 255, w1.t()).gt(0).to(at::kFloat);
  for (std::int64_t n = 0; n < 6; ++n) {
    at::Tensor expected = at::matmul(w2 * active[n], w1) / 255;
    EXPECT_TRUE(at::allclose(jacobian[n], expected, 1e-4, 1e-6)) << n;
  }
}

TEST(Objectives, InputGradientsMatchFiniteDifferences) {
  at::manual_seed(1);
  auto network = zoo_network("resnet20:width=8");
  ModelCard card = network->card();
  card.preprocess.mean = {0.3, 0.4, 0.5};
  card.preprocess.bgr = true;
  network->set_card(card);
  at::Tensor images = random_images(*network, 2).to(at::kFloat);
  Request request;
  request.objectives = 2;
  request.objective = [](const Pass& pass) { return pass.logits.narrow(1, 0, 2); };
  request.input_gradient = true;
  at::Tensor gradient = network->run(images, request).input_gradient;
  at::Tensor direction = at::randn(images.sizes());
  constexpr double kStep = 0.05;
  auto value = [&](double t) { return network->run(images + direction * t).logits.narrow(1, 0, 2); };
  at::Tensor expected = (value(kStep) - value(-kStep)) / (2 * kStep);
  at::Tensor found = (gradient * direction.unsqueeze(1)).flatten(2).sum(2);
  EXPECT_TRUE(at::allclose(found, expected, 0.03, 2e-4)) << found << expected;
}

TEST(Objectives, AsManyAsAnnounced) {
  auto network = two_layers();
  Request request;
  request.objectives = 3;
  request.objective = [](const Pass& pass) { return pass.logits; };
  EXPECT_NE(error_of([&] { network->run(random_images(*network, 2), request); }).find("objective"), std::string::npos);
}

TEST(Reducer, SeesWhatTheWholeRequestWouldGive) {
  auto network = zoo_network("lenet5", {4, false});
  at::Tensor images = random_images(*network, 14);
  Request request;
  request.taps = network->select_taps("conv1,fc1");
  request.form = TapForm::full;
  request.objective = [](const Pass& pass) { return pass.logits.logsumexp(1); };
  request.input_gradient = request.tap_gradients = true;
  Outputs whole = network->run(images, request);
  std::atomic<int> calls{0};
  request.reducer = [&](const Outputs& part, std::int64_t first) {
    calls += 1;
    EXPECT_EQ(part.logits.size(0), std::min<std::int64_t>(4, 14 - first));
    return std::vector<at::Tensor>{(part.taps[0] * part.tap_gradients[0]).sum({2, 3}),
                                   part.input_gradient.abs().sum(0, /*keepdim=*/true)};
  };
  Outputs reduced = network->run(images, request);
  EXPECT_EQ(calls, 4);
  EXPECT_TRUE(reduced.taps.empty() && reduced.tap_gradients.empty() && !reduced.input_gradient.defined());
  EXPECT_TRUE(at::equal(reduced.logits, whole.logits));
  EXPECT_TRUE(at::equal(reduced.objective, whole.objective));
  ASSERT_EQ(reduced.reduced.size(), 2U);
  EXPECT_TRUE(at::equal(reduced.reduced[0], (whole.taps[0] * whole.tap_gradients[0]).sum({2, 3})));
  ASSERT_EQ(reduced.reduced[1].size(0), 4);
  EXPECT_TRUE(at::allclose(reduced.reduced[1].sum(0), whole.input_gradient.abs().sum(0), 1e-5));
}

TEST(Reducer, WorksWithoutGradientsAndOnLayerInputs) {
  auto network = zoo_network("lenet5", {4, false});
  at::Tensor images = random_images(*network, 9);
  Request request;
  request.layer_inputs = {network->select_taps("conv2")[0]};
  Outputs whole = network->run(images, request);
  request.reducer = [](const Outputs& part, std::int64_t) {
    return std::vector<at::Tensor>{part.layer_inputs[0].amax({2, 3})};
  };
  for (int n : {1, 3}) {
    set_workers(n);
    EXPECT_TRUE(at::equal(network->run(images, request).reduced[0], whole.layer_inputs[0].amax({2, 3})));
  }
  EXPECT_TRUE(network->run(images.narrow(0, 0, 0), request).reduced.empty());
}

// Rows of a group meet in one micro-batch, or one worker sees its pieces in order.
TEST(Groups, StayTogether) {
  auto network = zoo_network("lenet5", {8, false});
  for (std::int64_t group : {1, 3, 8, 20}) {
    at::Tensor images = random_images(*network, group * 6);
    at::Tensor plain = network->run(images).logits;
    std::vector<std::atomic<std::int64_t>> next(6);
    Request request;
    request.group = group;
    request.reducer = [&](const Outputs& part, std::int64_t first) {
      std::int64_t count = part.logits.size(0);
      EXPECT_LE(count, 8);
      if (group <= 8) {
        EXPECT_EQ(first % group, 0);
        EXPECT_EQ(count % group, 0);
      } else {
        EXPECT_EQ(first / group, (first + count - 1) / group);
        EXPECT_EQ(next[static_cast<std::size_t>(first / group)].fetch_add(count), first % group);
      }
      return std::vector<at::Tensor>{part.logits};
    };
    set_workers(3);
    Outputs out = network->run(images, request);
    EXPECT_TRUE(at::equal(out.logits, out.reduced[0]));
    EXPECT_TRUE(at::allclose(out.logits, plain, 1e-4, 1e-5)) << group;
  }
  Request request;
  request.group = 4;
  EXPECT_NE(error_of([&] { network->run(random_images(*network, 6), request); }).find("groups of 4"),
            std::string::npos);
}

// The sum over the steps of a path of gradient times change of the tap, taken in pieces, is the difference it makes.
TEST(Groups, ConductanceInPiecesIsComplete) {
  auto network = zoo_network("lenet5", {16, false});
  int tap = network->select_taps("conv2")[0];
  constexpr std::int64_t kSteps = 50;
  at::Tensor images = random_images(*network, 3).to(at::kFloat);
  at::Tensor t = at::linspace(0, 1, kSteps).view({1, kSteps, 1, 1, 1});
  at::Tensor path = (images.unsqueeze(1) * t).flatten(0, 1);
  Request request;
  request.taps = {tap};
  request.form = TapForm::full;
  request.tap_gradients = true;
  request.group = kSteps;
  request.objective = [](const Pass& pass) { return pass.logits.select(1, 4); };
  std::vector<std::vector<at::Tensor>> last(3);  // value and gradient of the row before, by group
  request.reducer = [&](const Outputs& part, std::int64_t first) {
    at::Tensor value = part.taps[0];
    at::Tensor gradient = part.tap_gradients[0];
    auto& before = last[static_cast<std::size_t>(first / kSteps)];
    if (first % kSteps != 0) {
      value = at::cat({before[0], value});
      gradient = at::cat({before[1], gradient});
    }
    std::int64_t n = value.size(0) - 1;
    before = {value.narrow(0, n, 1).clone(), gradient.narrow(0, n, 1).clone()};
    at::Tensor mean = (gradient.narrow(0, 0, n) + gradient.narrow(0, 1, n)) / 2;
    return std::vector<at::Tensor>{(mean * value.diff(1, 0)).sum({0, 2, 3}).unsqueeze(0)};
  };
  set_workers(2);
  Outputs out = network->run(path, request);
  at::Tensor score = out.logits.select(1, 4).view({3, kSteps});
  at::Tensor conductance = out.reduced[0].view({3, -1, 16}).sum(1);
  EXPECT_TRUE(at::allclose(conductance.sum(1), score.select(1, kSteps - 1) - score.select(1, 0), 1e-2, 1e-3))
      << conductance.sum(1);
}

TEST(RandomLayers, AreOffUnlessAskedFor) {
  auto network = zoo_network("sadl2:dropout=0.5");
  EXPECT_EQ(network->info().random_layers, 2);
  EXPECT_EQ(zoo_network("lenet5")->info().random_layers, 0);
  at::Tensor images = random_images(*network, 5);
  Request random;
  random.random = RandomLayers{1, 0};
  at::Tensor plain = network->run(images).logits;
  EXPECT_FALSE(at::allclose(plain, network->run(images, random).logits, 1e-3, 1e-3));
  EXPECT_TRUE(at::equal(plain, network->run(images).logits));
}

// What a row draws is its own: same seed and row, same result, in any company and on any number of threads.
TEST(RandomLayers, DrawByRow) {
  auto network = zoo_network("sadl2:dropout=0.5", {1, false});
  at::Tensor images = random_images(*network, 9);
  Request request;
  request.random = RandomLayers{7, 100};
  set_workers(1);
  at::Tensor one = network->run(images, request).logits;
  set_workers(4);
  EXPECT_TRUE(at::equal(one, network->run(images, request).logits));
  request.random->first_row = 106;
  EXPECT_TRUE(at::equal(one[6], network->run(images.narrow(0, 6, 1), request).logits[0]));
  request.random->seed = 8;
  EXPECT_FALSE(at::equal(one[6], network->run(images.narrow(0, 6, 1), request).logits[0]));
  // In larger micro-batches the draws stay, only the kernels' last bits move.
  auto larger = zoo_network("sadl2:dropout=0.5", {4, false});
  request.random = RandomLayers{7, 100};
  EXPECT_TRUE(at::allclose(one, larger->run(images, request).logits, 1e-4, 1e-5));
}

TEST(RandomLayers, MeanOfManyDrawsIsTheEvaluation) {
  at::manual_seed(1);
  // Dropout before a linear layer is unbiased, so the mean of the scores is known.
  for (const char* layer : {"dropout", "feature_dropout"}) {
    auto network = scripted(std::string("    def forward(self, x):\n        y = torch.") + layer +
                                "(x, 0.3, self.training)\n"
                                "        return torch.linear(torch.flatten(y, 1), self.weight)\n",
                            {{"weight", at::randn({2, 3 * 8 * 8}) / 10}});
    at::Tensor image = random_images(*network, 1);
    Request request;
    request.random = RandomLayers{5, 0};
    at::Tensor draws = network->run(image.expand({4000, 3, 8, 8}).contiguous(), request).logits;
    at::Tensor error = draws.std(0) / std::sqrt(4000.0);
    at::Tensor difference = (draws.mean(0) - network->run(image).logits[0]).abs();
    EXPECT_TRUE((difference < error * 4).all().item<bool>()) << layer << difference << error;
    EXPECT_GT(error.max().item<double>(), 0);
  }
}

TEST(RandomLayers, AlphaDropoutKeepsMeanAndVariance) {
  at::manual_seed(1);
  auto network = scripted(R"(
    def forward(self, x):
        z = torch.alpha_dropout(torch.linear(torch.flatten(x, 1), self.weight), 0.4, self.training)
        return z
  )",
                          {{"weight", at::randn({2000, 3 * 8 * 8}) / std::sqrt(192.0)}});
  ModelCard card = network->card();
  card.preprocess.mean = {0.5};
  card.preprocess.deviation = {0.2887};  // of uniform noise
  network->set_card(card);
  Request request;
  request.random = RandomLayers{5, 0};
  EXPECT_EQ(network->info().random_layers, 1);
  at::Tensor logits = network->run(random_images(*network, 40), request).logits;
  EXPECT_NEAR(logits.mean().item<double>(), 0, 0.05);
  EXPECT_NEAR(logits.std().item<double>(), 1, 0.05);
}

TEST(RandomLayers, NoiseInTheGraphIsRepeatable) {
  at::manual_seed(1);
  ::setenv("GALVANI_TRUST_MODELS", "1", 1);  // otherwise such a file is refused
  auto network = scripted(R"(
    def forward(self, x):
        y = torch.linear(torch.flatten(x, 1), self.weight)
        return y + torch.randn_like(y) + torch.rand([y.size(0), 2]) + torch.bernoulli(torch.sigmoid(y))
  )",
                          {{"weight", at::randn({2, 3 * 8 * 8})}});
  EXPECT_EQ(network->info().random_layers, 3);
  at::Tensor images = random_images(*network, 20);
  Request request;
  request.random = RandomLayers{5, 0};
  set_workers(1);
  at::Tensor one = network->run(images, request).logits;
  set_workers(3);
  EXPECT_TRUE(at::equal(one, network->run(images, request).logits));
  request.random->first_row = 1;
  EXPECT_FALSE(at::allclose(one, network->run(images, request).logits));
  EXPECT_TRUE(at::equal(network->run(images).logits, network->run(images).logits));
  auto strange = scripted(R"(
    def forward(self, x):
        y = torch.linear(torch.flatten(x, 1), self.weight)
        return y + 0.0 * torch.randint_like(y, 5)
  )",
                          {{"weight", at::randn({2, 3 * 8 * 8})}});
  EXPECT_NE(error_of([&] { strange->run(images, request); }).find("randint_like"), std::string::npos);
  ::unsetenv("GALVANI_TRUST_MODELS");
}

TEST(RandomLayers, GradientsFlowThroughWhatWasKept) {
  at::manual_seed(1);
  auto network = scripted(R"(
    def forward(self, x):
        y = torch.dropout(torch.flatten(x, 1), 0.5, self.training)
        return torch.linear(y, self.weight)
  )",
                          {{"weight", at::ones({2, 3 * 8 * 8})}});
  Request request;
  request.random = RandomLayers{5, 0};
  request.objective = [](const Pass& pass) { return pass.logits.select(1, 0); };
  request.input_gradient = true;
  at::Tensor gradient = network->run(random_images(*network, 10), request).input_gradient * 255;
  at::Tensor zero = gradient.eq(0);
  EXPECT_TRUE((zero | gradient.sub(2).abs().lt(1e-5)).all().item<bool>());
  EXPECT_NEAR(zero.to(at::kFloat).mean().item<double>(), 0.5, 0.05);
}

}  // namespace
}  // namespace galvani
