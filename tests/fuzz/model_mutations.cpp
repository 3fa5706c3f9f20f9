// Loads damaged model files and runs one image through those that load. Each must work or be refused with an Error;
// anything else, a crash, a leak or ten seconds of work included, is a failure.
//
//   fuzz_models KIND [CASES] [SEED] [SHARD/SHARDS] [FIRST]
//
// KIND is onnx, torchscript, other (checkpoints and cards) or all of them in turn. Of the CASES from FIRST on a shard
// runs every SHARDS-th, so that several processes share the work. Cases run in child processes, so that one which
// crashes does not end the run. A failing case's files are kept in the working folder.
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
#include <ctime>
#include <fstream>
#include <thread>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/limits.h"
#include "galvani/base/log.h"
#include "galvani/base/parallel.h"
#include "galvani/base/runtime.h"
#include "galvani/model/network.h"
#include "graft_onnx.h"
#include "model/train/checkpoint.h"
#include "model_seeds.h"
#include "mutate_archive.h"
#include "mutate_bytes.h"
#include "mutate_code.h"
#include "mutate_onnx.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

constexpr double kSecondsPerCase = 10;  // of computing
constexpr double kLongestWait = 200;
constexpr double kSecondsPerReport = 30;
constexpr long kCasesPerChild = 400;

struct Job {
  std::string kind = "all";
  long cases = 1000;
  std::uint64_t seed = 1;
  long shard = 0;
  long shards = 1;
  long first = 0;

  long last() const { return first + cases; }
  // The first case of this shard that is not before `i`.
  long next(long i) const { return i + (shard - i % shards + shards) % shards; }
};
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
        nodes_(operators_),
        archives_(torchscript_seeds()),
        checkpoint_(checkpoint_seed(folder)) {}

  // Writes a damaged file into the folder, loads it and runs it if it is a model.
  void run_case(const std::string& kind, Rng rng, const fs::path& folder) const {
    std::uint64_t one = rng.below(20);
    if (kind == "onnx") return load_damaged_onnx(rng, folder);
    if (kind == "torchscript") return load_damaged_archive(rng, folder);
    if (kind == "other") return one < 10 ? load_damaged_checkpoint(rng, folder) : load_damaged_card(rng, folder);
    if (one < 2) return run_case("other", rng, folder);
    return one < 10 ? load_damaged_archive(rng, folder) : load_damaged_onnx(rng, folder);
  }

 private:
  static void load_and_run(const fs::path& path) {
    Network::Options options;
    options.execution.micro_batch = 2;
    std::clock_t start = std::clock();
    std::unique_ptr<Network> network = Network::load(path, options);
    // Loading and a first run are bounded. What is slow but ends is then run as often as its user likes: not here.
    constexpr double kSlow = 2;  // seconds
    if (static_cast<double>(std::clock() - start) > kSlow * CLOCKS_PER_SEC) return;
    const std::vector<std::int64_t>& shape = network->info().input;
    Request request;
    request.objective = [](const Pass& pass) { return pass.logits.sum(1); };
    request.input_gradient = true;
    std::vector<std::int64_t> one(shape);
    one.insert(one.begin(), 1);
    network->run(at::full(one, 77, shape.size() == 2 ? at::kShort : at::kByte), request);
    network->layers();
    network->save(path.string() + ".saved");
  }

  void load_damaged_archive(Rng& rng, const fs::path& folder) const {
    const std::string& archive = archives_[rng.below(archives_.size())];
    write_file(folder / "model.pt", rng.chance(0.05) ? mutate(archive, rng) : mutate_archive(archive, rng));
    load_and_run(folder / "model.pt");
  }

  void load_damaged_onnx(Rng& rng, const fs::path& folder) const {
    ::onnx::ModelProto model = rng.chance(0.6) && !operators_.empty()
                                   ? operator_seed(operators_[rng.below(operators_.size())])
                                   : zoo_[rng.below(zoo_.size())];
    if (rng.chance(0.05)) {
      std::string external = make_external(model, "model.data");
      write_file(folder / "model.data", rng.chance(0.5) ? mutate(external, rng) : external);
    }
    bool grafted = rng.chance(0.7);
    if (grafted) nodes_.graft(model, rng);
    bool bytewise = !grafted && rng.chance(0.2);
    if (!bytewise && (!grafted || rng.chance(0.3))) mutate_onnx(model, rng);
    std::string bytes = model.SerializeAsString();
    write_file(folder / "model.onnx", bytewise ? mutate(bytes, rng) : bytes);
    load_and_run(folder / "model.onnx");
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
  NodePool nodes_;
  std::vector<std::string> archives_;
  std::string checkpoint_;
};

