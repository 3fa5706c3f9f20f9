// What speaks against a verdict, taken together: the output, the nearest training inputs, the most similar inputs of
// the pool, how far all of them are, and what is said of the original.
#include "select/fused.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "select/builtin.h"
#include "select/crowd.h"
#include "select/neighbours.h"

namespace galvani {

double doubt_of(const double* shares, std::int64_t classes, std::int64_t verdict, double floor) {
  double rival = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    if (c != verdict) rival = std::max(rival, shares[c]);
  }
  return std::log(rival + floor) - std::log(shares[verdict] + floor);
}

void shares_of_labels(const std::vector<Nearest>& near, const std::int64_t* labels, std::int64_t classes, double* out) {
  constexpr double kTiny = 1e-12, kNarrow = 0.5;
  std::fill_n(out, classes, 0.0);
  double reach = near.back().squared_distance + kTiny, total = 0;
  for (const Nearest& neighbour : near) {
    double weight = std::exp(-neighbour.squared_distance / (kNarrow * reach));
    out[labels[neighbour.index]] += weight;
    total += weight;
  }
  for (std::int64_t c = 0; c < classes; ++c) out[c] /= total;
}

double log_distance(const std::vector<Nearest>& near, std::size_t count) {
  constexpr double kTiny = 1e-6;
  count = std::min(count, near.size());
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += std::sqrt(near[i].squared_distance);
  return count == 0 ? 0 : std::log(sum / static_cast<double>(count) + kTiny);
}

namespace {

// All of these were chosen on digits and MNIST alone, the form of the sum, too (docs/selection.md).
constexpr std::int64_t kTrainingAsked = 20, kPoolAsked = 10;
constexpr std::size_t kDistances = 10;
constexpr double kFloor = 1e-3, kOutputFloor = 1e-6;  // of shares of neighbours, and of the output
constexpr double kDeep = 2.0 / 3;                     // weight of the penultimate layer against the encoder's
constexpr double kOutput = 0.2, kDistance = 3;        // beside the training inputs' doubt
constexpr double kOriginalOutput = 0.3;
constexpr double kNow = 0.2;                           // beside what is said of the original
constexpr double kCrowd = 0.5, kCrowdUntrained = 0.7;  // share of the similar inputs of the pool
// An encoder wider than that is left out.
constexpr std::int64_t kWidest = 4096;

std::int64_t width_of(const Network& network, const FeatureNeed& need) {
  const Tap& tap = network.taps()[static_cast<std::size_t>(need.tap)];
  if (need.form == FeatureForm::input) return network.linear_layer(need.tap)->features();
  return need.form == FeatureForm::units ? tap.units() : tap.neurons();
}

// What is known of some inputs before their neighbours in the pool are asked.
struct Evidence {
  at::Tensor features;         // [n, width] float: rows of length 1
  std::vector<double> shares;  // [n, classes], of the training inputs or of the output
  std::vector<double> rest;    // [n]; NaN: cannot be scored
  std::vector<double> before;  // [n]: of the originals
  std::vector<std::int64_t> verdicts;
};

class FusedSelector : public Selector {
 public:
  FusedSelector(const Options& options, const SelectContext& context)
      : classes_(context.network.info().classes), crowd_("fused", context.pool, options.integer("among"), classes_) {
    const std::string& with = options.text("with");
    training_ = with == "train" || (with == "all" && context.training);
    originals_ = with == "originals" || (with == "all" && context.originals);
    layers_ = {feature_of(context.network, "penultimate")};
    FeatureNeed encoder = feature_of(context.network, "encoder");
    if (training_ && !(encoder == layers_[0]) && width_of(context.network, encoder) <= kWidest)
      layers_.push_back(encoder);
  }

  bool random() const override { return crowd_.sampled(); }
  SelectorNeeds needs() const override {
    SelectorNeeds needs;
    needs.features = layers_;
    needs.training = training_;
    needs.originals = originals_;
    needs.sample = crowd_.share();
    return needs;
  }
  std::vector<std::string> notes() const override {
    if (!crowd_.sampled()) return {};
    return {fmt::format("similar inputs of the pool were sought among {} of it", crowd_.size())};
  }

 private:
  void run_train(const TrainingPart& part) override {
    if (part.labels.numel() > 0 && part.labels.min().item<std::int64_t>() < 0)
      bad_input("the training data have inputs without a label, and fused needs every one; or say fused:with=output");
    std::vector<FiniteRows> rows;
    at::Tensor finite = at::ones({part.labels.size(0)}, at::kBool);
    for (const at::Tensor& features : part.seen.features) {
      rows.push_back(finite_unit_rows(features));
      finite = finite.logical_and(rows.back().finite);
    }
    known_.resize(layers_.size());
    for (std::size_t i = 0; i < rows.size(); ++i) known_[i].push_back(rows[i].values.index({finite}));
    labels_.push_back(part.labels.index({finite}));
  }
  void run_finish_training() override {
    label_of_ = at::cat(labels_).contiguous();
    if (label_of_.size(0) == 0) bad_input("the training data give fused nothing to compare with");
    for (auto& rows : known_) searches_.push_back(std::make_unique<NearestSearch>(at::cat(rows)));
    known_.clear();
    labels_.clear();
  }

  void run_sample(const PoolPart& part) override { remember(evidence_of(part), part.rows); }
  void run_finish_sample() override { crowd_.gather(); }

