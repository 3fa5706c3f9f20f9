// What criteria cost, in units of the bare forward pass; and nearest neighbours in units of the plain double loop.
#include <ATen/ATen.h>

#include "coverage/testing.h"
#include "galvani/base/parallel.h"
#include "galvani/base/rng.h"
#include "galvani/coverage/criterion.h"
#include "galvani/coverage/profile.h"
#include "galvani/coverage/surprise.h"
#include "galvani/model/zoo.h"
#include "model/testing.h"
#include "pairs.h"

namespace galvani::bench {
namespace {

// Traces and criteria against the same network's forward pass, images in batches of 128.
void criteria_cost(benchmark::State& state, const std::string& architecture, const std::string& specs) {
  constexpr std::int64_t kImages = 512;
  constexpr std::int64_t kBatch = 128;
  auto network = testing::zoo_network(architecture, {});
  at::Tensor images = testing::random_images(*network, kImages);
  Tracer tracer(*network, network->select_taps("default"), NeuronUnit::channel);
  Dataset data;
  data.name = "noise";
  data.images = testing::random_images(*network, 256);
  data.labels = at::zeros({256}, at::kLong);
  auto profile = learn_profile(tracer, Spec::parse_list(specs), data, 0, 0);
  auto criteria = make_criteria(specs, {tracer.layout(), profile});
  for (const auto& criterion : criteria) tracer.need(criterion->needs());
  auto batches = [&](auto&& work) {
    for (std::int64_t first = 0; first < kImages; first += kBatch) work(images.narrow(0, first, kBatch));
  };
  compare(
      state, kImages,
      [&] {
        for (const auto& criterion : criteria) criterion->reset();
        batches([&](const at::Tensor& batch) {
          Traces traces = tracer.trace(batch);
          for (const auto& criterion : criteria) criterion->add(traces);
        });
      },
      [&] { batches([&](const at::Tensor& batch) { network->run(batch); }); });
}

constexpr const char* kSix = "nc,kmnc:k=1000,nbc,snac,tknc,tknp";

// Scores against 60,000 training traces of that width, per input: of 10,000 inputs, against the plain double loop on
// some of them.
void surprise_cost(benchmark::State& state, const std::string& score, std::int64_t width) {
  constexpr std::int64_t kTraining = 60000;
  constexpr std::int64_t kInputs = 10000;
  constexpr std::int64_t kLooped = 100;
  TraceLayout layout = testing::layout_of({width}, 10);
  Traces training = testing::made_up(layout, kTraining, 1);
  Traces inputs = testing::made_up(layout, kInputs, 2);
  // Independent noise on top: made-up traces lie in a space of few dimensions.
  for (Traces* traces : {&training, &inputs}) {
    at::Tensor noise = at::empty_like(traces->values);
    Rng(static_cast<std::uint64_t>(traces->size()))
        .fill_normal(noise.data_ptr<float>(), static_cast<std::size_t>(noise.numel()));
    traces->values += noise;
  }
  auto profile = testing::profile_of(layout, score == "lsa" ? "lsc" : "dsc", training);
  auto scorer = make_surprise(Spec::parse(score), layout, *profile);
  auto fast = make_surprise(Spec::parse(score), layout, *profile);
  fast->score(inputs);
  double worst = 0;
  std::vector<double> our_times, their_times;
  for (auto unused : state) {
    std::vector<double> ours, theirs;
    // What DSA remembers would make it faster from the second time on.
    if (score == "dsa") fast = make_surprise(Spec::parse(score), layout, *profile);
    our_times.push_back(seconds([&] { ours = fast->score(inputs); }) / kInputs);
    their_times.push_back(seconds([&] {
                            for (std::int64_t i = 0; i < kLooped; ++i) theirs.push_back(scorer->score_alone(inputs, i));
                          }) /
                          kLooped);
    for (std::size_t i = 0; i < theirs.size(); ++i) worst = std::max(worst, std::abs(ours[i] - theirs[i]));
    state.SetIterationTime(our_times.back() * kInputs);
  }
  state.counters["ours/s"] = 1 / median(our_times);
  state.counters["loop/s"] = 1 / median(their_times);
  state.counters["times faster"] = median(their_times) / median(our_times);
  state.counters["largest difference"] = worst;
}

BENCHMARK_CAPTURE(criteria_cost, resnet20_six_criteria, "resnet20", kSix)->UseManualTime()->MinTime(5);
BENCHMARK_CAPTURE(criteria_cost, resnet20_nlc, "resnet20", "nlc")->UseManualTime()->MinTime(5);
BENCHMARK_CAPTURE(criteria_cost, resnet20_npc, "resnet20", "npc")->UseManualTime()->MinTime(5);
BENCHMARK_CAPTURE(criteria_cost, resnet20_cac, "resnet20", "cac")->UseManualTime()->MinTime(5);
BENCHMARK_CAPTURE(criteria_cost, lenet5_six_criteria, "lenet5", kSix)->UseManualTime()->MinTime(2);
BENCHMARK_CAPTURE(criteria_cost, lenet5_nlc, "lenet5", "nlc")->UseManualTime()->MinTime(2);
BENCHMARK_CAPTURE(criteria_cost, lenet5_cac, "lenet5", "cac")->UseManualTime()->MinTime(2);
BENCHMARK_CAPTURE(surprise_cost, dsa_10_wide, "dsa", 10)->UseManualTime()->Iterations(7);
BENCHMARK_CAPTURE(surprise_cost, dsa_84_wide, "dsa", 84)->UseManualTime()->Iterations(7);
BENCHMARK_CAPTURE(surprise_cost, lsa_10_wide, "lsa", 10)->UseManualTime()->Iterations(7);
BENCHMARK_CAPTURE(surprise_cost, lsa_84_wide, "lsa", 84)->UseManualTime()->Iterations(7);

}  // namespace
}  // namespace galvani::bench
