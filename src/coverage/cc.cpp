// Cluster-based coverage (TensorFuzz): traces that lie far from every trace stored before.
#include <ATen/ATen.h>

#include <algorithm>

#include "coverage/builtin.h"
#include "galvani/base/parallel.h"
#include "galvani/coverage/nearest.h"

namespace galvani {
namespace {

class Clusters : public Criterion {
 public:
  Clusters(const Options& options, const CriterionContext& context)
      : Criterion(context.layout), radius_(options.real("distance")), taps_(context.layout.blocks.size()) {
    if (radius_ == 0) radius_ = static_cast<double>(context.layout.classes);
  }

  CriterionTraits traits() const override { return {false, false, true}; }

  Covered covered() const override {
    double points = 0;
    for (std::size_t i = 0; i < taps_.size(); ++i) points += static_cast<double>(points_of(i));
    return {points, 0};
  }

  std::vector<TapCovered> by_tap() const override {
    std::vector<TapCovered> result;
    for (std::size_t i = 0; i < taps_.size(); ++i)
      result.push_back({layout().blocks[i].tap, {static_cast<double>(points_of(i)), 0}});
    return result;
  }

 private:
  std::int64_t points_of(std::size_t tap) const {
    return static_cast<std::int64_t>(taps_[tap].size()) / layout().blocks[tap].count;
  }

  // Stores the rows of one tap that are novel, in order; adds 1 to the gain of each.
  void add_rows(std::size_t tap, const std::vector<const float*>& rows, std::vector<double>& gains) {
    std::vector<float>& stored = taps_[tap];
    std::int64_t width = layout().blocks[tap].count;
    std::vector<char> near = rows_within(rows, stored, width, radius_);
    std::size_t first_new = stored.size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (near[i]) continue;
      bool novel = true;
      // Against what this batch has stored already.
      for (std::size_t at = first_new; at < stored.size() && novel; at += static_cast<std::size_t>(width))
        novel = squared_distance(rows[i], stored.data() + at, width) > radius_;
      if (!novel) continue;
      stored.insert(stored.end(), rows[i], rows[i] + width);
      gains[i] += 1;
    }
  }

  void run(const Traces& traces, std::vector<double>& gains) override {
    std::vector<std::size_t> usable;
    for (std::size_t i = 0; i < traces.usable.size(); ++i) {
      if (traces.usable[i]) usable.push_back(i);
    }
    // Taps are independent; their gains are summed afterwards, in order.
    std::vector<std::vector<double>> gains_of(taps_.size(), std::vector<double>(usable.size(), 0.0));
    workers().run(static_cast<std::int64_t>(taps_.size()), [&](std::int64_t tap, int) {
      auto t = static_cast<std::size_t>(tap);
      std::vector<const float*> rows;
      for (std::size_t i : usable) rows.push_back(traces.row(static_cast<std::int64_t>(i)) + layout().blocks[t].first);
      add_rows(t, rows, gains_of[t]);
    });
    for (const auto& tap : gains_of) {
      for (std::size_t i = 0; i < usable.size(); ++i) gains[usable[i]] += tap[i];
    }
  }

  void run_reset() override {
    for (auto& tap : taps_) tap.clear();
  }

  void run_merge(const Criterion& other) override {
    const auto& that = dynamic_cast<const Clusters&>(other);
    for (std::size_t tap = 0; tap < taps_.size(); ++tap) {
      std::vector<const float*> rows;
      auto width = static_cast<std::size_t>(layout().blocks[tap].count);
      for (std::size_t at = 0; at < that.taps_[tap].size(); at += width) rows.push_back(that.taps_[tap].data() + at);
      std::vector<double> gains(rows.size(), 0.0);
      add_rows(tap, rows, gains);
    }
  }

  void run_save(ArchiveWriter& out) const override {
    for (const auto& tap : taps_) out.put(tap);
  }

  void run_load(ArchiveReader& in) override {
    for (std::size_t tap = 0; tap < taps_.size(); ++tap) {
      taps_[tap] = in.get_vector<float>();
      if (taps_[tap].size() % static_cast<std::size_t>(layout().blocks[tap].count) != 0)
        in.broken("holds half a trace");
      if (!std::all_of(taps_[tap].begin(), taps_[tap].end(), [](float v) { return std::isfinite(v); }))
        in.broken("holds traces that are not finite");
    }
  }

  double radius_;                         // T, on squared distances
  std::vector<std::vector<float>> taps_;  // stored traces, one after the other
};

}  // namespace

CriterionEntry cc_entry() {
  return {"cc",
          "traces far from all stored before, per tap",
          {{"distance", 0.0, "squared distance that is far (0: the number of classes)", 0, 1e12, {}}},
          [](const Options& options, const CriterionContext& context) {
            return std::make_unique<Clusters>(options, context);
          }};
}

}  // namespace galvani
