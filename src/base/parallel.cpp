#include "galvani/base/parallel.h"

#include <ATen/Parallel.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "base/worker_task.h"
#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/signal_stack.h"

namespace galvani {
namespace {

// Aligned, because mold places a smaller one before the page that it wants to protect, and such a program does not
// start.
alignas(16) thread_local bool inside_task = false;

// OpenMP keeps the number of kernel threads per thread, so every worker sets its own.
void use_single_threaded_kernels() {
  at::set_num_threads(1);
}

}  // namespace

bool inside_worker_task() {
  return inside_task;
}

struct WorkerPool::Impl {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable done;
  std::uint64_t generation = 0;
  int busy = 0;
  bool stopping = false;

  const std::function<void(std::int64_t, int)>* task = nullptr;
  std::int64_t count = 0;
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> failed{false};
  std::int64_t error_index = 0;
  std::exception_ptr error;

  void work(int worker) {
    inside_task = true;
    while (!failed) {
      std::int64_t index = next++;
      if (index >= count) break;
      try {
        (*task)(index, worker);
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex);
        if (index < error_index) {
          error_index = index;
          error = std::current_exception();
        }
        failed = true;
      }
    }
    inside_task = false;
  }

  void loop(int worker) {
    use_signal_stack();
    use_single_threaded_kernels();
    std::uint64_t seen = 0;
    while (true) {
      {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [&] { return stopping || generation != seen; });
        if (stopping) return;
        seen = generation;
      }
      work(worker);
      std::lock_guard<std::mutex> lock(mutex);
      if (--busy == 0) done.notify_one();
    }
  }
};

WorkerPool::WorkerPool(int workers) : impl_(std::make_unique<Impl>()) {
  if (workers < 1 || workers > 1024) bad_usage("the number of threads is {}, but must be from 1 to 1024", workers);
  use_single_threaded_kernels();
  for (int i = 1; i < workers; ++i) impl_->threads.emplace_back([this, i] { impl_->loop(i); });
}

WorkerPool::~WorkerPool() {
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wake.notify_all();
  for (std::thread& thread : impl_->threads) thread.join();
}

int WorkerPool::size() const {
  return static_cast<int>(impl_->threads.size()) + 1;
}

void WorkerPool::run(std::int64_t n, const std::function<void(std::int64_t, int)>& task) {
  if (n <= 0) return;
  if (inside_task) {
    for (std::int64_t i = 0; i < n; ++i) task(i, 0);
    return;
  }
  use_signal_stack();
  Impl& impl = *impl_;
  {
    std::lock_guard<std::mutex> lock(impl.mutex);
    impl.task = &task;
    impl.count = n;
    impl.next = 0;
    impl.failed = false;
    impl.error = nullptr;
    impl.error_index = std::numeric_limits<std::int64_t>::max();
    impl.busy = static_cast<int>(impl.threads.size());
    ++impl.generation;
  }
  impl.wake.notify_all();
  impl.work(0);
  std::unique_lock<std::mutex> lock(impl.mutex);
  impl.done.wait(lock, [&] { return impl.busy == 0; });
  if (impl.error) std::rethrow_exception(impl.error);
}

namespace {

std::atomic<std::int64_t> beside_nanoseconds{0};

// Of a thread that does nothing else.
struct CountProcessorTime {
  CountProcessorTime() = default;
  ~CountProcessorTime() { beside_nanoseconds += static_cast<std::int64_t>(thread_seconds() * 1e9); }
  CountProcessorTime(const CountProcessorTime&) = delete;
  CountProcessorTime& operator=(const CountProcessorTime&) = delete;
};

}  // namespace

std::future<void> run_beside(std::function<void()> work) {
  return std::async(std::launch::async, [work = std::move(work)] {
    CountProcessorTime count;
    use_signal_stack();
    inside_task = true;
    work();
  });
}

double thread_seconds() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

double beside_seconds() {
  return static_cast<double>(beside_nanoseconds) * 1e-9;
}

namespace {
std::unique_ptr<WorkerPool>& pool() {
  static std::unique_ptr<WorkerPool> instance;
  // A forked process has none of the threads, and must not wait for them when it ends.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { static_cast<void>(instance.release()); });
  static_cast<void>(registered);
  return instance;
}
int usual_workers = 0;  // 0: the number of cores
}  // namespace

WorkerPool& workers() {
  if (!pool())
    set_workers(usual_workers > 0 ? usual_workers
                                  : static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  return *pool();
}

void set_usual_workers(int n) {
  usual_workers = n;
}

void set_workers(int n) {
  pool() = std::make_unique<WorkerPool>(n);
}

}  // namespace galvani
