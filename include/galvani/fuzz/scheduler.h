// Which entry of the corpus is mutated next.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "galvani/base/registry.h"
#include "galvani/base/rng.h"
#include "galvani/fuzz/corpus.h"

namespace galvani {

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // There is nothing left to pick, and never will be.
  virtual bool done(const std::vector<Entry>&) { return false; }
  // An entry's id, drawn with `rng`. `entries` only grows from call to call and is never empty; whatever a scheduler
  // remembers must follow from it, for it is not saved. REQUIRES !done(entries).
  virtual std::int64_t pick(const std::vector<Entry>& entries, Rng& rng) = 0;
};

using SchedulerRegistry = Registry<std::unique_ptr<Scheduler>>;
const SchedulerRegistry& schedulers();

}  // namespace galvani
