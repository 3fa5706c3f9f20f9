// Every entry alike.
#include "fuzz/builtin.h"

namespace galvani {
namespace {

class Uniform : public Scheduler {
 public:
  std::int64_t pick(const std::vector<Entry>& entries, Rng& rng) override {
    return static_cast<std::int64_t>(rng.below(entries.size())) + 1;
  }
};

}  // namespace

SchedulerEntry uniform_entry() {
  return {"uniform", "every entry alike", {}, [](const Options&) -> std::unique_ptr<Scheduler> {
            return std::make_unique<Uniform>();
          }};
}

}  // namespace galvani
