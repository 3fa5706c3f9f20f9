// What the values of all neurons cost, in units of one bare forward and backward pass for each input: the counter
// "ratio" is wanted to be at most 20 for the path of 16 points. What orders drawn at random would take for the same
// error is extrapolated from some of them: "permutation" is in passes of an input, as "path" is.
#include <ATen/ATen.h>

#include "galvani/attribute/excitable.h"
#include "galvani/attribute/shapley.h"
#include "model/testing.h"
#include "pairs.h"

namespace galvani::bench {
namespace {

constexpr std::int64_t kPlayers = 100;

void path_cost(benchmark::State& state, const std::string& architecture, const std::string& by) {
  auto network = testing::zoo_network(architecture, {});
  at::Tensor images = testing::random_images(*network, kPlayers);
  at::Tensor labels = network->run(images).logits.argmax(1);
  LossGame game(*network, network->select_taps("default"), images, {}, labels);
  auto path = make_shapley(Spec::parse(by));
  compare(
      state, kPlayers, [&] { benchmark::DoNotOptimize(path->estimate(game, Rng(1))); },
      [&] {
        Request request;
        request.input_gradient = true;
        request.objective = [](const Pass& pass) { return pass.logits.select(1, 0); };
        benchmark::DoNotOptimize(network->run(images, request));
      });
  state.counters["neurons"] = static_cast<double>(game.players());
}

void equal_error(benchmark::State& state) {
  constexpr std::int64_t kPairs = 16;
  auto network = testing::zoo_network("lenet5", {});
  at::Tensor images = testing::random_images(*network, 4);
  at::Tensor labels = network->run(images).logits.argmax(1);
  LossGame game(*network, network->select_taps("default"), images, {}, labels);
  auto values = [&](const std::string& spec) { return make_shapley(Spec::parse(spec))->estimate(game, Rng(1)); };
  for (auto unused : state) {
    ShapleyValues rough = values("path:tolerance=0"), fine = values("path:points=64,tolerance=1e-6,most=4096");
    ShapleyValues drawn = values("permutation:pairs=" + std::to_string(kPairs));
    auto error = at::sqrt((rough.values - fine.values).pow(2).mean()).item<double>();
    // Half a width is 2.13 standard errors of 16 pairs.
    double chance = at::sqrt(drawn.half_widths.pow(2).mean()).item<double>() / 2.13;
    auto passes = [](const ShapleyValues& v) { return (v.worths + v.slopes).to(at::kDouble).mean().item<double>(); };
    state.counters["path"] = passes(rough);
    state.counters["permutation"] = passes(drawn) * (chance / error) * (chance / error);
    state.counters["error"] = error;
    state.SetIterationTime(1);
  }
}

BENCHMARK_CAPTURE(path_cost, lenet5_16_points, "lenet5", "path:tolerance=0")->UseManualTime()->Iterations(15);
BENCHMARK_CAPTURE(path_cost, lenet5_adaptive, "lenet5", "path")->UseManualTime()->Iterations(5);
BENCHMARK_CAPTURE(path_cost, resnet20_16_points, "resnet20", "path:tolerance=0")->UseManualTime()->Iterations(3);
BENCHMARK(equal_error)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace galvani::bench
