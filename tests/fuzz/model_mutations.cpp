// Loads damaged model files and runs one image through those that load. Each must work or be refused with an Error;
// anything else, a crash, a leak or ten seconds of work included, is a failure.
//
//   fuzz_models [cases] [seed] [first]
//
// Cases run in child processes, so that one which crashes does not end the run. A failing case's files are kept in the
// working folder.
#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/log.h"
#include "galvani/base/parallel.h"
#include "galvani/base/runtime.h"
#include "galvani/model/network.h"
#include "model/train/checkpoint.h"
#include "model_seeds.h"
#include "mutate_archive.h"
#include "mutate_bytes.h"
#include "mutate_onnx.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

constexpr double kSecondsPerCase = 10;
constexpr long kCasesPerChild = 1000;
constexpr std::size_t kLargestTensor = std::size_t{512} << 20;
constexpr long kMostMemory = 6L << 30;

// As on a small machine: what a model asks for must not depend on how much memory this one happens to have.
class SmallMachine final : public at::Allocator {
 public:
  at::DataPtr allocate(std::size_t n) const override {
    if (n > kLargestTensor) bad_input("a tensor of {} bytes does not fit", n);
    return c10::GetDefaultCPUAllocator()->allocate(n);
  }
  at::DeleterFnPtr raw_deleter() const override { return c10::GetDefaultCPUAllocator()->raw_deleter(); }
};

// What the child tells the parent, in shared memory.
struct Progress {
  std::atomic<long> current;
  std::atomic<long> loaded;
  std::atomic<long> refused;
};

class Seeds {
 public:
  explicit Seeds(const fs::path& folder)
      : zoo_(zoo_seeds()),
        operators_(operator_cases()),
        archives_(torchscript_seeds()),
        checkpoint_(checkpoint_seed(folder)) {}

  // Writes a damaged model into the folder, loads it and runs it.
  void run_case(Rng rng, const fs::path& folder) const {
    std::uint64_t kind = rng.below(20);
    if (kind == 0) return load_damaged_checkpoint(rng, folder);
    if (kind == 1) return load_damaged_card(rng, folder);
    if (kind < 8) {
      const std::string& archive = archives_[rng.below(archives_.size())];
      write_file(folder / "model.pt", rng.chance(0.2) ? mutate(archive, rng) : mutate_archive(archive, rng));
      return load_and_run(folder / "model.pt");
    }
    ::onnx::ModelProto model = rng.chance(0.6) && !operators_.empty()
                                   ? operator_seed(operators_[rng.below(operators_.size())])
                                   : zoo_[rng.below(zoo_.size())];
    if (rng.chance(0.1)) {
      std::string external = make_external(model, "model.data");
      write_file(folder / "model.data", rng.chance(0.5) ? mutate(external, rng) : external);
    }
    bool bytewise = rng.chance(0.25);
    if (!bytewise) mutate_onnx(model, rng);
    std::string bytes = model.SerializeAsString();
    write_file(folder / "model.onnx", bytewise ? mutate(bytes, rng) : bytes);
    load_and_run(folder / "model.onnx");
  }

 private:
  static void load_and_run(const fs::path& path) {
    Network::Options options;
    options.execution.micro_batch = 2;
    std::unique_ptr<Network> network = Network::load(path, options);
    const std::vector<std::int64_t>& shape = network->info().input;
    Request request;
    request.objective = [](const Pass& pass) { return pass.logits.sum(1); };
    request.input_gradient = true;
    network->run(at::full({1, shape[0], shape[1], shape[2]}, 77, at::kByte), request);
    network->layers();
    network->save(path.string() + ".saved");
  }

  void load_damaged_checkpoint(Rng& rng, const fs::path& folder) const {
    write_file(folder / "model.checkpoint", mutate(checkpoint_, rng));
    load_checkpoint(folder / "model.checkpoint");
  }

  void load_damaged_card(Rng& rng, const fs::path& folder) const {
    const std::string toml =
        "range = [0.0, 1.0]\nmean = [0.5]\nstd = [0.25]\nchannels = \"rgb\"\nlayout = \"nchw\"\ninput = [1, 28, 28]\n"
        "classes = [\"a\", \"b\"]\narchitecture = \"lenet\"\naccuracy = 0.9\n";
    const std::string json =
        R"({"range": [0, 1], "mean": [0.5], "std": [0.25], "input": [1, 28, 28], "accuracy": 0.9})";
    if (rng.chance(0.5)) {
      std::string damaged = mutate(json, rng);
      write_file(folder / "card.json", damaged);
      ModelCard::from_json(damaged, "card.json");
      return;
    }
    write_file(folder / "model.onnx", zoo_[0].SerializeAsString());
    write_file(folder / "model.onnx.toml", mutate(toml, rng));
    load_and_run(folder / "model.onnx");
  }

