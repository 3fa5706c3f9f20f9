// What a tester expects: every seed is tried once before anything is tried again, then as `decay` picks.
#include "fuzz/builtin.h"

namespace galvani {
namespace {

class Sweep : public Scheduler {
 public:
  explicit Sweep(std::unique_ptr<Scheduler> afterwards) : afterwards_(std::move(afterwards)) {}

  std::int64_t pick(const std::vector<Entry>& entries, Rng& rng) override {
    // Seeds come first in the corpus, in an order that was drawn.
    while (next_ < entries.size() && entries[next_].parent == 0) {
      if (entries[next_].picks == 0) return static_cast<std::int64_t>(next_) + 1;
      ++next_;
    }
    return afterwards_->pick(entries, rng);
  }

 private:
  std::unique_ptr<Scheduler> afterwards_;
  std::size_t next_ = 0;  // the seeds before it have been picked
};

}  // namespace

SchedulerEntry sweep_entry() {
  SchedulerEntry entry = decay_entry();
  return {"sweep", "every seed once, then as decay", entry.schema,
          [make = entry.make](const Options& options) -> std::unique_ptr<Scheduler> {
            return std::make_unique<Sweep>(make(options));
          }};
}

}  // namespace galvani
