// What examples of a trained generator cost, in units of the generator's own forward pass.
#include <ATen/ATen.h>

#include "galvani/base/files.h"
#include "galvani/data/dataset.h"
#include "galvani/generate/generator.h"
#include "galvani/model/translator.h"
#include "pairs.h"

namespace galvani::bench {
namespace {

constexpr std::int64_t kExampleParents = 64;
constexpr std::int64_t kEnergy = 10;

std::unique_ptr<Network> example_network() {
  TranslatorRequest request{{1, 28, 28, 2}, {"p.", "q."}, Rng(2)};
  Network::Options options;
  options.any_output = true;
  options.execution = {64, false, false};
  return Network::from_onnx(translators().create(Spec::parse("resnet"), request), "aeg", options);
}

// A batch of picks of the generator `aeg` against the same images through the bare network, dropout awake in both. The
// share that matters is theirs over ours: 1 / ratio.
void example_cost(benchmark::State& state, bool judged) {
  TemporaryFolder folder;
  std::unique_ptr<Network> network = example_network();
  network->save(folder / "aeg.onnx");
  std::string features = "none";
  if (judged) {
    Rng rng(1);
    Network::from_onnx(architectures().create(Spec::parse("lenet5"), {1, 28, 28, 10}, rng), "lenet5", {})
        ->save(folder / "reference.onnx");
    features = (folder / "reference.onnx").string();
  }
  GeneratorContext context;
  context.seeds = load_data("digits:test[0:64]").images;
  auto generator =
      make_generator(Spec::parse("aeg:model=" + (folder / "aeg.onnx").string() + ",features=" + features), context);
  std::vector<PickedParent> parents;
  for (std::int64_t i = 0; i < kExampleParents; ++i)
    parents.push_back({context.seeds[i], context.seeds[i], "", 0, i + 1, Rng(3)});
  at::Tensor repeated = context.seeds.repeat_interleave(kEnergy, 0);
  Application awake;
  awake.random = RandomLayers{1, 0};
  compare(
      state, kExampleParents * kEnergy,
      [&] {
        std::unique_ptr<Proposal> proposal = generator->begin(parents, {kEnergy, false});
        while (!proposal->next(4096).each.empty()) proposal->learn({});
      },
      [&] { network->apply(repeated, awake); });
  state.counters["share"] = 1 / static_cast<double>(state.counters["ratio"]);
}

BENCHMARK_CAPTURE(example_cost, alone, false)->UseManualTime()->Iterations(9);
BENCHMARK_CAPTURE(example_cost, judged, true)->UseManualTime()->Iterations(9);

}  // namespace
}  // namespace galvani::bench
