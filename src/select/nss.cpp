#include "select/nss.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "galvani/base/error.h"
#include "select/builtin.h"

namespace galvani {

std::vector<std::int64_t> most_sensitive(const std::vector<double>& sensitivity, double percent) {
  std::vector<std::int64_t> order(sensitivity.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return sensitivity[static_cast<std::size_t>(a)] > sensitivity[static_cast<std::size_t>(b)];
  });
  auto count = static_cast<std::size_t>(static_cast<double>(order.size()) * percent / 100 + 1e-9);
  order.resize(std::clamp<std::size_t>(count, 1, order.size()));
  return order;
}

namespace {

constexpr double kNothing = 1e-6;  // in place of an output of 0, which nothing can be divided by

}  // namespace

Normalise parse_normalise(const std::string& text) {
  return text == "neuron" ? Normalise::neuron : text == "layer" ? Normalise::layer : Normalise::none;
}

void add_sensitivity(const at::Tensor& values, const at::Tensor& changed, Normalise by, std::vector<double>& sums) {
  at::Tensor each = (values - changed).abs();
  if (by == Normalise::neuron) each = each / values.abs().clamp_min(kNothing);
  if (by == Normalise::layer) each = each / values.abs().sum(1, /*keepdim=*/true).clamp_min(kNothing);
  // A mutant for which the network has no number says nothing of a neuron.
  at::Tensor finite = each.isfinite().all(1);
  at::Tensor sum = each.index({finite}).sum(0, /*keepdim=*/false, at::kDouble).contiguous();
  sums.resize(static_cast<std::size_t>(sum.size(0)), 0);
  for (std::int64_t j = 0; j < sum.size(0); ++j) sums[static_cast<std::size_t>(j)] += sum.data_ptr<double>()[j];
}

void add_tns_scores(const at::Tensor& values, const at::Tensor& changed, const std::vector<std::int64_t>& neurons,
                    Normalise by, double weight, double* scores) {
  at::Tensor x = values.contiguous(), y = changed.contiguous();
  std::int64_t width = x.size(1);
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    const float* a = x.data_ptr<float>() + i * width;
    const float* b = y.data_ptr<float>() + i * width;
    double sum = 0;
    for (std::int64_t j : neurons) {
      double change = std::abs(static_cast<double>(a[j]) - static_cast<double>(b[j]));
      if (by == Normalise::neuron) change /= std::max(std::abs(static_cast<double>(a[j])), kNothing);
      sum += change;
    }
    if (by == Normalise::layer) {
      double whole = 0;
      for (std::int64_t j = 0; j < width; ++j) whole += std::abs(static_cast<double>(a[j]));
      sum /= std::max(whole, kNothing);
    }
    scores[i] += sum * weight;
  }
}

namespace {

class SensitivitySelector : public Selector {
 public:
  SensitivitySelector(const Options& options, const SelectContext& context)
      : network_(context.network),
        need_(feature_of(context.network, options.text("layer"))),
        percent_(options.real("k")),
        share_(options.real("sample")),
        set_(options.text("set")),
        found_with_(options.text("find")),
        repeats_(options.integer("repeats")),
        normalise_(parse_normalise(options.text("normalise"))),
        originals_(options.text("pair") == "original") {}

  bool random() const override { return true; }
  SelectorNeeds needs() const override {
    SelectorNeeds needs;
    needs.features = {need_};
    needs.sample = share_ / 100;
    needs.originals = originals_;
    if (!originals_) {
      needs.mutators = set_;
      needs.mutants = repeats_;
    }
    needs.sample_mutators = found_with_;
    return needs;
  }
  std::vector<std::string> notes() const override {
    if (sensitive_.empty()) return {};
    std::string most;
    for (std::size_t i = 0; i < std::min<std::size_t>(sensitive_.size(), kShown); ++i)
      most += fmt::format("{}{}", i == 0 ? "" : ", ", unit_name(sensitive_[i]));
    return {fmt::format("{} of {} in {} are the most sensitive, most of all {}", sensitive_.size(), sums_.size(),
                        describe(network_, need_), most)};
  }

 private:
  static constexpr std::size_t kShown = 5;

  std::string unit_name(std::int64_t unit) const { return std::to_string(unit); }

  void run_sample(const PoolPart& part) override {
    if (originals_ && found_with_.empty())
      return add_sensitivity(part.original.features[0], part.seen.features[0], normalise_, sums_);
    // Algorithm 1 draws one mutation of each.
    add_sensitivity(part.seen.features[0], part.mutants[0].features[0], normalise_, sums_);
  }
  void run_finish_sample() override { sensitive_ = most_sensitive(sums_, percent_); }

  void run(const PoolPart& part, double* scores) override {
    std::fill_n(scores, part.rows.size(), 0.0);
    if (originals_)
      return add_tns_scores(part.original.features[0], part.seen.features[0], sensitive_, normalise_, 1, scores);
    for (const Seen& mutant : part.mutants)
      add_tns_scores(part.seen.features[0], mutant.features[0], sensitive_, normalise_,
                     1.0 / static_cast<double>(repeats_), scores);
  }

  const Network& network_;
  FeatureNeed need_;
  double percent_;
  double share_;
  std::string set_;
  std::string found_with_;
  std::int64_t repeats_;
  Normalise normalise_;
  bool originals_;
  std::vector<double> sums_;             // of every neuron
  std::vector<std::int64_t> sensitive_;  // the most sensitive first
};

}  // namespace

SelectorEntry nss_entry() {
  return {"nss",
          "how much the most sensitive neurons change between an input and a mutant of it, or its original (NSS)",
          {{"k", 10.0, "percent of the neurons that count as sensitive", 0, 100, {}},
           {"pair",
            std::string("mutant"),
            "what an input is compared with: a fresh mutant of it, or what it was made of",
            {},
            {},
            {"mutant", "original"}},
           {"normalise",
            std::string("none"),
            "what a neuron's change is divided by: nothing, its own output, or the sum of its layer's outputs",
            {},
            {},
            {"none", "neuron", "layer"}},
           {"layer", std::string("encoder"), "encoder, penultimate, or the name of a tap", {}, {}, {}},
           {"set", std::string("nss"), "mutators of fresh mutants; of sounds: audio", {}, {}, {}},
           {"find",
            std::string(),
            "mutators that sensitive neurons are found with, if others than what inputs are compared with",
            {},
            {},
            {}},
           {"repeats", std::int64_t{1}, "mutants of each input, over which the score is averaged", 1, 1000, {}},
           {"sample", 10.0, "percent of the pool that the sensitive neurons are found with", 1e-6, 100, {}}},
          [](const Options& options, const SelectContext& context) {
            return std::make_unique<SensitivitySelector>(options, context);
          }};
}

}  // namespace galvani
