// DATIS: what the nearest training inputs say about a verdict.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/coverage/nearest.h"
#include "select/builtin.h"
#include "select/neighbours.h"

namespace galvani {

std::vector<std::vector<Nearest>> neighbours_of(const NearestSearch& search, const at::Tensor& queries,
                                                std::int64_t k) {
  constexpr std::int64_t kRows = 256;
  std::int64_t n = queries.size(0);
  std::vector<std::vector<Nearest>> all(static_cast<std::size_t>(n));
  workers().run((n + kRows - 1) / kRows, [&](std::int64_t task, int) {
    std::int64_t first = task * kRows;
    auto found = search.nearest_k(queries.narrow(0, first, std::min(kRows, n - first)), k);
    std::move(found.begin(), found.end(), all.begin() + first);
  });
  return all;
}

double support_doubt(const std::vector<Nearest>& near, const std::int64_t* labels, std::int64_t classes,
                     std::int64_t verdict, double temperature) {
  std::vector<double> p(static_cast<std::size_t>(classes), 0);
  double total = 0;
  for (const Nearest& neighbour : near) {
    double weight = std::exp(-neighbour.squared_distance / temperature);
    p[static_cast<std::size_t>(labels[neighbour.index])] += weight;
    total += weight;
  }
  if (!(total > 0)) return std::numeric_limits<double>::quiet_NaN();
  for (double& share : p) share /= total;
  double own = p[static_cast<std::size_t>(verdict)];
  auto largest = std::max_element(p.begin(), p.end()) - p.begin();
  double rival = p[static_cast<std::size_t>(largest)];
  if (largest == verdict) {
    rival = 0;
    for (std::size_t c = 0; c < p.size(); ++c) {
      if (static_cast<std::int64_t>(c) != verdict) rival = std::max(rival, p[c]);
    }
  }
  constexpr double kTiny = 1e-15;
  return rival / (own + kTiny);
}

std::vector<std::int64_t> drop_redundant(const at::Tensor& features, std::int64_t budget, double weight) {
  std::int64_t n = features.size(0);
  constexpr std::int64_t kMost = 100;
  auto near = neighbours_of(NearestSearch(features), features, std::min(budget, kMost));
  std::vector<double> distance;
  for (const auto& found : near) {
    double sum = 0;
    for (const Nearest& neighbour : found) sum += std::sqrt(neighbour.squared_distance);
    distance.push_back(sum / static_cast<double>(found.size()));
  }
  std::vector<std::int64_t> far(static_cast<std::size_t>(n));
  std::iota(far.begin(), far.end(), 0);
  std::vector<std::int64_t> picks = far;
  std::stable_sort(far.begin(), far.end(), [&](std::int64_t a, std::int64_t b) {
    return distance[static_cast<std::size_t>(a)] > distance[static_cast<std::size_t>(b)];
  });
  std::vector<double> worth(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) worth[static_cast<std::size_t>(i)] = (1 - weight) * static_cast<double>(n - i);
  for (std::int64_t place = 0; place < n; ++place)
    worth[static_cast<std::size_t>(far[static_cast<std::size_t>(place)])] += weight * static_cast<double>(n - place);
  std::stable_sort(picks.begin(), picks.end(), [&](std::int64_t a, std::int64_t b) {
    return worth[static_cast<std::size_t>(a)] > worth[static_cast<std::size_t>(b)];
  });
  picks.resize(static_cast<std::size_t>(budget));
  return picks;
}

FiniteRows finite_unit_rows(const at::Tensor& features) {
  at::Tensor finite = features.isfinite().all(1);
  return {unit_rows(features.masked_fill(finite.logical_not().unsqueeze(1), 0)), finite.contiguous()};
}

namespace {

class SupportSelector : public Selector {
 public:
  SupportSelector(const Options& options, const SelectContext& context)
      : need_(feature_of(context.network, options.text("layer"))),
        classes_(context.network.info().classes),
        pool_(context.pool),
        k_(options.integer("k")),
        temperature_(options.real("t")),
        rerank_(options.flag("rerank")) {}

  SelectorNeeds needs() const override {
    SelectorNeeds needs;
    needs.features = {need_};
    needs.training = true;
    return needs;
  }
  std::int64_t reach(std::int64_t budget) const override {
    return rerank_ ? std::min(pool_, budget * (small(budget) ? 3 : 2)) : 0;
  }
  FeatureNeed refined_by() const override { return need_; }

 private:
  // Budgets of up to a hundredth of the pool are chosen from three times as many, with more weight on distance.
  bool small(std::int64_t budget) const { return budget * 100 <= pool_; }

  void run_train(const TrainingPart& part) override {
    if (part.labels.numel() > 0 && part.labels.min().item<std::int64_t>() < 0)
      bad_input("the training data have inputs without a label, and datis needs every one");
    FiniteRows rows = finite_unit_rows(part.seen.features[0]);
    rows_.push_back(rows.values.index({rows.finite}));
    labels_.push_back(part.labels.index({rows.finite}));
  }
  void run_finish_training() override {
    label_of_ = at::cat(labels_).contiguous();
    search_ = std::make_unique<NearestSearch>(at::cat(rows_));
    rows_.clear();
    labels_.clear();
    if (label_of_.size(0) == 0) bad_input("the training data give datis nothing to compare with");
  }
  void run(const PoolPart& part, double* scores) override {
    FiniteRows rows = finite_unit_rows(part.seen.features[0]);
    auto near = neighbours_of(*search_, rows.values, k_);
    const auto* verdict = part.seen.predicted.data_ptr<std::int64_t>();
    for (std::size_t i = 0; i < near.size(); ++i) {
      if (rows.finite.data_ptr<bool>()[i] && verdict[i] >= 0)
        scores[i] = support_doubt(near[i], label_of_.data_ptr<std::int64_t>(), classes_, verdict[i], temperature_);
    }
  }
  std::vector<std::int64_t> run_refine(const Shortlist& candidates, std::int64_t budget) const override {
    constexpr double kMuch = 0.3, kLess = 0.2;
    return drop_redundant(finite_unit_rows(candidates.features).values, budget, small(budget) ? kMuch : kLess);
  }

  FeatureNeed need_;
  std::int64_t classes_;
  std::int64_t pool_;
  std::int64_t k_;
  double temperature_;
  bool rerank_;
  std::vector<at::Tensor> rows_, labels_;  // while learning
  at::Tensor label_of_;                    // [n] int64
  std::unique_ptr<NearestSearch> search_;
};

}  // namespace

SelectorEntry datis_entry() {
  return {"datis",
          "how far the nearest training inputs contradict the verdict (DATIS)",
          {{"k", std::int64_t{100}, "nearest training inputs that are asked", 1, 1e6, {}},
           {"t", 0.1, "temperature: how fast their say falls with squared distance", 1e-6, 1e6, {}},
           {"layer", std::string("penultimate"), "encoder, penultimate, or the name of a tap", {}, {}, {}},
           {"rerank",
            true,
            "choose the picks from two or three times as many, those far from each other first",
            {},
            {},
            {}}},
          [](const Options& options, const SelectContext& context) {
            return std::make_unique<SupportSelector>(options, context);
          }};
}

}  // namespace galvani
