#include "galvani/coverage/measure.h"

#include <chrono>

namespace galvani {

Measurement::Measurement(std::vector<std::unique_ptr<Criterion>> criteria)
    : criteria_(std::move(criteria)), gains_(criteria_.size()), seconds_(criteria_.size(), 0.0) {
  for (const auto& criterion : criteria_) start_.push_back(criterion->covered().covered);
}

TraceNeeds Measurement::needs() const {
  TraceNeeds needs;
  for (const auto& criterion : criteria_) needs = needs | criterion->needs();
  return needs;
}

void Measurement::add(const Traces& traces) {
  for (std::size_t i = 0; i < criteria_.size(); ++i) {
    auto start = std::chrono::steady_clock::now();
    std::vector<double> gains = criteria_[i]->add(traces);
    seconds_[i] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    gains_[i].insert(gains_[i].end(), gains.begin(), gains.end());
  }
}

std::vector<std::pair<std::int64_t, double>> Measurement::curve(std::size_t criterion, std::size_t points) const {
  const std::vector<double>& gains = gains_[criterion];
  double total = criteria_[criterion]->covered().total;
  double covered = start_[criterion];
  std::vector<std::pair<std::int64_t, double>> result;
  auto put = [&](std::size_t inputs) {
    result.emplace_back(static_cast<std::int64_t>(inputs), Covered{covered, total}.score());
  };
  put(0);
  std::size_t next = 1;
  for (std::size_t i = 0; i < gains.size(); ++i) {
    covered += gains[i];
    if ((i + 1) * points < next * gains.size()) continue;
    put(i + 1);
    next = (i + 1) * points / gains.size() + 1;
  }
  return result;
}

std::vector<std::int64_t> Measurement::gainers(std::size_t criterion) const {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < gains_[criterion].size(); ++i) {
    if (gains_[criterion][i] != 0) result.push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

}  // namespace galvani
