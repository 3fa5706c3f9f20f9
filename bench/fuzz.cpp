// A campaign with everything that belongs to it (mutation, validity, coverage, store) against the bare forward pass of
// the same number of images. The counter "share" is the campaign's mutants per second in units of the pass's images per
// second: at least 0.70 is wanted for ResNet-20 and 0.40 for LeNet-5. On ext4, wait half a minute after the last run:
// creating files is slow while many were just deleted (the file system avoids their inodes).
#include <ATen/ATen.h>
#include <sys/resource.h>

#include "galvani/base/files.h"
#include "galvani/base/progress.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/reader.h"
#include "galvani/model/train.h"
#include "model/testing.h"
#include "pairs.h"

namespace galvani::bench {
namespace {

// Trained for a moment, so that faults are as frequent as in practice; and images to start from. ResNet-20 sees digits
// in colour, enlarged.
struct Bench {
  explicit Bench(const std::string& architecture) : network(testing::zoo_network(architecture, {})) {
    Dataset train = fitted(load_data("digits:train[0:2000]"));
    data = fitted(load_data("digits:test[0:1500]"));
    TrainOptions options;
    options.epochs = architecture == "lenet5" ? 2 : 1;
    ModelCard card = network->card();
    card.preprocess = normalisation(train);
    network->set_card(card);
    galvani::train(*network, train, data, options, [](const EpochReport&) {});
  }
  Dataset fitted(Dataset images) const {
    const auto& in = network->info().input;
    if (in[0] == 1) return images;
    at::Tensor large = at::upsample_bilinear2d(images.images.to(at::kFloat), {in[1], in[2]}, false);
    images.images = large.round().to(at::kByte).expand({-1, 3, -1, -1}).contiguous();
    return images;
  }

  std::unique_ptr<Network> network;
  Dataset data;
};

// Of all threads, system calls included: what is left of the comparison when others use the machine, too.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto of = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

void campaign(benchmark::State& state, const std::string& architecture, const std::string& guide, std::int64_t picks) {
  Progress::set_enabled(false);
  const std::int64_t kBatches = architecture == "lenet5" ? 32 : 4;
  Bench bench(architecture);
  std::unique_ptr<Network>& network = bench.network;
  const Dataset& data = bench.data;
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
  std::vector<double> ours, theirs, our_work, their_work;
  for (auto unused : state) {
    budget.iterations += kBatches * picks;
    double start = processor_seconds();
    theirs.push_back(seconds([&] { benchmark::DoNotOptimize(network->run(images).logits); }));
    double middle = processor_seconds();
    ours.push_back(seconds([&] { campaign.run(budget, {}); }));
    their_work.push_back(middle - start);
    our_work.push_back(processor_seconds() - middle);
    state.SetIterationTime(ours.back());
  }
  CampaignCounters counters = CampaignReader(folder / "run").counters();
  auto valid = static_cast<double>(counters.valid);
  state.counters["share"] = median(theirs) / median(ours) * valid / static_cast<double>(counters.mutants);
  state.counters["cpu share"] = median(their_work) / median(our_work) * valid / static_cast<double>(counters.mutants);
  state.counters["mutants/s"] = static_cast<double>(mutants) / median(ours);
  state.counters["images/s"] = static_cast<double>(mutants) / median(theirs);
  state.counters["kept"] = static_cast<double>(counters.kept) / valid;
  state.counters["faults"] = static_cast<double>(counters.faults) / valid;
}

BENCHMARK_CAPTURE(campaign, resnet20_kmnc, "resnet20", "kmnc", 16)->UseManualTime()->Iterations(6);
BENCHMARK_CAPTURE(campaign, lenet5_kmnc, "lenet5", "kmnc", 16)->UseManualTime()->Iterations(8);
BENCHMARK_CAPTURE(campaign, lenet5_random, "lenet5", "random", 16)->UseManualTime()->Iterations(3);

}  // namespace
}  // namespace galvani::bench
