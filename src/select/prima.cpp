// PRIMA: mutants of the model that an input kills, and how far they move its probabilities, ranked by a learned ranker.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/progress.h"
#include "galvani/base/rng.h"
#include "galvani/model/evaluate.h"
#include "galvani/mutate/one_each.h"
#include "select/boosting.h"
#include "select/builtin.h"

namespace galvani {
namespace {

enum class ModelMutation { noise, block, inverse, exchange };
constexpr int kModelMutations = 4;
constexpr int kDistanceBins = 5;
// Of each kind of mutation: killed mutants, different verdicts, mean and largest cosine distance, mean Euclidean
// distance, a histogram of cosine distances.
constexpr int kFiguresOfKind = 5 + kDistanceBins;
constexpr std::int64_t kWidth = kModelMutations * kFiguresOfKind;

// Runs inputs through a network some of whose weights or neurons are changed. The network itself stays as it is.
class MutatedModel {
 public:
  MutatedModel(const Network& network, double share) : network_(network.clone()), share_(share) {
    for (const NamedParameter& p : network.parameters()) {
      if (p.trainable && p.shape.size() >= 2) weights_.emplace_back(p.name, network.parameter(p.name));
    }
    std::vector<int> taps = network.select_taps("default");
    if (taps.size() > 1) taps.pop_back();  // the last gives the scores themselves
    hidden_ = taps;
  }

  at::Tensor probabilities(const at::Tensor& inputs, ModelMutation kind, Rng rng) {
    bool of_weights = kind == ModelMutation::noise || kind == ModelMutation::exchange;
    if (of_weights) {
      for (const auto& [name, weight] : weights_)
        network_->set_parameter(name, kind == ModelMutation::noise ? noisy(weight, rng) : exchanged(weight, rng));
    }
    Request request;
    for (std::size_t i = 0; !of_weights && i < hidden_.size(); ++i)
      request.masks.push_back({hidden_[i], factor_of(hidden_[i], kind == ModelMutation::block ? 0.0F : -1.0F, rng)});
    at::Tensor p = network_->run(inputs, request).logits.softmax(1);
    if (of_weights) {
      for (const auto& [name, weight] : weights_) network_->set_parameter(name, weight);
    }
    return p;
  }

 private:
  // Noise as wide as the weights themselves on a share of them.
  at::Tensor noisy(const at::Tensor& weight, Rng& rng) const {
    at::Tensor changed = weight.clone();
    auto* data = changed.data_ptr<float>();
    double width = weight.numel() > 1 ? weight.std().item<double>() : 1;
    for (std::int64_t i = 0; i < changed.numel(); ++i) {
      if (rng.chance(share_)) data[i] += static_cast<float>(width * rng.normal());
    }
    return changed;
  }
  // A share of the neurons, two at least, change places.
  at::Tensor exchanged(const at::Tensor& weight, Rng& rng) const {
    std::int64_t neurons = weight.size(0);
    if (neurons < 2) return weight;
    auto count = std::clamp<std::int64_t>(std::llround(share_ * static_cast<double>(neurons)), 2, neurons);
    std::vector<std::int64_t> chosen = rng.sample(neurons, count);
    std::vector<std::int64_t> from(static_cast<std::size_t>(neurons));
    std::iota(from.begin(), from.end(), 0);
    for (std::size_t i = 0; i < chosen.size(); ++i)
      from[static_cast<std::size_t>(chosen[i])] = chosen[(i + 1) % chosen.size()];
    return weight.index_select(0, at::tensor(from, at::kLong));
  }
  at::Tensor factor_of(int tap, float value, Rng& rng) const {
    std::int64_t neurons = network_->taps()[static_cast<std::size_t>(tap)].neurons();
    at::Tensor factor = at::ones({neurons});
    for (std::int64_t j = 0; j < neurons; ++j) {
      if (rng.chance(share_)) factor.data_ptr<float>()[j] = value;
    }
    return factor;
  }

  std::unique_ptr<Network> network_;
  double share_;
  std::vector<std::pair<std::string, at::Tensor>> weights_;
  std::vector<int> hidden_;
};

class MutationRanker : public Selector {
 public:
  MutationRanker(const Options& options, const SelectContext& context)
      : network_(context.network),
        model_(context.network, options.real("share") / 100),
        type_(context.type),
        mutants_(options.integer("mutants")),
        fit_(options.integer("fit")),
        rounds_(options.integer("rounds")),
        rng_(Rng(context.seed).derive("prima")) {
    BoostedRanker::require();
  }

  bool random() const override { return true; }
  SelectorNeeds needs() const override {
    SelectorNeeds needs;
    needs.training = true;
    return needs;
  }

 private:
  // A sample of the training data, drawn as they come by.
  void run_train(const TrainingPart& part) override {
    for (std::int64_t i = 0; i < part.inputs.size(0); ++i) {
      std::int64_t label = part.labels.data_ptr<std::int64_t>()[i];
      if (label < 0) bad_input("the training data have inputs without a label, and prima needs every one");
      std::int64_t place = come_++;
      if (place >= fit_) place = static_cast<std::int64_t>(drawing_.below(static_cast<std::uint64_t>(come_)));
      if (place >= fit_) continue;
      if (place == static_cast<std::int64_t>(labels_.size())) {
        labels_.push_back(label);
        inputs_.push_back(part.inputs[i].clone());
      } else {
        labels_[static_cast<std::size_t>(place)] = label;
        inputs_[static_cast<std::size_t>(place)] = part.inputs[i].clone();
      }
    }
  }

