#include "repair/retrain.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/rng.h"
#include "galvani/model/evaluate.h"
#include "galvani/repair/adversarial.h"

namespace galvani {
namespace {

// Few tests are shown more often, so that the network has the time to learn something of them.
constexpr double kFewestSteps = 500;
constexpr std::int64_t kFewestEpochs = 5;
constexpr std::int64_t kMostEpochs = 30;

Dataset joined(const Dataset& train, const Dataset& tests) {
  if (tests.size() == 0) return train;
  Dataset all;
  all.name = fmt::format("{} and {} tests", train.name, tests.size());
  all.images = at::cat({train.images, tests.images});
  all.labels = at::cat({train.labels, tests.labels});
  all.class_names = train.class_names;
  all.rate = train.rate;
  return all;
}

double mean_change(const FoundTests& tests) {
  double sum = 0;
  std::int64_t known = 0;
  for (double change : tests.changes) {
    if (std::isnan(change)) continue;
    sum += change;
    known += 1;
  }
  if (known == 0)
    bad_usage("the control 'noise' changes images as much as the tests are changed, which is not known of {}",
              tests.images.name);
  return sum / static_cast<double>(known);
}

}  // namespace

std::int64_t chosen_epochs(std::int64_t train, std::int64_t tests, const RepairOptions& options) {
  double rows = tests == 0        ? static_cast<double>(train)
                : options.mix > 0 ? static_cast<double>(tests) / options.mix
                                  : static_cast<double>(train + tests);
  double steps = std::ceil(rows / static_cast<double>(options.training.batch));
  return std::clamp(static_cast<std::int64_t>(std::ceil(kFewestSteps / std::max(1.0, steps))), kFewestEpochs,
                    kMostEpochs);
}

void retrain(Network& network, const Retraining& what, const RepairOptions& options, const RepairListener& listener) {
  TrainOptions training = options.training;
  training.checkpoint = what.checkpoint;
  Dataset data = joined(what.train, what.tests);
  training.apart = what.tests.size();
  training.share = what.tests.size() > 0 ? options.mix : 0;
  if (training.epochs < 0) training.epochs = chosen_epochs(what.train.size(), what.tests.size(), options);
  if (what.adversarial) training.perturbation = make_adversary(Spec::parse(options.adversarial), network);
  train(network, data, what.validation, training, [&](const EpochReport& report) { listener(what.stage, report); });
}

Dataset control_images(const std::string& control, const Dataset& train, const FoundTests& tests, const Rng& rng) {
  Rng draws = rng.derive("control").derive(control);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < tests.size(); ++i)
    rows.push_back(static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(train.size()))));
  Dataset drawn = train.subset(rows);
  drawn.name = fmt::format("{} (control {})", train.name, control);
  if (control == "clean" || tests.size() == 0) return drawn;
  auto spread = static_cast<float>(mean_change(tests) * static_cast<double>(drawn.type().full()));
  at::Tensor noise = at::empty(drawn.images.sizes(), at::kFloat);
  draws.fill_normal(noise.data_ptr<float>(), static_cast<std::size_t>(noise.numel()));
  drawn.images = (drawn.images.to(at::kFloat) + noise * spread)
                     .round_()
                     .clamp_(drawn.type().low(), drawn.type().high())
                     .to(drawn.type().dtype());
  return drawn;
}

double blend_back(Network& network, Network& original, const Dataset& clean, double loss) {
  constexpr int kParts = 10;
  double wanted = judge(original, clean, "before: clean").accuracy() - loss / 2;
  if (judge(network, clean, "retrained: clean").accuracy() >= wanted) return 1;
  struct Weight {
    std::string name;
    at::Tensor from, to;
  };
  std::vector<Weight> moved;
  for (const NamedParameter& p : network.parameters()) {
    Weight weight{p.name, original.parameter(p.name), network.parameter(p.name)};
    if (!at::equal(weight.from, weight.to)) moved.push_back(std::move(weight));
  }
  for (int part = kParts - 1; part > 0; --part) {
    double share = static_cast<double>(part) / kParts;
    for (const Weight& weight : moved)
      network.set_parameter(weight.name, weight.from * (1 - share) + weight.to * share);
    if (judge(network, clean, fmt::format("{} of the way: clean", share)).accuracy() >= wanted) return share;
  }
  for (const Weight& weight : moved) network.set_parameter(weight.name, weight.from);
  return 0;
}

Verdicts judge(Network& network, const Dataset& data, const std::string& title) {
  std::vector<at::Tensor> predicted;
  predict_stream(network, data, title,
                 [&](const Predictions& said, std::int64_t) { predicted.push_back(said.labels.clone()); });
  Verdicts verdicts;
  verdicts.predicted = at::cat(predicted);
  verdicts.right = verdicts.predicted == data.labels;
  return verdicts;
}

}  // namespace galvani