  std::vector<::onnx::ModelProto> zoo_;
  std::vector<fs::path> operators_;
  std::vector<std::string> archives_;
  std::string checkpoint_;
};

// Exit code 1: an exception that is not an Error.
int run_child(long first, long last, std::uint64_t seed, const fs::path& folder, Progress& progress) {
  static SmallMachine allocator;
  init_runtime();
  c10::SetCPUAllocator(&allocator, /*priority=*/2);
  set_workers(1);
  log::set_level(log::Level::error);
  TemporaryFolder own("fuzz_models");
  Seeds seeds(own.path());
  for (long i = first; i < last; ++i) {
    progress.current = i;
    fs::remove_all(folder);
    fs::create_directories(folder);
    try {
      seeds.run_case(Rng(seed).derive(static_cast<std::uint64_t>(i)), folder);
      ++progress.loaded;
    } catch (const Error& e) {
      ++progress.refused;
      if (std::getenv("FUZZ_VERBOSE") != nullptr) std::printf("case %ld: %s\n", i, e.what());
      if (e.code() != ErrorCode::internal) continue;
      std::printf("case %ld: an internal error: %s\n", i, e.what());
      return 1;
    } catch (const std::exception& e) {
      std::printf("case %ld: an exception that is no Error: %s\n", i, e.what());
      return 1;
    }
  }
  progress.current = last;
  return 0;
}

long resident_memory(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  long size = 0;
  long resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Waits for the child; kills it if a case takes too long or too much. Returns what went wrong, or "".
std::string watch(pid_t child, const Progress& progress) {
  using Clock = std::chrono::steady_clock;
  long seen = -1;
  Clock::time_point since = Clock::now();
  while (true) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
      return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                 : "exit code " + std::to_string(WEXITSTATUS(status));
    }
    if (progress.current != seen) {
      seen = progress.current;
      since = Clock::now();
    }
    // The first case waits for the seeds too.
    bool slow = seen >= 0 && std::chrono::duration<double>(Clock::now() - since).count() > kSecondsPerCase;
    bool large = resident_memory(child) > kMostMemory;
    if (slow || large) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return slow ? "takes more than 10 seconds" : "takes more than 6 GB";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

int run(long cases, std::uint64_t seed, long first) {
  void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;  // NOLINT(cppcoreguidelines-pro-type-cstyle-cast): the system's own macro
  auto* progress = new (memory) Progress();
  TemporaryFolder folder("fuzz_models");
  long failures = 0;
  long last = first + cases;
  for (long next = first; next < last;) {
    long end = std::min(last, next + kCasesPerChild);
    progress->current = -1;
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      int code = run_child(next, end, seed, folder / "case", *progress);
      std::fflush(stdout);
      std::exit(code);
    }
    std::string problem = watch(child, *progress);
    long stopped = progress->current;
    if (!problem.empty()) {
      ++failures;
      if (stopped < 0) {
        std::printf("the seeds cannot be made: %s\n", problem.c_str());
        return 1;
      }
      if (stopped < end) {
        std::string kept = "fuzz_models-" + std::to_string(seed) + "-" + std::to_string(stopped);
        fs::copy(folder / "case", kept, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
        std::printf("FAILED case %ld: %s; its files are in %s; again: fuzz_models 1 %llu %ld\n", stopped,
                    problem.c_str(), kept.c_str(), static_cast<unsigned long long>(seed), stopped);
      } else {
        std::printf("FAILED at the end of cases %ld to %ld (a leak?): %s\n", next, end - 1, problem.c_str());
      }
    }
    next = stopped < end ? stopped + 1 : end;
  }
  std::printf("%ld cases: %ld loaded, %ld refused, %ld failures\n", cases, progress->loaded.load(),
              progress->refused.load(), failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace galvani

int main(int argc, char** argv) {
  long cases = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1000;
  std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  return galvani::run(cases, seed, argc > 3 ? std::strtol(argv[3], nullptr, 10) : 0);
}
