// The entries of this room's tables; each is defined in a file of its own.
#pragma once

#include "galvani/fuzz/guide.h"
#include "galvani/fuzz/scheduler.h"

namespace galvani {

struct GuideEntry {
  GuideRegistry::Entry entry;
  GuideTraits traits;
};
GuideEntry criterion_guide_entry(const CriterionRegistry::Entry& criterion);
GuideEntry random_guide_entry();
GuideEntry none_guide_entry();
GuideEntry deephunter_guide_entry();
GuideEntry nsgen_guide_entry();
GuideEntry cagfuzz_guide_entry();
GuideTraits guide_traits(const std::string& name);

using SchedulerEntry = SchedulerRegistry::Entry;
SchedulerEntry sweep_entry();
SchedulerEntry once_entry();
SchedulerEntry decay_entry();
SchedulerEntry newest_entry();
SchedulerEntry uniform_entry();
SchedulerEntry coverage_entry();

// The same among the entries that an island may pick.
std::unique_ptr<Scheduler> with_own_seeds(std::unique_ptr<Scheduler> scheduler, const Island& island);

// Keeps what the criterion gains something from.
std::unique_ptr<Guide> make_criterion_guide(const Spec& criterion, const GuideContext& context);

}  // namespace galvani
