// A campaign with everything that belongs to it (mutation, validity, coverage, store) against the bare forward pass of
// the same number of images. The counter "share" is the campaign's mutants per second in units of the pass's images per
// second: at least 0.70 is wanted for ResNet-20 and 0.40 for LeNet-5.
#include <ATen/ATen.h>

#include "galvani/base/files.h"
#include "galvani/base/progress.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/reader.h"
#include "galvani/model/evaluate.h"
#include "model/testing.h"
#include "pairs.h"

namespace galvani::bench {
namespace {

// Images that the network gets right because its verdicts are their labels: smooth noise, brighter or darker.
Dataset labelled_by(Network& network, std::int64_t n) {
  const auto& in = network.info().input;
  at::Tensor noise = testing::random_images(network, n).to(at::kFloat);
  noise = at::upsample_bilinear2d(noise.narrow(2, 0, 8).narrow(3, 0, 8), {in[1], in[2]}, false);
  Dataset data;
  data.name = "noise";
  data.images = (noise * at::linspace(0.2, 1, n).view({n, 1, 1, 1})).to(at::kByte).contiguous();
  data.labels = predict(network, data.images).labels;
  return data;
}

void campaign(benchmark::State& state, const std::string& architecture, const std::string& guide, std::int64_t picks) {
  Progress::set_enabled(false);
  constexpr std::int64_t kBatches = 4;
  auto network = testing::zoo_network(architecture, {});
  Dataset data = labelled_by(*network, 1000);
  Tracer tracer(*network, network->select_taps("default"), NeuronUnit::channel);
  auto profile = learn_profile(tracer, Spec::parse_list(guide == "random" ? "nc" : guide), data, 0, 0);
  CampaignSettings settings;
  settings.guide = guide;
  settings.batch = picks;
  TemporaryFolder folder;
  Campaign campaign(folder / "run", settings, {tracer, data, profile, "noise", nullptr});
  std::int64_t mutants = kBatches * picks * settings.energy;
  at::Tensor images = testing::random_images(*network, mutants);
  Budget budget;
  std::vector<double> ours, theirs;
  for (auto unused : state) {
    budget.iterations += kBatches * picks;
    theirs.push_back(seconds([&] { benchmark::DoNotOptimize(network->run(images).logits); }));
    ours.push_back(seconds([&] { campaign.run(budget, {}); }));
    state.SetIterationTime(ours.back());
  }
  CampaignCounters counters = CampaignReader(folder / "run").counters();
  auto valid = static_cast<double>(counters.valid);
  state.counters["share"] = median(theirs) / median(ours) * valid / static_cast<double>(counters.mutants);
  state.counters["mutants/s"] = static_cast<double>(mutants) / median(ours);
  state.counters["images/s"] = static_cast<double>(mutants) / median(theirs);
  state.counters["kept"] = static_cast<double>(counters.kept) / valid;
  state.counters["faults"] = static_cast<double>(counters.faults) / valid;
}

BENCHMARK_CAPTURE(campaign, resnet20_kmnc, "resnet20", "kmnc", 16)->UseManualTime()->MinTime(20);
BENCHMARK_CAPTURE(campaign, lenet5_kmnc, "lenet5", "kmnc", 16)->UseManualTime()->MinTime(8);
BENCHMARK_CAPTURE(campaign, lenet5_random, "lenet5", "random", 16)->UseManualTime()->MinTime(5);

}  // namespace
}  // namespace galvani::bench
