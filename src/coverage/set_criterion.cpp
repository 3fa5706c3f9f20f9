#include "coverage/set_criterion.h"

#include <numeric>

namespace galvani {

SetCriterion::SetCriterion(const TraceLayout& layout, std::uint64_t universe, std::vector<double> totals)
    : Criterion(layout), set_(universe), totals_(std::move(totals)) {}

double SetCriterion::total() const {
  return std::accumulate(totals_.begin(), totals_.end(), 0.0);
}

Covered SetCriterion::covered() const {
  return {static_cast<double>(set_.size()), total()};
}

std::vector<TapCovered> SetCriterion::by_tap() const {
  std::vector<TapCovered> result;
  if (totals_.empty()) return result;
  for (std::size_t i = 0; i < totals_.size(); ++i) result.push_back({layout().blocks[i].tap, {0, totals_[i]}});
  set_.for_each([&](std::uint64_t id) { result[block_of(id)].amount.covered += 1; });
  return result;
}

void SetCriterion::collect_batch(const Traces& traces, Features& out) const {
  for (std::int64_t i = 0; i < traces.size(); ++i) {
    if (traces.usable[static_cast<std::size_t>(i)]) collect(traces, i, out.ids);
    out.finish_input();
  }
}

bool SetCriterion::run_features(const Traces& traces, Features& out) const {
  out.ids.clear();
  out.ends.clear();
  collect_batch(traces, out);
  return true;
}

void SetCriterion::run(const Traces& traces, std::vector<double>& gains) {
  run_features(traces, scratch_);
  std::size_t next = 0;
  for (std::size_t i = 0; i < gains.size(); ++i) {
    std::uint64_t before = set_.size();
    for (; next < scratch_.ends[i]; ++next) set_.insert(scratch_.ids[next]);
    gains[i] = static_cast<double>(set_.size() - before);
  }
}

void SetCriterion::run_merge(const Criterion& other) {
  set_.merge(dynamic_cast<const SetCriterion&>(other).set_);
}

std::vector<std::uint32_t> blocks_of_neurons(const TraceLayout& layout) {
  std::vector<std::uint32_t> result;
  for (std::size_t i = 0; i < layout.blocks.size(); ++i)
    result.insert(result.end(), static_cast<std::size_t>(layout.blocks[i].count), static_cast<std::uint32_t>(i));
  return result;
}

std::vector<double> neurons_by_block(const TraceLayout& layout, double per_neuron) {
  std::vector<double> result;
  for (const TraceBlock& block : layout.blocks) result.push_back(static_cast<double>(block.count) * per_neuron);
  return result;
}

}  // namespace galvani
