// What attacks cost, in units of the passes that they cannot do without.
#include "galvani/attack/attack.h"

#include <ATen/ATen.h>

#include <cstdlib>

#include "attack/saliency.h"
#include "galvani/attack/search.h"
#include "galvani/base/parallel.h"
#include "galvani/model/evaluate.h"
#include "model/testing.h"
#include "pairs.h"

namespace galvani::bench {
namespace {

// A bare forward and backward pass.
void differentiate(Network& network, const at::Tensor& images) {
  Request request;
  request.input_gradient = true;
  request.objective = [](const Pass& pass) { return pass.logits.select(1, 0); };
  network.run(images, request);
}

// PGD-20 against 20 bare passes. So small an ε and the worst class as target break few inputs, so that all steps are
// made for nearly all of them: the counter says how many.
void pgd_against_passes(benchmark::State& state, const std::unique_ptr<Network>& network, const std::string& eps) {
  constexpr std::int64_t kImages = 128;
  at::Tensor images = testing::random_images(*network, kImages);
  AttackTask task;
  task.inputs = images;
  Predictions seen = predict(*network, images);
  task.labels = seen.labels;
  task.targets = seen.logits.argmin(1);
  for (std::uint64_t row = 0; row < kImages; ++row) task.streams.push_back(Rng(1).derive(row));
  auto attack = make_attack(Spec::parse("pgd:steps=20,eps=" + eps));
  state.counters["passes"] = (*attack)(*network, task).backward.to(at::kDouble).mean().item<double>();
  at::Tensor floats = images.to(at::kFloat);
  compare(
      state, kImages, [&] { (*attack)(*network, task); },
      [&] {
        for (int step = 0; step < 20; ++step) differentiate(*network, floats);
      });
}

// JSMA's pair search against the two backward passes that it follows, all workers for both.
void pair_search_cost(benchmark::State& state) {
  constexpr std::int64_t kImages = 256;
  constexpr std::int64_t kValues = 28 * 28;
  auto network = testing::zoo_network("lenet5", {});
  at::Tensor images = testing::random_images(*network, kImages).to(at::kFloat);
  Request request;
  request.input_gradient = true;
  request.objectives = 2;
  request.objective = [](const Pass& pass) {
    return at::stack({pass.logits.select(1, 3), pass.logits.sum(1) - pass.logits.select(1, 3)}, 1);
  };
  at::Tensor gradients = network->run(images, request).input_gradient.contiguous();
  std::vector<char> open(kValues, 1);
  // Two backward passes: two objectives less none.
  auto forward = [&] { network->run(images); };
  auto with_two = [&] { network->run(images, request); };
  std::vector<double> search_times, backward_times;
  for (auto unused : state) {
    double two = seconds(with_two) - seconds(forward);
    double search = seconds([&] {
      workers().run(kImages, [&](std::int64_t row, int) {
        thread_local SaliencyPairs finder;
        const float* alpha = gradients.data_ptr<float>() + row * 2 * kValues;
        benchmark::DoNotOptimize(finder.best(alpha, alpha + kValues, open.data(), kValues));
      });
    });
    search_times.push_back(search);
    backward_times.push_back(two);
    state.SetIterationTime(search);
  }
  state.counters["ratio"] = median(search_times) / median(backward_times);
  state.counters["searches/s"] = kImages / median(search_times);
}

void pgd_cost(benchmark::State& state, const std::string& architecture, const std::string& eps) {
  pgd_against_passes(state, testing::zoo_network(architecture, {}), eps);
}

// A trained model in place of drawn weights: the file that GALVANI_BENCH_MODEL names.
void pgd_cost_of_file(benchmark::State& state) {
  const char* file = std::getenv("GALVANI_BENCH_MODEL");
  if (file == nullptr) {
    state.SkipWithError("GALVANI_BENCH_MODEL names no model");
    return;
  }
  pgd_against_passes(state, Network::load(file), "1/255");
}

BENCHMARK_CAPTURE(pgd_cost, resnet20, "resnet20", "1/255")->UseManualTime()->Iterations(5);
BENCHMARK_CAPTURE(pgd_cost, lenet5, "lenet5", "1/255")->UseManualTime()->Iterations(9);
BENCHMARK(pgd_cost_of_file)->UseManualTime()->Iterations(5);
BENCHMARK(pair_search_cost)->UseManualTime()->Iterations(25);

}  // namespace
}  // namespace galvani::bench
