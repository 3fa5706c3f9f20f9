// On an island: seeds that belong to other islands are in the corpus, for entries that come from there are made of
// them, but they are not picked.
#include "fuzz/builtin.h"

namespace galvani {
namespace {

class OwnSeeds : public Scheduler {
 public:
  OwnSeeds(std::unique_ptr<Scheduler> scheduler, const Island& island)
      : scheduler_(std::move(scheduler)), island_(island) {}

  bool done(const std::vector<Entry>& entries) override {
    see(entries);
    return own_.empty() || scheduler_->done(own_);
  }
  std::int64_t pick(const std::vector<Entry>& entries, Rng& rng) override {
    see(entries);
    last_ = static_cast<std::size_t>(scheduler_->pick(own_, rng)) - 1;
    return ids_[last_];
  }

 private:
  // Only the entry that was picked last can have changed since.
  void see(const std::vector<Entry>& entries) {
    if (last_ < own_.size()) own_[last_].picks = entries[static_cast<std::size_t>(ids_[last_] - 1)].picks;
    for (; seen_ < entries.size(); ++seen_) {
      auto id = static_cast<std::int64_t>(seen_) + 1;
      if (entries[seen_].parent == 0 && !island_.has_seed(id)) continue;
      own_.push_back(entries[seen_]);
      ids_.push_back(id);
    }
  }

  std::unique_ptr<Scheduler> scheduler_;
  Island island_;
  std::vector<Entry> own_;         // what may be picked
  std::vector<std::int64_t> ids_;  // their numbers in the corpus
  std::size_t seen_ = 0;           // entries of the corpus
  std::size_t last_ = 0;           // picked, its place in own_
};

}  // namespace

std::unique_ptr<Scheduler> with_own_seeds(std::unique_ptr<Scheduler> scheduler, const Island& island) {
  if (island.of == 1) return scheduler;
  return std::make_unique<OwnSeeds>(std::move(scheduler), island);
}

}  // namespace galvani
