#include "fuzz/builtin.h"

namespace galvani {

namespace {

const std::vector<GuideEntry>& guide_entries() {
  static const std::vector<GuideEntry> entries = [] {
    std::vector<GuideEntry> all;
    for (const auto& criterion : criteria().entries()) all.push_back(criterion_guide_entry(criterion));
    all.push_back(random_guide_entry());
    all.push_back(none_guide_entry());
    all.push_back(deephunter_guide_entry());
    all.push_back(nsgen_guide_entry());
    all.push_back(cagfuzz_guide_entry());
    return all;
  }();
  return entries;
}

}  // namespace

GuideRegistry& guides() {
  static GuideRegistry registry("guide", [] {
    std::vector<GuideRegistry::Entry> entries;
    for (const GuideEntry& guide : guide_entries()) entries.push_back(guide.entry);
    return entries;
  }());
  return registry;
}

GuideTraits guide_traits(const std::string& name) {
  for (const GuideEntry& guide : guide_entries()) {
    if (guide.entry.name == name) return guide.traits;
  }
  return {};
}

const SchedulerRegistry& schedulers() {
  static const SchedulerRegistry registry(
      "scheduler", {sweep_entry(), once_entry(), decay_entry(), newest_entry(), uniform_entry(), coverage_entry()});
  return registry;
}

}  // namespace galvani
