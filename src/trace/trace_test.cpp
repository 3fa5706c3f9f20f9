#include "galvani/trace/trace.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "galvani/base/error.h"
#include "galvani/model/zoo.h"

namespace galvani {
namespace {

std::unique_ptr<Network> zoo(const std::string& spec) {
  Rng rng(1);
  bool grey = spec.rfind("lenet", 0) == 0;
  Network::Options options;
  options.execution = {8, false};
  ArchitectureShape shape = grey ? ArchitectureShape{1, 28, 28, 10} : ArchitectureShape{3, 32, 32, 10};
  return Network::from_onnx(architectures().create(Spec::parse(spec), shape, rng), spec, options);
}

at::Tensor images_for(const Network& network, std::int64_t n) {
  const auto& in = network.info().input;
  return at::arange(n * in[0] * in[1] * in[2], at::kLong)
      .mul_(7919)
      .remainder_(251)
      .to(at::kByte)
      .view({n, in[0], in[1], in[2]});
}

TEST(Trace, LayoutBelongsToTheWeightsOfTheMoment) {
  auto network = zoo("lenet5");
  at::Tensor images = images_for(*network, 3);
  Tracer before(*network, network->select_taps("default"), NeuronUnit::channel);
  EXPECT_EQ(before.layout().model, network->info().sha256);
  at::Tensor bias = network->parameter("fc1.bias");
  network->set_parameter("fc1.bias", bias + 1);
  Tracer after(*network, network->select_taps("default"), NeuronUnit::channel);
  EXPECT_NE(after.layout().signature(), before.layout().signature());
  EXPECT_EQ(after.trace(images).size(), 3);
  EXPECT_THROW(before.trace(images), Error);
  network->set_parameter("fc1.bias", bias);
  EXPECT_EQ(before.trace(images).size(), 3);
}

TEST(Trace, HasABlockPerTapWithMeansOverSpace) {
  auto network = zoo("lenet5");
  Tracer tracer(*network, network->select_taps("default"), NeuronUnit::channel);
  EXPECT_EQ(tracer.layout().neurons, 236);
  ASSERT_EQ(tracer.layout().blocks.size(), 5U);
  at::Tensor images = images_for(*network, 20);
  Traces traces = tracer.trace(images);
  Request request;
  request.taps = network->select_taps("conv2");
  request.form = TapForm::full;
  at::Tensor full = network->run(images, request).taps[0];
  const TraceBlock& block = tracer.layout().block("conv2");
  EXPECT_TRUE(at::allclose(traces.values.narrow(1, block.first, block.count), full.mean({2, 3}), 1e-5, 1e-6));
  EXPECT_TRUE(at::equal(traces.predicted, traces.logits.argmax(1)));
  EXPECT_THROW(tracer.layout().block("conv7"), Error);
}

TEST(Trace, UnitsAreEveryScalar) {
  auto network = zoo("lenet5");
  Tracer tracer(*network, network->select_taps("conv1,fc3"), NeuronUnit::unit);
  EXPECT_EQ(tracer.layout().neurons, 6 * 28 * 28 + 10);
  Traces traces = tracer.trace(images_for(*network, 3));
  EXPECT_TRUE(at::equal(traces.values.narrow(1, 6 * 28 * 28, 10), traces.logits));
}

TEST(Trace, ChunksDoNotChangeValues) {
  auto network = zoo("lenet5");
  Tracer tracer(*network, network->select_taps("default"), NeuronUnit::channel, {true, true});
  Dataset data;
  data.name = "made up";
  data.images = images_for(*network, 700);
  data.labels = at::zeros({700}, at::kLong);
  Traces whole = tracer.trace(data.images);
  std::int64_t seen = 0;
  tracer.stream(data, "testing", [&](const Traces& part, std::int64_t first) {
    EXPECT_EQ(first, seen);
    EXPECT_TRUE(at::equal(part.values, whole.values.narrow(0, first, part.size())));
    EXPECT_TRUE(at::equal(part.relevance, whole.relevance.narrow(0, first, part.size())));
    seen += part.size();
  });
  EXPECT_EQ(seen, 700);
}

TEST(Trace, RelevanceDoesNotChangeValues) {
  auto network = zoo("resnet20:width=4");
  at::Tensor images = images_for(*network, 11);
  Tracer plain(*network, network->select_taps("all"), NeuronUnit::channel);
  Tracer more(*network, network->select_taps("all"), NeuronUnit::channel, {true, true});
  EXPECT_TRUE(at::equal(plain.trace(images).values, more.trace(images).values));
}

// A layer's output is its weights times the window means, and a bias that is the same for all inputs.
TEST(Trace, WindowsExplainEveryLayer) {
  for (const char* spec : {"lenet5", "resnet20:width=4", "mobilenet_v2"}) {
    auto network = zoo(spec);
    Tracer tracer(*network, network->select_taps("default"), NeuronUnit::channel, {false, true});
    Traces traces = tracer.trace(images_for(*network, 6));
    for (std::size_t b = 0; b < tracer.layout().blocks.size(); ++b) {
      const TraceBlock& block = tracer.layout().blocks[b];
      ASSERT_TRUE(tracer.layout().layers[b].has_value()) << spec << " " << block.tap;
      const LinearLayer& layer = *tracer.layout().layers[b];
      std::int64_t per_group = layer.weight.size(1);
      at::Tensor weight = layer.weight.reshape({layer.groups, block.count / layer.groups, -1});
      at::Tensor windows = traces.layers[b].windows.reshape({traces.size(), layer.groups, -1, 1});
      EXPECT_EQ(windows.size(2), weight.size(2));
      EXPECT_EQ(traces.layers[b].features.size(1), per_group * layer.groups);
      at::Tensor explained = at::matmul(weight, windows).reshape({traces.size(), block.count});
      at::Tensor bias = traces.values.narrow(1, block.first, block.count) - explained;
      auto scale = traces.values.narrow(1, block.first, block.count).abs().max().item<double>();
      EXPECT_LT((bias - bias[0]).abs().max().item<double>(), 1e-4 * scale + 1e-6) << spec << " " << block.tap;
    }
  }
}

// LRP-ε passes the score of the predicted class down, each layer giving a_j w_jk / (z_k + ε) of what it got. For ReLU
// networks gradient x activation is its limit for small ε (Ancona et al. 2018).
TEST(Trace, RelevanceIsThatOfLrpEpsilon) {
  auto network = zoo("lenet5");
  Tracer tracer(*network, network->select_taps("fc*"), NeuronUnit::channel, {true, false});
  Traces traces = tracer.trace(images_for(*network, 5));
  auto block_of = [&](const at::Tensor& t, const char* tap, std::int64_t row) {
    const TraceBlock& block = tracer.layout().block(tap);
    return t[row].narrow(0, block.first, block.count).to(at::kDouble);
  };
  constexpr double kEpsilon = 1e-9;
  auto pass_down = [&](const at::Tensor& activation, const at::Tensor& weight, const at::Tensor& z,
                       const at::Tensor& relevance) {
    at::Tensor share = relevance / (z + z.sign() * kEpsilon);
    return activation * at::mv(weight.t(), share);
  };
  for (std::int64_t row = 0; row < traces.size(); ++row) {
    at::Tensor z3 = block_of(traces.values, "fc3", row);
    at::Tensor score = at::zeros({10}, at::kDouble);
    auto label = traces.predicted[row].item<std::int64_t>();
    score[label] = z3[label];
    EXPECT_TRUE(at::allclose(block_of(traces.relevance, "fc3", row), score));
    auto weight = [&](int index) { return network->linear_layer(index)->weight.to(at::kDouble); };
    std::vector<int> taps = network->select_taps("fc*");
    std::vector<int> dense;
    for (int tap : taps) {
      if (network->taps()[static_cast<std::size_t>(tap)].kind == TapKind::dense) dense.push_back(tap);
    }
    ASSERT_EQ(dense.size(), 3U);
    at::Tensor z2 = block_of(traces.values, "fc2", row);
    at::Tensor r2 = pass_down(z2.relu(), weight(dense[2]), z3, score);
    EXPECT_TRUE(at::allclose(block_of(traces.relevance, "fc2", row), r2, 1e-4, 1e-6));
    at::Tensor z1 = block_of(traces.values, "fc1", row);
    at::Tensor r1 = pass_down(z1.relu(), weight(dense[1]), z2, r2);
    EXPECT_TRUE(at::allclose(block_of(traces.relevance, "fc1", row), r1, 1e-4, 1e-6));
  }
}

}  // namespace
}  // namespace galvani