  void run(const PoolPart& part, double* scores) override {
    Evidence evidence = evidence_of(part);
    if (crowd_.sampled()) return score(evidence, part.rows, scores);
    remember(evidence, part.rows);
    kept_.push_back(std::move(evidence));
    kept_rows_.push_back(part.rows);
  }
  std::vector<std::int64_t> run_order(std::vector<double>& scores) override {
    if (crowd_.sampled()) return {};
    crowd_.gather();
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      check_interrupt();
      score(kept_[i], kept_rows_[i], scores.data() + kept_rows_[i][0]);
    }
    kept_.clear();
    return {};
  }

  // The labels of the nearest training inputs; of two layers their weighted geometric mean. Adds the distances.
  std::vector<double> training_shares(const Seen& seen, std::vector<double>* distances) const {
    auto n = static_cast<std::size_t>(seen.size()), classes = static_cast<std::size_t>(classes_);
    std::vector<double> all(n * classes, 1.0), own(classes);
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      double weight = layers_.size() == 1 ? 1 : layer == 0 ? kDeep : 1 - kDeep;
      auto near = neighbours_of(*searches_[layer], finite_unit_rows(seen.features[layer]).values, kTrainingAsked);
      for (std::size_t i = 0; i < n; ++i) {
        shares_of_labels(near[i], label_of_.data_ptr<std::int64_t>(), classes_, own.data());
        for (std::size_t c = 0; c < classes; ++c) all[i * classes + c] *= std::pow(own[c] + kFloor, weight);
        if (distances != nullptr)
          (*distances)[i] += log_distance(near[i], kDistances) / static_cast<double>(layers_.size());
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (std::size_t c = 0; c < classes; ++c) sum += all[i * classes + c];
      for (std::size_t c = 0; c < classes; ++c) all[i * classes + c] /= sum;
    }
    return all;
  }

  static std::vector<double> output_shares(const Seen& seen) {
    at::Tensor p = seen.probabilities.contiguous();
    return {p.data_ptr<float>(), p.data_ptr<float>() + p.numel()};
  }

  Evidence evidence_of(const PoolPart& part) const {
    auto n = part.rows.size(), classes = static_cast<std::size_t>(classes_);
    Evidence evidence;
    FiniteRows rows = finite_unit_rows(part.seen.features[0]);
    evidence.features = rows.values;
    const auto* verdict = part.seen.predicted.data_ptr<std::int64_t>();
    evidence.verdicts.assign(verdict, verdict + n);
    std::vector<double> output = output_shares(part.seen), original, original_shares, distances(n, 0.0);
    evidence.shares = training_ ? training_shares(part.seen, &distances) : output;
    if (originals_) original = output_shares(part.original);
    if (originals_ && training_) original_shares = training_shares(part.original, nullptr);
    evidence.rest.assign(n, 0.0);
    evidence.before.assign(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      if (!rows.finite.data_ptr<bool>()[i] || verdict[i] < 0) {
        evidence.rest[i] = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      auto doubt = [&](const std::vector<double>& shares, double floor) {
        return doubt_of(shares.data() + i * classes, classes_, verdict[i], floor);
      };
      if (training_) evidence.rest[i] = kOutput * doubt(output, kOutputFloor) + kDistance * distances[i];
      if (!originals_) continue;
      evidence.before[i] = training_ ? doubt(original_shares, kFloor) + kOriginalOutput * doubt(original, kOutputFloor)
                                     : doubt(original, kFloor);
    }
    return evidence;
  }

  // What can be scored may be asked by others.
  void remember(const Evidence& evidence, const std::vector<std::int64_t>& rows) {
    std::vector<char> usable;
    for (double rest : evidence.rest) usable.push_back(std::isnan(rest) ? 0 : 1);
    crowd_.remember(evidence.features, evidence.shares, usable, rows);
  }

  void score(const Evidence& evidence, const std::vector<std::int64_t>& rows, double* scores) const {
    double weight = training_ ? kCrowd : kCrowdUntrained, floor = training_ ? kFloor : kOutputFloor;
    auto others = crowd_.others_of(evidence.features, rows, kPoolAsked);
    std::vector<double> smoothed(static_cast<std::size_t>(classes_));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (std::isnan(evidence.rest[i])) continue;
      crowd_.smooth(evidence.shares.data() + static_cast<std::ptrdiff_t>(i) * classes_, others[i], weight,
                    smoothed.data());
      double now = doubt_of(smoothed.data(), classes_, evidence.verdicts[i], floor) + evidence.rest[i];
      if (!training_) now += log_distance(others[i], kDistances);
      scores[i] = originals_ ? evidence.before[i] + kNow * now : now;
    }
  }

  std::vector<FeatureNeed> layers_;  // penultimate, and the encoder where that is another
  std::int64_t classes_;
  Crowd crowd_;
  bool training_ = false;
  bool originals_ = false;
  std::vector<std::vector<at::Tensor>> known_;  // while learning, by layer
  std::vector<at::Tensor> labels_;
  std::vector<std::unique_ptr<NearestSearch>> searches_;  // by layer
  at::Tensor label_of_;                                   // [training inputs] int64
  std::vector<Evidence> kept_;                            // until all of the pool is there
  std::vector<std::vector<std::int64_t>> kept_rows_;
};

}  // namespace

SelectorEntry fused_entry() {
  return {"fused",
          "what output, similar inputs, training data and originals, as far as given, say against the verdict",
          {{"with",
            std::string("all"),
            "what it listens to beside the pool: all that is given, or less",
            {},
            {},
            {"all", "output", "train", "originals"}},
           among_option()},
          [](const Options& options, const SelectContext& context) {
            return std::make_unique<FusedSelector>(options, context);
          }};
}

}  // namespace galvani
