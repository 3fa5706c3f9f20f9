#include "fuzz/builtin.h"

namespace galvani {

const GuideRegistry& guides() {
  static const GuideRegistry registry("guide", [] {
    std::vector<GuideEntry> entries;
    for (const auto& criterion : criteria().entries()) entries.push_back(criterion_guide_entry(criterion));
    entries.push_back(random_guide_entry());
    entries.push_back(deephunter_guide_entry());
    return entries;
  }());
  return registry;
}

const SchedulerRegistry& schedulers() {
  static const SchedulerRegistry registry("scheduler",
                                          {decay_entry(), newest_entry(), uniform_entry(), coverage_entry()});
  return registry;
}

}  // namespace galvani
