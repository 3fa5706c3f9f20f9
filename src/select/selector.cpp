#include "galvani/select/selector.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/rng.h"
#include "galvani/model/evaluate.h"

namespace galvani {

void Selector::train(const TrainingPart& part) {
  run_train(part);
}

void Selector::sample(const PoolPart& part) {
  run_sample(part);
}

void Selector::add(const PoolPart& part) {
  std::size_t before = scores_.size();
  scores_.resize(before + part.rows.size(), std::numeric_limits<double>::quiet_NaN());
  run(part, scores_.data() + before);
  if (!looks_at_output()) return;
  const auto* verdict = part.seen.predicted.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < part.rows.size(); ++i) {
    if (verdict[i] != kNotANumber) continue;
    not_a_number_.push_back(part.rows[i]);
    scores_[before + i] = std::numeric_limits<double>::infinity();
  }
}

Ranking Selector::rank(std::uint64_t seed) {
  Ranking ranking;
  ranking.order = run_order(scores_);
  for (std::int64_t row : not_a_number_)
    scores_[static_cast<std::size_t>(row)] = std::numeric_limits<double>::infinity();
  if (ranking.order.empty()) {
    ranking.order.resize(scores_.size());
    struct Place {
      double score;
      std::int64_t row;
    };
    std::vector<Place> places;
    places.reserve(scores_.size());
    for (double score : scores_)
      places.push_back({std::isnan(score) ? -std::numeric_limits<double>::infinity() : score,
                        static_cast<std::int64_t>(places.size())});
    std::sort(places.begin(), places.end(), [&](const Place& a, const Place& b) {
      if (a.score != b.score) return a.score > b.score;
      std::uint64_t m = mix(seed, static_cast<std::uint64_t>(a.row)), n = mix(seed, static_cast<std::uint64_t>(b.row));
      return m != n ? m < n : a.row < b.row;
    });
    std::transform(places.begin(), places.end(), ranking.order.begin(), [](const Place& place) { return place.row; });
  } else {
    if (ranking.order.size() != scores_.size())
      fail(ErrorCode::internal, "{} ordered {} of {} inputs", id_, ranking.order.size(), scores_.size());
    std::stable_partition(ranking.order.begin(), ranking.order.end(), [&](std::int64_t row) {
      return std::isinf(scores_[static_cast<std::size_t>(row)]) && scores_[static_cast<std::size_t>(row)] > 0;
    });
  }
  ranking.scores = scores_;
  return ranking;
}

std::vector<std::int64_t> Selector::refine(const Shortlist& candidates, std::int64_t budget) const {
  std::vector<std::int64_t> picks;
  for (std::int64_t i : run_refine(candidates, budget))
    picks.push_back(candidates.rows.at(static_cast<std::size_t>(i)));
  if (static_cast<std::int64_t>(picks.size()) != budget)
    fail(ErrorCode::internal, "{} picked {} inputs, not {}", id_, picks.size(), budget);
  return picks;
}

std::unique_ptr<Selector> make_selector(const Spec& spec, const SelectContext& context) {
  std::unique_ptr<Selector> selector = selectors().create(spec, context);
  selector->id_ = spec.name;
  selector->spec_ = selectors().options(spec).str();
  SelectorNeeds needs = selector->needs();
  if (needs.training && !context.training)
    bad_usage("{} compares with training data: name them with --train, such as --train mnist:train", spec.name);
  if (needs.originals && !context.originals)
    bad_usage("{} compares every input with what it was made of: name the originals with --originals", spec.str());
  return selector;
}

}  // namespace galvani
