// Decision paths: many images and all layers at once against one layer and one image at a time, and a campaign guided
// by them against the bare forward and backward passes that it cannot do without.
#include <ATen/ATen.h>

#include <ctime>

#include "galvani/attribute/conductance.h"
#include "galvani/base/files.h"
#include "galvani/base/progress.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/reader.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/train.h"
#include "galvani/semantics/descriptions.h"
#include "model/testing.h"
#include "pairs.h"

namespace galvani::bench {
namespace {

constexpr std::int64_t kLayers = 5;

// A path's steps and layers one after the other, each pass with an input of its own.
void step_by_step(Network& network, const std::vector<int>& taps, const at::Tensor& image, std::int64_t steps) {
  for (int tap : taps) {
    for (std::int64_t step = 1; step <= steps; ++step) {
      Request request;
      request.taps = {tap};
      request.form = TapForm::full;
      request.objective = [](const Pass& pass) { return pass.logits.select(1, 0); };
      request.tap_gradients = true;
      request.alone = true;
      Outputs outputs = network.run(image * (static_cast<double>(step) / static_cast<double>(steps)), request);
      benchmark::DoNotOptimize(outputs.tap_gradients[0] * outputs.taps[0]);
    }
  }
}

// What the clock says, and what the processors did meanwhile: on a busy machine only the latter can be relied on.
struct Effort {
  std::vector<double> clock, processor;
  template <class Work>
  void measure(double items, Work&& work) {
    std::clock_t before = std::clock();
    clock.push_back(seconds(work) / items);
    processor.push_back(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC / items);
  }
};

// As many of them as a path has: convolutions, of a network with few of them the dense layers, too.
std::vector<int> layers_of_path(const Network& network) {
  std::vector<int> taps = choose_layers(network, std::to_string(kLayers));
  return taps.size() == kLayers ? taps : evenly_chosen(network.select_taps("default"), kLayers);
}

// "times one by one": images a second in units of one layer, one image and one step at a time. "times layer by layer":
// of one layer and one image at a time, whose steps are a batch, as public code does it. At least 20 is wanted. "work":
// the same by processor time, which leaves out that many images keep all cores busy and one does not.
void paths(benchmark::State& state, const std::string& architecture, std::int64_t images) {
  constexpr std::int64_t kSteps = 50;
  auto network = testing::zoo_network(architecture, {});
  std::vector<int> taps = layers_of_path(*network);
  at::Tensor inputs = testing::random_images(*network, images);
  at::Tensor targets = at::zeros({images}, at::kLong);
  at::Tensor one = inputs.narrow(0, 0, 1).to(at::kFloat);
  std::vector<std::unique_ptr<Conductance>> single;
  for (int tap : taps) single.push_back(std::make_unique<Conductance>(*network, std::vector<int>{tap}));
  Conductance all(*network, taps);
  all(inputs.narrow(0, 0, 2), targets.narrow(0, 0, 2));
  for (auto& layer : single) (*layer)(one, targets.narrow(0, 0, 1));
  Effort ours, by_step, by_layer;
  for (auto unused : state) {
    by_step.measure(1, [&] { step_by_step(*network, taps, one, kSteps); });
    by_layer.measure(1, [&] {
      for (auto& layer : single) (*layer)(one, targets.narrow(0, 0, 1));
    });
    ours.measure(static_cast<double>(images), [&] { all(inputs, targets); });
    state.SetIterationTime(ours.clock.back());
  }
  state.counters["paths/s"] = 1 / median(ours.clock);
  state.counters["times one by one"] = median(by_step.clock) / median(ours.clock);
  state.counters["times layer by layer"] = median(by_layer.clock) / median(ours.clock);
  state.counters["work one by one"] = median(by_step.processor) / median(ours.processor);
  state.counters["work layer by layer"] = median(by_layer.processor) / median(ours.processor);
  state.counters["layers"] = static_cast<double>(taps.size());
}

// A word for each neuron: what words cost is looked at, not what they mean.
Descriptions plain_words(const Network& network, const std::vector<int>& taps) {
  Descriptions result;
  result.model = network.identity();
  for (int tap : taps) {
    DescribedLayer layer{network.taps()[static_cast<std::size_t>(tap)].name, {}};
    for (std::int64_t n = 0; n < network.taps()[static_cast<std::size_t>(tap)].neurons(); ++n) {
      DescribedNeuron neuron;
      neuron.words = "thing " + std::to_string(n) + " of layer " + layer.tap;
      layer.neurons.push_back(std::move(neuron));
    }
    result.layers.push_back(std::move(layer));
  }
  return result;
}

// "share": what the campaign's passes would take alone, in units of what the campaign takes. At least 0.7 is wanted.
// "share of work": the same by processor time.
void nsgen_campaign(benchmark::State& state, const std::string& architecture, std::int64_t picks) {
  Progress::set_enabled(false);
  auto network = testing::zoo_network(architecture, {});
  const auto& in = network->info().input;
  Dataset data = load_data("digits:test[0:400]");
  if (in[0] == 3) {
    at::Tensor large = at::upsample_bilinear2d(data.images.to(at::kFloat), {in[1], in[2]}, false);
    data.images = large.round().to(at::kByte).expand({-1, 3, -1, -1}).contiguous();
  }
  data.labels = predict(*network, data.images).labels;
  std::vector<int> taps = choose_layers(*network, std::to_string(kLayers));
  TemporaryFolder folder;
  plain_words(*network, taps).save(folder / "neurons.json");
  Tracer tracer(*network, network->select_taps("default"), NeuronUnit::channel);
  CampaignSettings settings;
  settings.guide = "nsgen:tau=0.6,describe=" + (folder / "neurons.json").string();
  settings.batch = picks;
  settings.energy = 8;
  settings.seeds = 100;
  Campaign campaign(folder / "run", settings, {tracer, data, nullptr, "", nullptr});
  Request bare;
  bare.taps = taps;
  bare.form = TapForm::full;
  bare.tap_gradients = true;
  bare.objective = [](const Pass& pass) { return pass.logits.select(1, 0); };
  bare.reducer = [](const Outputs&, std::int64_t) { return std::vector<at::Tensor>(); };
  constexpr std::int64_t kPasses = 1600;
  at::Tensor images = testing::random_images(*network, kPasses).to(at::kFloat);
  network->run(images, bare);
  Budget budget;
  std::vector<double> shares, work, rates, pass_rates;
  std::int64_t before = CampaignReader(folder / "run").counters().passes;
  for (auto unused : state) {
    budget.iterations += picks;
    Effort pass, whole;
    pass.measure(kPasses, [&] { network->run(images, bare); });
    whole.measure(1, [&] { campaign.run(budget, {}); });
    pass.measure(kPasses, [&] { network->run(images, bare); });
    CampaignCounters counters = CampaignReader(folder / "run").counters();
    auto passes = static_cast<double>(counters.passes - before);
    before = counters.passes;
    double pass_time = (pass.clock[0] + pass.clock[1]) / 2;
    shares.push_back(passes * pass_time / whole.clock[0]);
    work.push_back(passes * (pass.processor[0] + pass.processor[1]) / 2 / whole.processor[0]);
    rates.push_back(passes / whole.clock[0]);
    pass_rates.push_back(1 / pass_time);
    state.SetIterationTime(whole.clock[0]);
  }
  CampaignCounters counters = CampaignReader(folder / "run").counters();
  state.counters["share"] = median(shares);
  state.counters["share of work"] = median(work);
  state.counters["passes/s"] = median(rates);
  state.counters["bare/s"] = median(pass_rates);
  state.counters["kept"] = static_cast<double>(counters.kept) / static_cast<double>(counters.valid);
}

BENCHMARK_CAPTURE(paths, resnet20, "resnet20", 16)->UseManualTime()->Iterations(3);
BENCHMARK_CAPTURE(paths, lenet5, "lenet5", 128)->UseManualTime()->Iterations(5);
BENCHMARK_CAPTURE(nsgen_campaign, resnet20, "resnet20", 8)->UseManualTime()->Iterations(3);
BENCHMARK_CAPTURE(nsgen_campaign, lenet5, "lenet5", 64)->UseManualTime()->Iterations(5);

}  // namespace
}  // namespace galvani::bench
