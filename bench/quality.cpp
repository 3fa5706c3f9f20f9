// CLEVER of one input, 10 batches of 100 samples and all targets, against the same with one target and one batch at a
// time. The counter "speedup" is wanted to be at least 10.
#include <ATen/ATen.h>

#include <cmath>

#include "galvani/base/rng.h"
#include "galvani/model/evaluate.h"
#include "galvani/quality/clever.h"
#include "model/testing.h"
#include "pairs.h"
#include "quality/ball.h"

namespace galvani::bench {
namespace {

constexpr std::int64_t kBatches = 10;
constexpr std::int64_t kSamples = 100;

// As it is commonly written: for every target and batch, draw samples, differentiate the scores of the two classes, and
// take the largest length of the difference of the gradients.
double one_at_a_time(Network& network, const at::Tensor& input) {
  at::Tensor centre = input.to(at::kFloat);
  auto values = static_cast<std::size_t>(input.numel());
  auto verdict = predict(network, input.unsqueeze(0)).labels.item<std::int64_t>();
  double least = 5;
  for (std::int64_t target = 0; target < network.info().classes; ++target) {
    if (target == verdict) continue;
    double margin = 0;
    std::vector<double> maxima;
    for (std::int64_t batch = 0; batch < kBatches; ++batch) {
      at::Tensor samples = at::empty({kSamples, input.numel()});
      for (std::int64_t i = 0; i < kSamples; ++i)
        unit_ball_point(CleverNorm::l2, Rng(1).derive(static_cast<std::uint64_t>(batch * kSamples + i)),
                        samples.data_ptr<float>() + i * input.numel(), values);
      samples = (samples.mul_(5 * 255.0).view({kSamples, input.size(0), input.size(1), input.size(2)}) + centre)
                    .clamp_(0, 255);
      auto gradient_of = [&](std::int64_t of) {
        Request request;
        request.input_gradient = true;
        request.objective = [of](const Pass& pass) { return pass.logits.select(1, of); };
        Outputs found = network.run(samples, request);
        margin = found.objective[0].item<double>();
        return found.input_gradient;
      };
      at::Tensor difference = gradient_of(verdict) - gradient_of(target);
      maxima.push_back(difference.flatten(1).norm(2, {1}).max().item<double>() * 255);
    }
    least = std::min(least, std::abs(margin) / fit_extremes(maxima).bound);
  }
  return least;
}

void clever_of_one(benchmark::State& state, const std::string& architecture) {
  std::unique_ptr<Network> network = testing::zoo_network(architecture, {});
  at::Tensor input = testing::random_images(*network, 1)[0];
  CleverSettings settings;
  settings.batches = kBatches;
  settings.samples = kSamples;
  settings.targets = 0;
  compare(
      state, kBatches * kSamples, [&] { benchmark::DoNotOptimize(clever(*network, input, settings, Rng(1)).score()); },
      [&] { benchmark::DoNotOptimize(one_at_a_time(*network, input)); });
  state.counters["speedup"] = 1 / state.counters["ratio"];
}

BENCHMARK_CAPTURE(clever_of_one, lenet5, "lenet5")->UseManualTime()->Iterations(3);
BENCHMARK_CAPTURE(clever_of_one, resnet20, "resnet20")->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace galvani::bench
