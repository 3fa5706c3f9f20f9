// Our side of compare.mjs: forward passes of one worker, timed when they are asked for.
//
//   onnxruntime_passes make FOLDER        writes the zoo's networks there
//   onnxruntime_passes MODEL BATCH WHAT   WHAT is fused or plain; for every line "seconds" on standard input it runs
//                                         that long and answers with the least processor seconds of one pass
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <string>

#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/base/rng.h"
#include "galvani/base/runtime.h"
#include "galvani/model/network.h"
#include "galvani/model/zoo.h"

namespace galvani::bench {
namespace {

void make(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  Rng rng(1);
  write_file(folder / "lenet5.onnx", architectures().create(Spec::parse("lenet5"), {1, 28, 28, 10}, rng));
  write_file(folder / "resnet20.onnx", architectures().create(Spec::parse("resnet20"), {3, 32, 32, 10}, rng));
}

// Of this process: on a busy machine the clock on the wall measures the others, too.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int serve(const std::string& model, std::int64_t batch, bool fused) {
  set_workers(1);
  Network::Options options;
  options.micro_batch = batch;
  options.unfused = !fused;
  auto network = Network::load(model, options);
  const std::vector<std::int64_t>& in = network->info().input;
  at::Tensor images = at::randint(0, 256, {batch, in[0], in[1], in[2]}, at::kByte);
  network->run(images);
  fmt::print("{}x{}x{} {}\n", in[0], in[1], in[2], network->execution().fused ? "fused" : "plain");
  std::fflush(stdout);
  for (double seconds = 0; std::cin >> seconds;) {
    double best = 1e30;
    double start = processor_seconds();
    for (double now = start; now < start + seconds;) {
      network->run(images);
      double then = now;
      now = processor_seconds();
      best = std::min(best, now - then);
    }
    fmt::print("{:.9f}\n", best);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace galvani::bench

int main(int argc, char** argv) {
  galvani::init_runtime();
  std::string first = argc > 1 ? argv[1] : "";
  if (argc == 3 && first == "make") {
    galvani::bench::make(argv[2]);
    return 0;
  }
  if (argc == 4) return galvani::bench::serve(first, std::stoll(argv[2]), std::string(argv[3]) == "fused");
  std::fputs("usage: onnxruntime_passes make FOLDER | MODEL BATCH fused|plain\n", stderr);
  return 2;
}