// A crash of LibTorch or a step that takes too long ends the process with a sentence, as it does the program itself.
constexpr int kEndedInOrder = 42;
Progress* shared_progress = nullptr;
void end_in_order(StepEnd, const char*) {
  ++shared_progress->refused;
  ::_exit(kEndedInOrder);
}

// Exit code 1: an exception that is not an Error.
int run_child(const Job& task, long first, long last, const fs::path& folder, Progress& progress) {
  static SmallMachine allocator;
  init_runtime();
  c10::SetCPUAllocator(&allocator, /*priority=*/2);
  set_workers(1);
  log::set_level(log::Level::error);
  shared_progress = &progress;
  set_step_end_handler(end_in_order);
  TemporaryFolder own("fuzz_models");
  Seeds seeds(own.path());
  for (long i = first; i < last; i += task.shards) {
    progress.current = i;
    fs::remove_all(folder);
    fs::create_directories(folder);
    // What a model writes by a relative name lands here.
    fs::current_path(folder);
    try {
      seeds.run_case(task.kind, Rng(task.seed).derive(static_cast<std::uint64_t>(i)), folder);
      ++progress.loaded;
    } catch (const Error& e) {
      ++progress.refused;
      if (std::getenv("FUZZ_VERBOSE") != nullptr) std::printf("case %ld: %s\n", i, e.what());
      if (e.code() == ErrorCode::internal) {
        std::printf("case %ld: an internal error: %s\n", i, e.what());
        return 1;
      }
    } catch (const std::exception& e) {
      std::printf("case %ld: an exception that is no Error: %s\n", i, e.what());
      return 1;
    }
    if (fs::exists(folder / kForbiddenFile)) {
      std::printf("case %ld: the model wrote a file\n", i);
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

// Seconds that the process and the children it waited for have computed: on a busy machine the clock is no measure.
double processor_time(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string skipped;
  for (int i = 0; i < 13; ++i) file >> skipped;
  double ticks = 0;
  for (int i = 0; i < 4; ++i) {
    double part = 0;
    file >> part;
    ticks += part;
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Waits for the child; kills it, and what it started, if a case takes too long or too much. Returns what went wrong, or
// "". Says every half minute how far it is.
class Watch {
 public:
  Watch(const Job& task, const Progress& progress) : task_(task), progress_(progress) {}

  std::string wait(pid_t child, long end) {
    long seen = -1;
    Clock::time_point since = Clock::now();
    double used = 0;
    while (true) {
      int status = 0;
      if (waitpid(child, &status, WNOHANG) == child) {
        if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kEndedInOrder)) return "";
        return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                   : "exit code " + std::to_string(WEXITSTATUS(status));
      }
      if (progress_.current != seen) {
        seen = progress_.current;
        since = Clock::now();
        used = processor_time(child);
      }
      // The first case waits for the seeds too, and after the last one leaks are looked for.
      bool at_work = seen >= 0 && seen < end;
      bool slow = at_work && (processor_time(child) - used > kSecondsPerCase || seconds_since(since) > kLongestWait);
      bool large = resident_memory(child) > kMostMemory;
      if (slow || large) {
        kill(-child, SIGKILL);
        waitpid(child, &status, 0);
        return slow ? "takes too long" : "takes more than 6 GB";
      }
      if (seconds_since(reported_) > kSecondsPerReport) report();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  void report() {
    long loaded = progress_.loaded;
    long refused = progress_.refused;
    std::printf("%s, seed %llu, shard %ld/%ld: %ld cases, %ld loaded, %ld refused, %.1f/s\n", task_.kind.c_str(),
                static_cast<unsigned long long>(task_.seed), task_.shard, task_.shards, loaded + refused, loaded,
                refused, static_cast<double>(loaded + refused) / seconds_since(start_));
    std::fflush(stdout);
    reported_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point time) {
    return std::chrono::duration<double>(Clock::now() - time).count();
  }

  const Job& task_;
  const Progress& progress_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point reported_ = start_;
};

// Starts a child for the cases [first, end) of the shard.
pid_t start_child(const Job& task, long first, long end, const fs::path& folder, Progress& progress) {
  std::fflush(stdout);
  pid_t child = fork();
  if (child != 0) return child;
  setpgid(0, 0);
  int code = run_child(task, first, end, folder, progress);
  std::fflush(stdout);
  std::exit(code);
}

void keep(const Job& task, long stopped, const std::string& problem, const fs::path& files) {
  std::string kept = "fuzz_models-" + task.kind + "-" + std::to_string(task.seed) + "-" + std::to_string(stopped);
  fs::copy(files, kept, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  std::printf("FAILED case %ld: %s; its files are in %s; again: fuzz_models %s 1 %llu 0/1 %ld\n", stopped,
              problem.c_str(), kept.c_str(), task.kind.c_str(), static_cast<unsigned long long>(task.seed), stopped);
}

int run(const Job& task) {
  void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;  // NOLINT(cppcoreguidelines-pro-type-cstyle-cast): the system's own macro
  auto* progress = new (memory) Progress();
  TemporaryFolder folder("fuzz_models");
  Watch watch(task, *progress);
  long failures = 0;
  for (long next = task.next(task.first); next < task.last();) {
    long end = std::min(task.last(), next + kCasesPerChild * task.shards);
    progress->current = -1;
    std::string problem = watch.wait(start_child(task, next, end, folder / "case", *progress), end);
    long stopped = progress->current;
    if (!problem.empty()) {
      ++failures;
      if (stopped < 0) {
        std::printf("the seeds cannot be made: %s\n", problem.c_str());
        return 1;
      }
      if (stopped < end)
        keep(task, stopped, problem, folder / "case");
      else
        std::printf("FAILED at the end of cases %ld to %ld (a leak?): %s\n", next, end - 1, problem.c_str());
    }
    next = task.next(stopped < end ? stopped + 1 : end);
  }
  watch.report();
  std::printf("%ld failures\n", failures);
  return failures == 0 ? 0 : 1;
}

// Returns whether the arguments make sense.
bool parse(const std::vector<std::string>& arguments, Job& task) {
  auto number = [&](std::size_t i, long fallback) {
    return i < arguments.size() ? std::strtol(arguments[i].c_str(), nullptr, 10) : fallback;
  };
  if (!arguments.empty()) task.kind = arguments[0];
  task.cases = number(1, task.cases);
  task.seed = static_cast<std::uint64_t>(number(2, 1));
  if (arguments.size() > 3) {
    char* slash = nullptr;
    task.shard = std::strtol(arguments[3].c_str(), &slash, 10);
    if (*slash != '/') return false;
    task.shards = std::strtol(slash + 1, nullptr, 10);
  }
  task.first = number(4, 0);
  bool known = task.kind == "onnx" || task.kind == "torchscript" || task.kind == "other" || task.kind == "all";
  return known && task.cases > 0 && task.first >= 0 && task.shard >= 0 && task.shard < task.shards;
}

}  // namespace
}  // namespace galvani

int main(int argc, char** argv) {
  galvani::Job task;
  if (!galvani::parse(std::vector<std::string>(argv + 1, argv + argc), task)) {
    std::printf("usage: fuzz_models onnx|torchscript|other|all [CASES] [SEED] [SHARD/SHARDS] [FIRST]\n");
    return 2;
  }
  return galvani::run(task);
}
