// What a tester expects: every seed is tried once before anything is tried again, then as `decay` picks, or not at all.
#include "fuzz/builtin.h"

namespace galvani {
namespace {

class Sweep : public Scheduler {
 public:
  explicit Sweep(std::unique_ptr<Scheduler> afterwards) : afterwards_(std::move(afterwards)) {}

  bool done(const std::vector<Entry>& entries) override { return afterwards_ == nullptr && !seed_left(entries); }
  std::int64_t pick(const std::vector<Entry>& entries, Rng& rng) override {
    if (seed_left(entries)) return static_cast<std::int64_t>(next_) + 1;
    return afterwards_->pick(entries, rng);
  }

 private:
  // Seeds come first in the corpus, in an order that was drawn.
  bool seed_left(const std::vector<Entry>& entries) {
    while (next_ < entries.size() && entries[next_].parent == 0 && entries[next_].picks > 0) ++next_;
    return next_ < entries.size() && entries[next_].parent == 0;
  }

  std::unique_ptr<Scheduler> afterwards_;  // null: that is all
  std::size_t next_ = 0;                   // the seeds before it have been picked
};

}  // namespace

SchedulerEntry sweep_entry() {
  SchedulerEntry entry = decay_entry();
  return {"sweep", "every seed once, then as decay", entry.schema,
          [make = entry.make](const Options& options) -> std::unique_ptr<Scheduler> {
            return std::make_unique<Sweep>(make(options));
          }};
}

SchedulerEntry once_entry() {
  return {"once", "every seed once, and no more", {}, [](const Options&) -> std::unique_ptr<Scheduler> {
            return std::make_unique<Sweep>(nullptr);
          }};
}

}  // namespace galvani
