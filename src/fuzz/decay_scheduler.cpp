// NSGen's and DeepHunter's choice: an entry that was picked n times is taken with probability max(1 - n/gamma, p_min).
#include <algorithm>

#include "fuzz/builtin.h"

namespace galvani {
namespace {

class Decay : public Scheduler {
 public:
  Decay(double gamma, double least) : gamma_(gamma), least_(least) {}

  std::int64_t pick(const std::vector<Entry>& entries, Rng& rng) override {
    while (true) {
      auto index = static_cast<std::size_t>(rng.below(entries.size()));
      double p = std::max(1 - static_cast<double>(entries[index].picks) / gamma_, least_);
      if (rng.uniform() < p) return static_cast<std::int64_t>(index) + 1;
    }
  }

 private:
  double gamma_;
  double least_;
};

}  // namespace

SchedulerEntry decay_entry() {
  return {"decay",
          "likely until it was picked gamma times: p = max(1 - picks/gamma, min)",
          {{"gamma", 5.0, "picks after which only the least probability is left", 1e-6, 1e9, {}},
           {"min", 0.01, "the least probability", 1e-4, 1.0, {}}},
          [](const Options& options) -> std::unique_ptr<Scheduler> {
            return std::make_unique<Decay>(options.real("gamma"), options.real("min"));
          }};
}

}  // namespace galvani
