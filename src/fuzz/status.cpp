#include "fuzz/status.h"

#include <algorithm>

#include "galvani/base/crew.h"
#include "galvani/fuzz/reader.h"
#include "galvani/fuzz/summary.h"

namespace galvani {
namespace {

using Moment = std::optional<std::chrono::steady_clock::time_point>;

// Negative: it never came.
double seconds_since(const Moment& moment) {
  return moment ? std::chrono::duration<double>(std::chrono::steady_clock::now() - *moment).count() : -1;
}

}  // namespace

void StatusKeeper::begin(const std::filesystem::path& folder, const CampaignRecord& record, const Budget& budget,
                         bool resumed, SharedStore& store) {
  status_ = CampaignStatus();
  status_.record = &record;
  status_.folder = folder.string();
  status_.budget = budget;
  status_.resumed = resumed;
  status_.seeds = store.seeds();
  status_.repeat_until = store.last_batch();
  if (leads()) tell_past(folder, store.own());
}

// What is told of earlier sessions.
void StatusKeeper::tell_past(const std::filesystem::path& folder, Store& store) {
  status_.wrong_seeds = store.wrong_seeds();
  CampaignReader reader(folder);
  status_.history = reader.timeline(CampaignStatus::kHistory / 2);
  status_.not_a_number = summarise(reader).not_a_number;
  FaultFilter filter;
  filter.first = std::max<std::int64_t>(1, store.last_fault() - static_cast<std::int64_t>(CampaignStatus::kRecent) + 1);
  for (FaultRecord& fault : reader.faults(filter)) status_.recent.insert(status_.recent.begin(), std::move(fault));
}

void StatusKeeper::update(const CampaignState& state, double seconds, double session_seconds) {
  status_.counters = state.counters;
  status_.corpus = state.corpus.size();
  status_.never_picked = state.never_picked;
  status_.tried_seeds = state.tried_seeds;
  status_.broken_seeds = state.broken_seeds;
  status_.seconds = seconds;
  status_.session_seconds = session_seconds;
  status_.picks_since_kept = state.counters.iterations - state.last_kept;
  status_.since_kept = seconds_since(kept_time_);
  status_.since_fault = seconds_since(fault_time_);
  status_.classes = state.yields.classes;
  status_.kinds.clear();
  for (const YieldRecord& yield : state.yields.kinds) {
    if (yield.mutants > 0) status_.kinds.push_back(yield);
  }
  std::sort(status_.kinds.begin(), status_.kinds.end(),
            [](const YieldRecord& a, const YieldRecord& b) { return a.name < b.name; });
}

void StatusKeeper::note(const BatchRecord& batch, double batch_seconds, std::int64_t batch_valid, double seconds) {
  if (!batch.inputs.empty()) kept_time_ = Clock::now();
  if (!batch.faults.empty()) fault_time_ = Clock::now();
  for (const FaultRecord& fault : batch.faults) status_.not_a_number += fault.predicted == kNotANumber ? 1 : 0;
  std::size_t fresh = std::min(batch.faults.size(), CampaignStatus::kRecent);
  status_.recent.insert(status_.recent.begin(), batch.faults.rbegin(),
                        batch.faults.rbegin() + static_cast<std::ptrdiff_t>(fresh));
  if (status_.recent.size() > CampaignStatus::kRecent) status_.recent.resize(CampaignStatus::kRecent);
  status_.session_mutants += batch_valid;
  // A mean over about the last three seconds.
  double now = static_cast<double>(batch_valid) / std::max(batch_seconds, 1e-9);
  double weight = std::min(1.0, batch_seconds / 3);
  status_.rate = status_.rate == 0 ? now : status_.rate + weight * (now - status_.rate);
  TimelinePoint point;
  static_cast<CampaignCounters&>(point) = batch.counters;
  point.seconds = seconds;
  note_point(point);
}

void StatusKeeper::note_point(const TimelinePoint& point) {
  status_.history.push_back(point);
  if (status_.history.size() <= CampaignStatus::kHistory) return;
  std::vector<TimelinePoint> thinned;
  for (std::size_t i = 0; i < status_.history.size(); i += 2) thinned.push_back(status_.history[i]);
  if (thinned.back().batches != point.batches) thinned.push_back(point);
  status_.history = std::move(thinned);
}

}  // namespace galvani
