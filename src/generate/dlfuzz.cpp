// DLFuzz (Guo et al. 2018): a few steps towards the next best classes and neurons that a strategy chooses.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "generate/builtin.h"
#include "generate/differential.h"

namespace galvani {
namespace {

constexpr const char* kOften = "often";
constexpr const char* kSeldom = "seldom";
constexpr const char* kWeights = "weights";
constexpr const char* kNear = "near";

// The authors' constants.
constexpr double kWeightiest = 0.1;  // share of the neurons that strategy 3 draws from
constexpr double kNearAbove = 0.25;  // how far from the threshold is near
constexpr double kNearBelow = 0.2;

class DlFuzz : public Differential {
 public:
  DlFuzz(const Options& options, const GeneratorContext& context)
      : Differential(options, context, {}),
        strategies_(listed("dlfuzz", "strategy", options.text("strategy"), {kOften, kSeldom, kWeights, kNear})),
        next_(options.integer("k")),
        next_weight_(static_cast<float>(options.real("others"))),
        count_(options.integer("neurons")),
        lambda_(static_cast<float>(options.real("lambda"))),
        threshold_(options.real("threshold")),
        bound_(options.real("bound")) {
    if (context.network == nullptr) return;
    const NeuronTable& table = neurons(0);
    auto most = static_cast<double>(*std::max_element(table.active.begin(), table.active.end()));
    std::vector<std::size_t> order(table.weight.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return table.weight[a] > table.weight[b]; });
    weighty_.assign(order.size(), 0);
    auto top = static_cast<std::size_t>(std::max(1.0, kWeightiest * static_cast<double>(order.size())));
    for (std::size_t i = 0; i < top; ++i) weighty_[order[i]] = table.weight[order[i]] > 0 ? 1 : 0;
    for (std::int64_t active : table.active) {
      often_.push_back(static_cast<double>(active));
      seldom_.push_back(most - static_cast<double>(active));
    }
  }

 private:
  void aim(Climber& climber) const override {
    climber.candidate.kind = 0;
    climber.provenance = id();
    Terms& terms = climber.terms[0];
    terms.classes = {climber.start->label};
    terms.class_weights = {-1};
    at::Tensor others = climber.start->logits.clone();
    others[climber.start->label] = -std::numeric_limits<float>::infinity();
    at::Tensor best = std::get<1>(others.sort(/*stable=*/true, 0, /*descending=*/true)).contiguous();
    for (std::int64_t i = 0; i < std::min(next_, classes() - 1); ++i) {
      terms.classes.push_back(best.data_ptr<std::int64_t>()[i]);
      terms.class_weights.push_back(next_weight_);
    }
    if (lambda_ == 0) return;
    // As many of each strategy; the first ones get what is left over.
    auto n = static_cast<std::int64_t>(strategies_.size());
    for (std::int64_t i = 0; i < n; ++i)
      choose(strategies_[static_cast<std::size_t>(i)], count_ / n + (i < count_ % n ? 1 : 0), climber, terms);
  }

  void choose(const std::string& strategy, std::int64_t count, Climber& climber, Terms& terms) const {
    auto add = [&](const std::vector<double>& weights, std::int64_t most, float sign) {
      for (std::int64_t neuron : draw_by_weight(weights, most, climber.rng)) {
        terms.neurons.push_back(neuron);
        terms.neuron_weights.push_back(sign * lambda_);
      }
    };
    if (strategy != kNear) {
      add(strategy == kOften ? often_ : strategy == kSeldom ? seldom_ : weighty_, count, 1);
      return;
    }
    // Those below the threshold are to become active, those above it not.
    std::vector<double> below, above;
    const auto* activity = climber.start->activity.data_ptr<float>();
    for (std::int64_t i = 0; i < neurons(0).size(); ++i) {
      auto value = static_cast<double>(activity[i]);
      below.push_back(value <= threshold_ && value > threshold_ - kNearBelow ? 1 : 0);
      above.push_back(value > threshold_ && value < threshold_ + kNearAbove ? 1 : 0);
    }
    add(below, count - count / 2, 1);
    add(above, count / 2, -1);
  }

  void move(Climber& climber, const std::vector<float>& direction) const override {
    auto* x = climber.x.data_ptr<float>();
    auto length = static_cast<float>(step());
    for (std::size_t i = 0; i < direction.size(); ++i) x[i] += length * direction[i];
    climber.x.clamp_(low(), high());
  }

  bool worth_showing(const Climber& climber, const at::Tensor& shown) const override {
    at::Tensor seed = climber.start->seed.to(at::kDouble);
    return (shown.to(at::kDouble) - seed).norm().item<double>() < bound_ * seed.norm().item<double>();
  }

  std::vector<std::string> strategies_;
  std::int64_t next_;
  float next_weight_;
  std::int64_t count_;
  float lambda_;
  double threshold_;
  double bound_;
  std::vector<double> often_, seldom_, weighty_;  // how likely each neuron is drawn
};

}  // namespace

GeneratorEntry dlfuzz_generator_entry() {
  OptionSchema options = {{"strategy",
                           std::string(kOften),
                           "how neurons are chosen: often, seldom, weights, near, or several of them",
                           {},
                           {},
                           {}},
                          {"k", std::int64_t{4}, "classes next to the label that are raised", 0.0, 1e9, {}},
                          {"others", 0.5, "weight of these", 0.0, 1e6, {}},
                          {"neurons", std::int64_t{10}, "that are raised", 1.0, 1e6, {}},
                          {"lambda", 0.5, "weight of these", 0.0, 1e6, {}},
                          {"bound",
                           0.02,
                           "change, relative to the seed, within which an input that fools nobody may be gone on from",
                           0.0,
                           1e6,
                           {}}};
  OptionSchema shared = differential_options(5, 0.02, 0.5, "logits");
  options.insert(options.end(), shared.begin(), shared.end());
  return {"dlfuzz", "a few steps towards the next classes and chosen neurons (docs/differential.md)", options,
          [](const Options& chosen, const GeneratorContext& context) -> std::unique_ptr<Generator> {
            return std::make_unique<DlFuzz>(chosen, context);
          }};
}

}  // namespace galvani