  // The ranker learns which of them, and of one mutant of each, the network gets wrong.
  void run_finish_training() override {
    at::Tensor inputs = at::stack(inputs_);
    inputs_.clear();
    std::vector<std::int64_t> rows(labels_.size());
    std::iota(rows.begin(), rows.end(), 0);
    at::Tensor changed =
        OneEach(catalogue_for("nss", type_.kind), type_).make(inputs, rows, rng_.derive("inputs")).images;
    at::Tensor all = at::cat({inputs, changed});
    Predictions said = predict(network_, all);
    std::vector<float> wrong;
    for (std::int64_t i = 0; i < all.size(0); ++i) {
      std::int64_t label = labels_[static_cast<std::size_t>(i) % labels_.size()];
      wrong.push_back(said.labels.data_ptr<std::int64_t>()[i] == label ? 0.0F : 1.0F);
    }
    auto faults = static_cast<std::int64_t>(std::count(wrong.begin(), wrong.end(), 1.0F));
    if (faults == 0 || faults == all.size(0))
      bad_input(
          "prima learns from what the model gets right and wrong, but of {} training inputs and mutants it gets {} "
          "wrong",
          all.size(0), faults == 0 ? "none" : "all");
    ranker_ = std::make_unique<BoostedRanker>(features_of(all, said.probabilities, said.labels), wrong, rounds_,
                                              rng_.derive("trees").next_u64());
  }

  void run(const PoolPart& part, double* scores) override {
    std::vector<float> found =
        ranker_->score(features_of(part.inputs, part.seen.probabilities, part.seen.predicted), part.seen.size());
    std::copy(found.begin(), found.end(), scores);
  }

  std::vector<float> features_of(const at::Tensor& inputs, const at::Tensor& probabilities, const at::Tensor& verdict) {
    std::int64_t n = inputs.size(0);
    at::Tensor figures = at::zeros({n, kWidth});
    at::Tensor norms = probabilities.square().sum(1).sqrt();
    std::int64_t classes = probabilities.size(1);
    at::Tensor seen = at::zeros({n, kModelMutations, classes});
    std::vector<std::int64_t> of_kind(kModelMutations, 0);
    for (std::int64_t m = 0; m < mutants_; ++m) {
      check_interrupt();
      auto kind = static_cast<int>(m % kModelMutations);
      of_kind[static_cast<std::size_t>(kind)] += 1;
      at::Tensor p = model_.probabilities(inputs, static_cast<ModelMutation>(kind),
                                          rng_.derive("mutant").derive(static_cast<std::uint64_t>(m)));
      at::Tensor now = p.argmax(1);
      at::Tensor killed = (now != verdict).to(at::kFloat);
      at::Tensor cosine = 1 - (p * probabilities).sum(1) / (p.square().sum(1).sqrt() * norms);
      cosine = cosine.nan_to_num(1).clamp(0, 1);
      at::Tensor own = figures.narrow(1, kind * kFiguresOfKind, kFiguresOfKind);
      own.select(1, 0).add_(killed);
      seen.select(1, kind).scatter_(1, now.unsqueeze(1), 1.0);
      own.select(1, 2).add_(cosine);
      own.select(1, 3).copy_(at::maximum(own.select(1, 3), cosine));
      own.select(1, 4).add_((p - probabilities).square().sum(1).sqrt().nan_to_num(1));
      at::Tensor bin = (cosine * kDistanceBins).to(at::kLong).clamp(0, kDistanceBins - 1);
      own.narrow(1, 5, kDistanceBins).scatter_add_(1, bin.unsqueeze(1), at::ones({n, 1}));
    }
    for (int kind = 0; kind < kModelMutations; ++kind) {
      at::Tensor own = figures.narrow(1, kind * kFiguresOfKind, kFiguresOfKind);
      own.select(1, 1).copy_(seen.select(1, kind).sum(1));
      auto count = static_cast<double>(std::max<std::int64_t>(1, of_kind[static_cast<std::size_t>(kind)]));
      own.select(1, 2).div_(count);
      own.select(1, 4).div_(count);
    }
    figures = figures.contiguous();
    return {figures.data_ptr<float>(), figures.data_ptr<float>() + figures.numel()};
  }

  Network& network_;
  MutatedModel model_;
  SampleType type_;
  std::int64_t mutants_;
  std::int64_t fit_;
  std::int64_t rounds_;
  Rng rng_;
  Rng drawing_{0};
  std::int64_t come_ = 0;
  std::vector<at::Tensor> inputs_;
  std::vector<std::int64_t> labels_;
  std::unique_ptr<BoostedRanker> ranker_;
};

}  // namespace

SelectorEntry prima_entry() {
  return {"prima",
          "mutants of the model that an input kills, ranked by boosted trees (PRIMA)",
          {{"mutants", std::int64_t{100}, "mutants of the model", 4, 1e5, {}},
           {"share", 10.0, "percent of the weights or neurons that a mutant changes", 0.01, 100, {}},
           {"fit", std::int64_t{1000}, "training inputs that the trees learn from, and a mutant of each", 10, 1e6, {}},
           {"rounds", std::int64_t{100}, "trees", 1, 1e5, {}}},
          [](const Options& options, const SelectContext& context) {
            return std::make_unique<MutationRanker>(options, context);
          }};
}

}  // namespace galvani
