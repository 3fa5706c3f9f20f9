// Distance-based surprise adequacy.
#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "coverage/surprise.h"
#include "galvani/coverage/nearest.h"

namespace galvani {
namespace {

class DistanceSurprise : public SurpriseScore {
 public:
  DistanceSurprise(const Reference& reference, bool from_input)
      : SurpriseScore(reference.block()),
        reference_(reference),
        search_(reference.traces()),
        from_input_(from_input),
        to_others_(static_cast<std::size_t>(reference.traces().size(0))) {
    for (auto& distance : to_others_) distance = kUnknown;
  }

  bool exact() const override { return true; }

 private:
  static constexpr double kUnknown = -1;
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  NearestSearch::Ranges own(std::int64_t label) const {
    return {{reference_.begin(label), reference_.begin(label + 1)}};
  }
  NearestSearch::Ranges others(std::int64_t label) const {
    return {{0, reference_.begin(label)}, {reference_.begin(label + 1), reference_.traces().size(0)}};
  }

  static double ratio(double to_own, double to_other) {
    // A trace of another class at the same place: as surprising as can be, unless the input is there too.
    if (to_other == 0) return to_own == 0 ? 0 : kNone;
    return to_own / to_other;
  }

  void run(const at::Tensor& traces, std::int64_t label, double* out) const override {
    std::vector<Nearest> nearest = search_.nearest(traces, own(label));
    std::vector<double> second(nearest.size(), kNone);
    if (from_input_) {
      std::vector<Nearest> other = search_.nearest(traces, others(label));
      for (std::size_t i = 0; i < other.size(); ++i)
        if (other[i].index >= 0) second[i] = std::sqrt(other[i].squared_distance);
    } else {
      learn_others(nearest, label);
      for (std::size_t i = 0; i < nearest.size(); ++i)
        if (nearest[i].index >= 0) second[i] = to_others_[static_cast<std::size_t>(nearest[i].index)];
    }
    for (std::size_t i = 0; i < nearest.size(); ++i)
      out[i] = nearest[i].index < 0 ? kNone : ratio(std::sqrt(nearest[i].squared_distance), second[i]);
  }

  // How far a training trace is from the nearest of another class depends on that trace alone: found once, remembered.
  // Two workers may find the same number at the same time, which does no harm.
  void learn_others(const std::vector<Nearest>& nearest, std::int64_t label) const {
    std::vector<std::int64_t> unknown;
    for (const Nearest& n : nearest) {
      if (n.index >= 0 && to_others_[static_cast<std::size_t>(n.index)] == kUnknown) unknown.push_back(n.index);
    }
    if (unknown.empty()) return;
    std::sort(unknown.begin(), unknown.end());
    unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
    at::Tensor rows = search_.rows().index_select(0, at::tensor(unknown, at::kLong));
    std::vector<Nearest> found = search_.nearest(rows, others(label));
    for (std::size_t i = 0; i < unknown.size(); ++i)
      to_others_[static_cast<std::size_t>(unknown[i])] =
          found[i].index < 0 ? kNone : std::sqrt(found[i].squared_distance);
  }

  Nearest plain_nearest(const float* trace, const NearestSearch::Ranges& ranges) const {
    Nearest best;
    std::int64_t width = block().count;
    for (auto [begin, end] : ranges) {
      for (std::int64_t j = begin; j < end; ++j) {
        double distance = squared_distance(trace, search_.rows().data_ptr<float>() + j * width, width);
        if (best.index < 0 || distance < best.squared_distance) best = {j, distance};
      }
    }
    return best;
  }

  double run_alone(const float* trace, std::int64_t label) const override {
    Nearest nearest = plain_nearest(trace, own(label));
    if (nearest.index < 0) return kNone;
    const float* from = from_input_ ? trace : search_.rows().data_ptr<float>() + nearest.index * block().count;
    Nearest other = plain_nearest(from, others(label));
    if (other.index < 0) return kNone;
    return ratio(std::sqrt(nearest.squared_distance), std::sqrt(other.squared_distance));
  }

  const Reference& reference_;
  NearestSearch search_;
  bool from_input_;
  mutable std::vector<std::atomic<double>> to_others_;
};

}  // namespace

std::unique_ptr<SurpriseScore> make_dsa(const Reference& reference, bool from_input) {
  return std::make_unique<DistanceSurprise>(reference, from_input);
}

}  // namespace galvani
