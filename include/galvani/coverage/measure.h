// Several criteria measured over one pass of data, with growth curves and the time each takes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "galvani/coverage/criterion.h"

namespace galvani {

class Measurement {
 public:
  explicit Measurement(std::vector<std::unique_ptr<Criterion>> criteria);

  void add(const Traces& traces);

  const std::vector<std::unique_ptr<Criterion>>& criteria() const { return criteria_; }
  TraceNeeds needs() const;
  double seconds(std::size_t criterion) const { return seconds_[criterion]; }
  // Score after so many inputs, at most `points` of them, the last one included.
  std::vector<std::pair<std::int64_t, double>> curve(std::size_t criterion, std::size_t points = 200) const;
  // Inputs that gained something, in order.
  std::vector<std::int64_t> gainers(std::size_t criterion) const;

 private:
  std::vector<std::unique_ptr<Criterion>> criteria_;
  std::vector<std::vector<double>> gains_;  // of every input
  std::vector<double> start_;               // what was covered before the first
  std::vector<double> seconds_;
};

}  // namespace galvani
