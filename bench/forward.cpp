// The executor against LibTorch's own way of running the same module, single-threaded unless said otherwise.
#include <ATen/Parallel.h>
#include <torch/script.h>

#include <map>

#include "galvani/base/parallel.h"
#include "galvani/model/zoo.h"
#include "model/network_impl.h"
#include "pairs.h"

namespace galvani::bench {
namespace {

constexpr std::int64_t kForwardBatch = 64;

Network& zoo_network(const std::string& name, std::int64_t micro_batch = 0) {
  static std::map<std::pair<std::string, std::int64_t>, std::unique_ptr<Network>> made;
  auto& network = made[{name, micro_batch}];
  if (!network) {
    Rng rng(1);
    bool grey = name.rfind("lenet", 0) == 0;
    ArchitectureShape shape = grey ? ArchitectureShape{1, 28, 28, 10} : ArchitectureShape{3, 32, 32, 10};
    Network::Options options;
    options.micro_batch = micro_batch;
    network = Network::from_onnx(architectures().create(Spec::parse(name), shape, rng), name, options);
  }
  return *network;
}

at::Tensor random_images(const Network& network, std::int64_t n) {
  const auto& in = network.info().input;
  return at::randint(0, 256, {n, in[0], in[1], in[2]}, at::kByte);
}

void plain_forward(Network::Impl& impl, const at::Tensor& input) {
  at::NoGradGuard no_grad;
  benchmark::DoNotOptimize(impl.module.forward({input}));
}

// Batch 64, one thread: the graph with no taps, and with every convolution and dense layer tapped.
void forward_plan(benchmark::State& state, const char* name, bool taps) {
  Network& network = zoo_network(name);
  Network::Impl& impl = network.impl();
  Executor::Wish wish;
  if (taps) wish.taps = network.select_taps("default");
  wish.form = Executor::Form::whole_final;
  auto plan = impl.executor->plan(wish);
  at::Tensor input = impl.prepare(random_images(network, kForwardBatch), {});
  compare(
      state, kForwardBatch,
      [&] {
        c10::InferenceMode inference;
        benchmark::DoNotOptimize(plan->run(input, {}));
      },
      [&] { plain_forward(impl, input); });
}
BENCHMARK_CAPTURE(forward_plan, lenet5_no_taps, "lenet5", false)->UseManualTime()->MinTime(3);
BENCHMARK_CAPTURE(forward_plan, lenet5_all_taps, "lenet5", true)->UseManualTime()->MinTime(3);
BENCHMARK_CAPTURE(forward_plan, resnet20_no_taps, "resnet20", false)->UseManualTime()->MinTime(5);
BENCHMARK_CAPTURE(forward_plan, resnet20_all_taps, "resnet20", true)->UseManualTime()->MinTime(5);

// Bytes in, logits and neuron means out, tuned micro-batches, one worker; against the plain forward pass at batch 64.
void network_run(benchmark::State& state, const char* name, bool taps) {
  Network& network = zoo_network(name);
  set_workers(1);
  std::int64_t n = network.execution().micro_batch * 4;
  at::Tensor images = random_images(network, n);
  at::Tensor input = network.impl().prepare(images, {});
  Request request;
  if (taps) request.taps = network.select_taps("default");
  compare(
      state, n, [&] { benchmark::DoNotOptimize(network.run(images, request).logits); },
      [&] {
        for (std::int64_t first = 0; first < n; first += kForwardBatch)
          plain_forward(network.impl(), input.narrow(0, first, std::min(kForwardBatch, n - first)));
      });
}
BENCHMARK_CAPTURE(network_run, lenet5_logits, "lenet5", false)->UseManualTime()->MinTime(3);
BENCHMARK_CAPTURE(network_run, lenet5_traces, "lenet5", true)->UseManualTime()->MinTime(3);
BENCHMARK_CAPTURE(network_run, resnet20_logits, "resnet20", false)->UseManualTime()->MinTime(5);
BENCHMARK_CAPTURE(network_run, resnet20_traces, "resnet20", true)->UseManualTime()->MinTime(5);

// Two workers with single-threaded kernels, as Network::run uses them (bytes in, the faster layout), against one caller
// with two-threaded kernels on ready-made input; both in batches of 64.
void workers_against_threads(benchmark::State& state, const char* name) {
  Network& network = zoo_network(name, kForwardBatch);
  constexpr std::int64_t kBatches = 8;
  at::Tensor images = random_images(network, kForwardBatch * kBatches);
  at::Tensor input = network.impl().prepare(images.narrow(0, 0, kForwardBatch), {});
  set_workers(2);
  network.execution();
  compare(
      state, kForwardBatch * kBatches,
      [&] {
        at::set_num_threads(1);
        benchmark::DoNotOptimize(network.run(images).logits);
      },
      [&] {
        at::set_num_threads(2);
        for (std::int64_t i = 0; i < kBatches; ++i) plain_forward(network.impl(), input);
      });
  at::set_num_threads(1);
}
BENCHMARK_CAPTURE(workers_against_threads, resnet20, "resnet20")->UseManualTime()->MinTime(8);
BENCHMARK_CAPTURE(workers_against_threads, lenet5, "lenet5")->UseManualTime()->MinTime(3);

// What a gradient costs: forward and input gradient against the bare forward pass.
void input_gradient(benchmark::State& state, const char* name) {
  Network& network = zoo_network(name);
  set_workers(1);
  std::int64_t n = network.execution().micro_batch * 2;
  at::Tensor images = random_images(network, n);
  Request request;
  request.objective = [](const Pass& pass) { return pass.logits.select(1, 0); };
  request.input_gradient = true;
  compare(
      state, n, [&] { benchmark::DoNotOptimize(network.run(images, request).input_gradient); },
      [&] { benchmark::DoNotOptimize(network.run(images).logits); });
}
BENCHMARK_CAPTURE(input_gradient, lenet5, "lenet5")->UseManualTime()->MinTime(3);
BENCHMARK_CAPTURE(input_gradient, resnet20, "resnet20")->UseManualTime()->MinTime(5);

}  // namespace
}  // namespace galvani::bench
