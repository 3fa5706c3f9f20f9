// CAGFuzz's choice (3.3.1): softmax over the corpus of t_i - t, where t_i is when an entry was added. Time is counted
// in iterations.
#include <cmath>

#include "fuzz/builtin.h"

namespace galvani {
namespace {

class Newest : public Scheduler {
 public:
  explicit Newest(double scale) : scale_(scale) {}

  std::int64_t pick(const std::vector<Entry>& entries, Rng& rng) override {
    // Entries are in the order they were added, so weights fall from the end; t cancels out.
    constexpr double kNegligible = 1e-18;
    auto newest = static_cast<double>(entries.back().iteration);
    double sum = 0;
    weights_.clear();
    for (std::size_t i = entries.size(); i-- > 0;) {
      double weight = std::exp((static_cast<double>(entries[i].iteration) - newest) / scale_);
      if (weight < kNegligible) break;
      sum += weight;
      weights_.push_back(sum);
    }
    double at = rng.uniform() * sum;
    std::size_t back = 0;
    while (back + 1 < weights_.size() && weights_[back] <= at) ++back;
    return static_cast<std::int64_t>(entries.size() - back);
  }

 private:
  double scale_;
  std::vector<double> weights_;  // cumulative, from the newest
};

}  // namespace

SchedulerEntry newest_entry() {
  return {"newest",
          "the newest first: softmax of the age in iterations",
          {{"scale", 1.0, "iterations after which the weight has fallen to 1/e", 1e-3, 1e9, {}}},
          [](const Options& options) -> std::unique_ptr<Scheduler> {
            return std::make_unique<Newest>(options.real("scale"));
          }};
}

}  // namespace galvani
