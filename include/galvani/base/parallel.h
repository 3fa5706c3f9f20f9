// Worker threads that each run single-threaded kernels. The unit of work is an index; which index goes to which worker
// is left to timing, so a task's result must depend on its index alone.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>

namespace galvani {

class WorkerPool {
 public:
  explicit WorkerPool(int workers);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int size() const;

  // Runs task(index, worker) for every index in [0, n) and waits. Kernels inside run on one thread. If tasks throw, the
  // exception of the lowest index that threw is rethrown after the running ones ended and the rest were skipped.
  // A call from inside a task runs in place on the calling thread.
  void run(std::int64_t n, const std::function<void(std::int64_t index, int worker)>& task);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Work beside what the pool does, in a thread of its own: for what waits for the disk most of its time. A run of the
// pool inside it happens in place, as inside a task. Whoever holds the future waits for it, at the latest when letting
// it go.
std::future<void> run_beside(std::function<void()> work);
// Processor time of all that has ended.
double beside_seconds();

// Processor time of the calling thread so far: waiting, for other processes too, does not count.
double thread_seconds();

// The process's pool, as large as `--threads` says (default: the number of cores).
WorkerPool& workers();
// Replaces it; not while work is running.
void set_workers(int n);

}  // namespace galvani
