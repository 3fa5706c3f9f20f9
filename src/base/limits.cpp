#include "galvani/base/limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <mutex>
#include <thread>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/runtime.h"
#include "galvani/base/signal_stack.h"

namespace galvani {
namespace {

using Clock = std::chrono::steady_clock;

// Between looks at the clock and at Ctrl-C.
constexpr std::chrono::milliseconds kLook{100};
constexpr std::size_t kLongestSentence = 1000;
// How many times the limit a step may take by the clock on the wall: on a busy machine that says little.
constexpr double kLongestWait = 10;

std::atomic<StepEndHandler> end_handler{nullptr};

// Read by the signal handler, hence plain memory that is written before `inside` is set.
std::atomic<bool> inside{false};
char crash_sentence[kLongestSentence];

// Seconds of computing when the step must be over; 0: no limit.
std::atomic<double> deadline{0};
std::string too_long_sentence;  // written before `deadline` is

// Computed by all threads of the process.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void on_crash(int signal) {
  StepEndHandler handler = end_handler;
  if (inside && handler != nullptr) handler(StepEnd::crashed, crash_sentence);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void handle_crashes() {
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) handle_signal(signal, on_crash, SA_NODEFER);
}

// One thread for the life of the process, which sleeps while there is nothing to watch.
class Watch {
 public:
  void begin(const std::string& label, double seconds) {
    std::lock_guard<std::mutex> lock(mutex_);
    label_ = label;
    seconds_ = seconds;
    start_ = Clock::now();
    processor_start_ = processor_seconds();
    watching_ = true;
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { loop(); });
      thread_.detach();
    }
    wake_.notify_one();
  }
  void end() {
    std::lock_guard<std::mutex> lock(mutex_);
    watching_ = false;
  }

 private:
  void loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    bool asked = false;  // to stop, at the last look
    while (true) {
      if (!watching_) {
        asked = false;
        wake_.wait(lock, [this] { return watching_; });
      }
      wake_.wait_for(lock, kLook);
      if (!watching_) continue;
      double taken = processor_seconds() - processor_start_;
      double waited = std::chrono::duration<double>(Clock::now() - start_).count();
      StepEndHandler handler = end_handler;
      // Twice in a row: a step that looks at Ctrl-C itself ends in better order.
      if (handler != nullptr && asked && interrupted())
        handler(StepEnd::interrupted, fmt::format("{}: interrupted", label_).c_str());
      // A step that looks up ends by itself, and a moment earlier.
      if (handler != nullptr && seconds_ > 0 && (taken > seconds_ + 0.5 || waited > kLongestWait * seconds_))
        handler(StepEnd::too_long, too_long_sentence.c_str());
      asked = interrupted();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
  std::string label_;
  double seconds_ = 0;
  Clock::time_point start_;
  double processor_start_ = 0;
  bool watching_ = false;
};

// Never destroyed: its thread may outlive main.
Watch& watch() {
  static auto* only = new Watch;
  return *only;
}

std::uint64_t address_space() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  return file >> pages ? pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace

void set_step_end_handler(StepEndHandler handler) {
  end_handler = handler;
  if (handler != nullptr) handle_crashes();
}

bool crashes_are_handled() {
  return inside && end_handler.load() != nullptr;
}

void check_step() {
  check_interrupt();
  double end = deadline;
  if (end != 0 && processor_seconds() > end) throw Error(ErrorCode::bad_input, too_long_sentence);
}

StepLimit::StepLimit(const std::string& label, double seconds) {
  outer_ = !inside;
  if (!outer_) return;
  std::snprintf(crash_sentence, sizeof crash_sentence, "%s: crashes LibTorch when it is loaded or run", label.c_str());
  inside = true;
  too_long_sentence = fmt::format(
      "{}: loading it and running it once takes more than {:.0f} s of computing; set GALVANI_LOAD_SECONDS to allow "
      "more",
      label, seconds);
  deadline = seconds > 0 ? processor_seconds() + seconds : 0;
  memory_ = available_memory() / 2;
  rlimit limit{};
  std::uint64_t used = address_space();
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && used > 0) {
    previous_memory_limit_ = limit.rlim_cur;
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, used + memory_);
    ::setrlimit(RLIMIT_AS, &limit);
  }
  if (end_handler.load() != nullptr) watch().begin(label, seconds);
}

StepLimit::~StepLimit() {
  if (!outer_) return;
  if (end_handler.load() != nullptr) watch().end();
  deadline = 0;
  rlimit limit{};
  if (previous_memory_limit_ != 0 && ::getrlimit(RLIMIT_AS, &limit) == 0) {
    limit.rlim_cur = previous_memory_limit_;
    ::setrlimit(RLIMIT_AS, &limit);
  }
  inside = false;
}

}  // namespace galvani
