// What a mutant costs: by family, and of the whole engine in units of the network that will judge it. One worker.
#include <torch/script.h>

#include "galvani/base/parallel.h"
#include "galvani/data/dataset.h"
#include "galvani/model/zoo.h"
#include "galvani/mutate/engine.h"
#include "model/network_impl.h"
#include "pairs.h"

namespace galvani::bench {
namespace {

constexpr std::int64_t kParents = 512;

at::Tensor sample_images(bool colour) {
  if (!colour) return load_data("digits:test[:512]").images;
  // Something as smooth as a photograph: noise enlarged.
  at::Tensor noise = at::randint(0, 256, {kParents, 3, 8, 8}, at::kByte).to(at::kFloat);
  return at::upsample_bilinear2d(noise, {32, 32}, false).to(at::kByte).contiguous();
}

std::vector<Parent> parents_of(const at::Tensor& images) {
  std::vector<Parent> parents;
  Rng rng(1);
  for (std::int64_t i = 0; i < images.size(0); ++i)
    parents.push_back({images[i], images[i], false, rng.derive(static_cast<std::uint64_t>(i))});
  return parents;
}

// Draws of one mutator, applied and judged: µs a valid mutant in "us".
void family(benchmark::State& state, const std::string& spec, bool colour) {
  set_workers(1);
  std::vector<Parent> parents = parents_of(sample_images(colour));
  MutationContext context{SampleType::of(parents[0].image.sizes().vec(), 0), sample_images(colour)};
  MutationEngine engine(spec, context);
  std::int64_t valid = 0, tries = 0;
  double spent = 0;
  for (auto unused : state) {
    Mutants mutants;
    double time = seconds([&] { mutants = engine.mutate(parents); });
    for (Parent& parent : parents) parent.rng = parent.rng.derive(1);
    for (const Mutant& mutant : mutants.each) tries += mutant.tries;
    valid += mutants.valid();
    spent += time;
    state.SetIterationTime(time);
  }
  state.counters["us/valid"] = spent * 1e6 / static_cast<double>(std::max<std::int64_t>(1, valid));
  state.counters["us/try"] = spent * 1e6 / static_cast<double>(std::max<std::int64_t>(1, tries));
  state.counters["tries"] = static_cast<double>(tries) / static_cast<double>(std::max<std::int64_t>(1, valid));
}

// Every family and catalogue, gray and colour.
const int kRegistered = [] {
  std::vector<std::string> specs;
  for (const auto& catalogue : mutation_catalogues()) specs.push_back(catalogue.name);
  for (const auto& entry : mutators().entries()) {
    if (entry.name != "style-net") specs.push_back(entry.name);
  }
  for (bool colour : {false, true}) {
    for (const std::string& spec : specs) {
      std::string name = std::string("mutate/") + (colour ? "3x32x32/" : "1x28x28/") + spec;
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { family(state, spec, colour); })
          ->UseManualTime()
          ->MinTime(0.2)
          ->Unit(benchmark::kMillisecond);
    }
  }
  return 0;
}();

// The engine against the bare forward pass of the same number of images, both on one worker.
void mutate_against_forward(benchmark::State& state, const char* name, bool colour) {
  set_workers(1);
  at::Tensor images = sample_images(colour);
  std::vector<Parent> parents = parents_of(images);
  at::IntArrayRef sizes = parents[0].image.sizes();
  MutationEngine engine("nsgen", {SampleType::image(sizes[0], sizes[1], sizes[2]), {}});
  Rng rng(1);
  ArchitectureShape shape = colour ? ArchitectureShape{3, 32, 32, 10} : ArchitectureShape{1, 28, 28, 10};
  auto network = Network::from_onnx(architectures().create(Spec::parse(name), shape, rng), name, {});
  at::Tensor input = network->impl().prepare(images, {});
  constexpr std::int64_t kBatch = 64;
  compare(
      state, kParents, [&] { benchmark::DoNotOptimize(engine.mutate(parents)); },
      [&] {
        at::NoGradGuard no_grad;
        for (std::int64_t first = 0; first < kParents; first += kBatch)
          benchmark::DoNotOptimize(network->impl().module.forward({input.narrow(0, first, kBatch)}));
      });
}
BENCHMARK_CAPTURE(mutate_against_forward, lenet5, "lenet5", false)->UseManualTime()->MinTime(2);
BENCHMARK_CAPTURE(mutate_against_forward, resnet20, "resnet20", true)->UseManualTime()->MinTime(3);

}  // namespace
}  // namespace galvani::bench
