#include "galvani/base/parallel.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "galvani/base/error.h"

namespace galvani {
namespace {

class Pools : public testing::TestWithParam<int> {};

TEST_P(Pools, RunEveryIndexOnce) {
  WorkerPool pool(GetParam());
  EXPECT_EQ(pool.size(), GetParam());
  for (std::int64_t n : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> times(static_cast<std::size_t>(n));
    std::atomic<bool> known_worker{true};
    pool.run(n, [&](std::int64_t index, int worker) {
      ++times[static_cast<std::size_t>(index)];
      if (worker < 0 || worker >= pool.size()) known_worker = false;
    });
    for (const auto& t : times) EXPECT_EQ(t, 1);
    EXPECT_TRUE(known_worker);
  }
}

TEST_P(Pools, RethrowTheExceptionOfTheLowestIndexThatThrew) {
  WorkerPool pool(GetParam());
  for (int round = 0; round < 20; ++round) {
    std::mutex mutex;
    std::int64_t lowest = 1000;
    std::string caught;
    try {
      pool.run(1000, [&](std::int64_t index, int) {
        if (index < 3) return;
        {
          std::lock_guard<std::mutex> lock(mutex);
          lowest = std::min(lowest, index);
        }
        throw std::runtime_error(std::to_string(index));
      });
    } catch (const std::runtime_error& e) {
      caught = e.what();
    }
    EXPECT_EQ(caught, std::to_string(lowest));
  }
}

TEST_P(Pools, SkipTheRestAfterAnException) {
  WorkerPool pool(GetParam());
  std::atomic<int> ran{0};
  EXPECT_THROW(pool.run(100000,
                        [&](std::int64_t, int) {
                          ++ran;
                          throw std::runtime_error("x");
                        }),
               std::runtime_error);
  EXPECT_LE(ran, pool.size());
}

TEST_P(Pools, StayUsableAfterAnException) {
  WorkerPool pool(GetParam());
  EXPECT_THROW(pool.run(10, [](std::int64_t, int) { throw std::runtime_error("x"); }), std::runtime_error);
  std::atomic<std::int64_t> sum{0};
  pool.run(10, [&](std::int64_t index, int) { sum += index; });
  EXPECT_EQ(sum, 45);
}

TEST_P(Pools, RunNestedCallsInPlace) {
  WorkerPool pool(GetParam());
  std::atomic<int> count{0};
  std::atomic<bool> same_thread{true};
  pool.run(8, [&](std::int64_t, int) {
    std::thread::id outer = std::this_thread::get_id();
    pool.run(5, [&](std::int64_t, int) {
      ++count;
      if (std::this_thread::get_id() != outer) same_thread = false;
    });
  });
  EXPECT_EQ(count, 40);
  EXPECT_TRUE(same_thread);
}

TEST_P(Pools, KernelsInsideRunOnOneThread) {
  WorkerPool pool(GetParam());
  std::atomic<bool> single{true};
  pool.run(64, [&](std::int64_t, int) {
    if (at::get_num_threads() != 1) single = false;
  });
  EXPECT_TRUE(single);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Pools, testing::Values(1, 2, 4));

// Two tasks that wait for each other finish only if they run at the same time.
TEST(WorkerPool, WorkersRunAtTheSameTime) {
  WorkerPool pool(2);
  std::atomic<int> arrived{0};
  std::atomic<bool> met{true};
  pool.run(2, [&](std::int64_t, int) {
    ++arrived;
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (arrived < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (arrived < 2) met = false;
  });
  EXPECT_TRUE(met);
}

// A task of the pool and work beside it wait for each other; runs inside the latter happen in place.
TEST(RunBeside, WorksWhileThePoolDoes) {
  set_workers(2);
  std::atomic<bool> beside{false};
  std::atomic<int> in_place{0};
  std::future<void> work = run_beside([&] {
    std::thread::id own = std::this_thread::get_id();
    workers().run(3, [&](std::int64_t, int) { in_place += std::this_thread::get_id() == own ? 1 : 0; });
    beside = true;
  });
  workers().run(2, [&](std::int64_t, int) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!beside && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_TRUE(beside);
  work.get();
  EXPECT_EQ(in_place, 3);
}

TEST(RunBeside, CountsProcessorTimeAndNotWaiting) {
  double before = beside_seconds();
  run_beside([] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }).get();
  double waited = beside_seconds();
  EXPECT_LT(waited - before, 0.1);
  run_beside([] {
    volatile double sum = 0;
    while (sum < 2e7) sum = sum + 1;
  }).get();
  EXPECT_GT(beside_seconds() - waited, 0.001);
}

TEST(RunBeside, WhatFailsIsThrownToWhoeverAsks) {
  std::future<void> work = run_beside([] { fail(ErrorCode::environment, "the disk is full"); });
  EXPECT_THROW(work.get(), Error);
}

TEST(WorkerPool, RefusesImpossibleSizes) {
  for (int n : {-1, 0, 1025}) {
    try {
      WorkerPool pool(n);
      ADD_FAILURE() << n;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::usage);
    }
  }
}

TEST(WorkerPool, TheProcessPoolCanBeReplaced) {
  set_workers(3);
  EXPECT_EQ(workers().size(), 3);
  set_workers(1);
  EXPECT_EQ(workers().size(), 1);
}

}  // namespace
}  // namespace galvani
