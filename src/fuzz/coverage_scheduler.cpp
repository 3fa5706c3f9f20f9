// Entries that covered much are picked more often.
#include <algorithm>
#include <cmath>

#include "fuzz/builtin.h"

namespace galvani {
namespace {

class CoverageWeighted : public Scheduler {
 public:
  explicit CoverageWeighted(double base) : base_(base) {}

  std::int64_t pick(const std::vector<Entry>& entries, Rng& rng) override {
    for (std::size_t i = cumulative_.size(); i < entries.size(); ++i) {
      double gain = std::isfinite(entries[i].gain) ? std::max(0.0, entries[i].gain) : 0;
      cumulative_.push_back((i > 0 ? cumulative_[i - 1] : 0) + base_ + gain);
    }
    double at = rng.uniform() * cumulative_.back();
    auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
    return std::min(found - cumulative_.begin(), static_cast<std::ptrdiff_t>(entries.size()) - 1) + 1;
  }

 private:
  double base_;
  std::vector<double> cumulative_;
};

}  // namespace

SchedulerEntry coverage_entry() {
  return {"coverage",
          "by what an entry gained when it was added",
          {{"base", 1.0, "added to every gain, so that all have a chance", 1e-6, 1e9, {}}},
          [](const Options& options) -> std::unique_ptr<Scheduler> {
            return std::make_unique<CoverageWeighted>(options.real("base"));
          }};
}

}  // namespace galvani
