// What a selection costs, in units of the bare forward pass: the counter "ratio" is wanted to be at most 1.1 for gini,
// and at most 2.5 for nss, whose unit is two passes. Greedy coverage against the plain greedy choice, of which some
// picks are made and the rest is extrapolated: "times faster" is wanted to be at least 50.
#include "galvani/select/select.h"

#include <ATen/ATen.h>

#include "galvani/base/rng.h"
#include "galvani/coverage/criterion.h"
#include "galvani/coverage/profile.h"
#include "galvani/data/dataset.h"
#include "model/testing.h"
#include "pairs.h"
#include "select/coverage_order.h"

namespace galvani::bench {
namespace {

void selection_cost(benchmark::State& state, const std::string& architecture, const std::string& by, int passes,
                    std::int64_t inputs) {
  auto network = testing::zoo_network(architecture, {});
  Dataset data = load_data("digits:pool[:" + std::to_string(inputs) + "]");
  Dataset training = load_data("digits:train[0:2000]");
  DataView pool(data), train(training);
  SelectRequest request;
  request.by = Spec::parse_list(by);
  request.budgets = {inputs / 20};
  request.train = &train;
  compare(
      state, inputs, [&] { benchmark::DoNotOptimize(select_from(*network, pool, request)); },
      [&] {
        for (int pass = 0; pass < passes; ++pass) benchmark::DoNotOptimize(network->run(data.images));
      });
}

// Of sections of the neurons of LeNet-5.
void greedy_coverage(benchmark::State& state, std::int64_t inputs, std::int64_t sections) {
  auto network = testing::zoo_network("lenet5", {});
  Tracer tracer(*network, network->select_taps("default"), NeuronUnit::channel);
  Spec spec = Spec::parse("kmnc:k=" + std::to_string(sections));
  Dataset data = load_data("digits:pool[:" + std::to_string(inputs) + "]");
  auto profile = learn_profile(tracer, {spec}, DataView(load_data("digits:train[0:2000]")), 0, 0);
  auto criterion = make_criterion(spec, {tracer.layout(), profile});
  FeatureTable table;
  tracer.stream(DataView(data), "", [&](const Traces& traces, std::int64_t first) {
    Features features;
    criterion->features(traces, features);
    table.add(first, features, 0);
  });
  std::int64_t budget = inputs / 5;
  constexpr std::int64_t kPlainPicks = 5;
  std::vector<double> our_times, their_times;
  std::int64_t agreeing = 0;
  for (auto unused : state) {
    std::vector<std::int64_t> lazy, plain;
    our_times.push_back(seconds([&] {
      std::vector<double> scores(static_cast<std::size_t>(inputs));
      lazy = coverage_order(table, inputs, true, 1, scores);
    }));
    std::vector<char> covered(table.features(), 0);
    double picks = seconds([&] {
      for (std::int64_t pick = 0; pick < kPlainPicks; ++pick) {
        std::int64_t best = 0, most = -1;
        for (std::int64_t i = 0; i < inputs; ++i) {
          std::int64_t gain = 0;
          for (std::uint32_t feature : table.row(i)) gain += covered[feature] == 0 ? 1 : 0;
          if (gain > most) {
            best = i;
            most = gain;
          }
        }
        for (std::uint32_t feature : table.row(best)) covered[feature] = 1;
        plain.push_back(best);
      }
    });
    their_times.push_back(picks / kPlainPicks * static_cast<double>(budget));
    for (std::int64_t i = 0; i < kPlainPicks; ++i)
      agreeing += lazy[static_cast<std::size_t>(i)] == plain[static_cast<std::size_t>(i)] ? 1 : 0;
    state.SetIterationTime(our_times.back());
  }
  state.counters["times faster"] = median(their_times) / median(our_times);
  state.counters["agreeing"] =
      static_cast<double>(agreeing) / static_cast<double>(kPlainPicks) / static_cast<double>(our_times.size());
}

constexpr std::int64_t kAll = 10000;
BENCHMARK_CAPTURE(selection_cost, lenet5_gini, "lenet5", "gini", 1, kAll)->UseManualTime()->Iterations(15);
BENCHMARK_CAPTURE(selection_cost, lenet5_nss, "lenet5", "nss", 2, kAll)->UseManualTime()->Iterations(15);
BENCHMARK_CAPTURE(selection_cost, lenet1_gini, "lenet1", "gini", 1, kAll)->UseManualTime()->Iterations(15);
BENCHMARK_CAPTURE(selection_cost, lenet1_nss, "lenet1", "nss", 2, kAll)->UseManualTime()->Iterations(15);
BENCHMARK_CAPTURE(selection_cost, lenet5_datis, "lenet5", "datis", 1, kAll)->UseManualTime()->Iterations(3);
BENCHMARK_CAPTURE(selection_cost, lenet5_dropout, "lenet5", "mc-dropout", 200, 1000)->UseManualTime()->Iterations(3);
BENCHMARK_CAPTURE(selection_cost, lenet5_prima, "lenet5", "prima", 100, 1000)->UseManualTime()->Iterations(3);
BENCHMARK_CAPTURE(greedy_coverage, kmnc_1000, kAll, 1000)->UseManualTime()->Iterations(3);

}  // namespace
}  // namespace galvani::bench
