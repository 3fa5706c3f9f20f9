// Two ways of doing one thing, timed in turn within one run, so that their ratio does not depend on the machine's mood.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace galvani::bench {

template <class Work>
double seconds(Work&& work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Reports `ours` in units of `theirs` (the counter "ratio", from medians) and both rates in items per second.
template <class Ours, class Theirs>
void compare(benchmark::State& state, std::int64_t items, Ours&& ours, Theirs&& theirs) {
  ours();
  theirs();
  std::vector<double> our_times, their_times;
  for (auto unused : state) {
    double theirs_now = seconds(theirs);
    double ours_now = seconds(ours);
    our_times.push_back(ours_now);
    their_times.push_back(theirs_now);
    state.SetIterationTime(ours_now);
  }
  state.counters["ratio"] = median(our_times) / median(their_times);
  state.counters["ours/s"] = static_cast<double>(items) / median(our_times);
  state.counters["theirs/s"] = static_cast<double>(items) / median(their_times);
}

}  // namespace galvani::bench
