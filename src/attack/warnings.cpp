// What spoils the figures of an attack, looked for before anybody believes them.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/attack/search.h"
#include "galvani/base/error.h"
#include "galvani/base/rng.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/label_fit.h"

namespace galvani {
namespace {

constexpr std::int64_t kLookedAt = 256;
constexpr double kManyZero = 0.1;     // share of inputs without a gradient that is worth a word
constexpr double kRandomness = 1e-3;  // of the largest score: more than the last bits

at::Tensor gradients_of(Network& network, const at::Tensor& inputs, const at::Tensor& labels,
                        const at::Tensor& references) {
  Request request;
  request.references = references;
  request.input_gradient = true;
  request.objective = [&](const Pass& pass) {
    at::Tensor rows = at::arange(pass.logits.size(0), at::kLong).clamp_max(pass.count - 1) + pass.first;
    return odds_loss(pass.logits, labels.index_select(0, rows));
  };
  return network.run(inputs, request).input_gradient;
}

}  // namespace

void check_differentiable(Network& network, const at::Tensor& inputs, const at::Tensor& references) {
  at::Tensor some = inputs.narrow(0, 0, std::min<std::int64_t>(inputs.size(0), 8)).to(at::kFloat);
  at::Tensor noise = at::empty_like(some);
  Rng(1).fill_uniform(noise.data_ptr<float>(), static_cast<std::size_t>(noise.numel()));
  noise = inputs.scalar_type() == at::kByte ? noise * 255 : noise * 65535 - 32768;
  at::Tensor both = at::cat({some, noise.round()});
  Request request;
  if (references.defined()) {
    at::Tensor rows = references.narrow(0, 0, some.size(0));
    request.references = at::cat({rows, rows});
  }
  at::Tensor labels = verdicts(network.run(both, request).logits).clamp_min(0);
  if (gradients_of(network, both, labels, request.references).count_nonzero().item<std::int64_t>() == 0)
    bad_input(
        "{}: has no gradients with respect to its input (integer operators or rounding stop them); the attack square "
        "needs none",
        network.info().path);
}

std::vector<std::string> attack_warnings(Network& network, const Attack& attack, const at::Tensor& inputs,
                                         const at::Tensor& labels, const at::Tensor& references) {
  std::vector<std::string> warnings;
  double full = inputs.scalar_type() == at::kByte ? 255 : 32768;
  const char* level = inputs.scalar_type() == at::kByte ? "grey level" : "16-bit step";
  double levels = attack.epsilon() * full;
  if (attack.bounded() && attack.norm() == Norm::linf && std::abs(levels - std::round(levels)) > 1e-6)
    warnings.push_back(fmt::format("eps {:.6g} is {:.4g} {}s, no whole number: a change of a file is at most {}",
                                   attack.epsilon(), levels, level, whole_levels(attack.epsilon(), full)));
  std::int64_t n = std::min(inputs.size(0), kLookedAt);
  if (n == 0) return warnings;
  at::Tensor sample = inputs.narrow(0, 0, n).contiguous();
  at::Tensor truth = labels.narrow(0, 0, n).contiguous();
  at::Tensor held = references.defined() ? references.narrow(0, 0, n).contiguous() : references;
  Predictions seen = predict(network, sample, held);
  auto accuracy = seen.labels.eq(truth).to(at::kDouble).mean().item<double>();
  double chance = 1.0 / static_cast<double>(network.info().classes);
  if (auto fit = fit_labels(truth, seen.labels, network.info().classes)) {
    warnings.push_back(
        fmt::format("accuracy on {} is {:.1f}%, but {}", counted(n, "input"), accuracy * 100, remedy_text(*fit, {})));
  } else if (near_chance(accuracy, chance, n)) {
    warnings.push_back(fmt::format(
        "accuracy on {} is {:.1f}%, near chance: the first suspect is preprocessing (galvani inspect --guess)",
        counted(n, "input"), accuracy * 100));
  }
  if (network.info().logits_made)
    warnings.emplace_back(
        "scores are made of probabilities (a softmax or sigmoids inside the graph that could not be skipped): "
        "gradients "
        "vanish where the network is sure, so attacks look weaker than they are");
  if (attack.needs_gradients()) {
    at::Tensor zero = gradients_of(network, sample, truth, held).flatten(1).ne(0).any(1).logical_not();
    auto share = zero.to(at::kDouble).mean().item<double>();
    if (share >= kManyZero)
      warnings.push_back(
          fmt::format("gradients are zero for {:.0f}% of the inputs, which hides them from attacks that "
                      "follow the gradient: compare with square, which needs none",
                      share * 100));
  }
  // Noise follows from the number of a row: rows that moved on draw another.
  auto scores = [&](const at::Tensor& rows, const at::Tensor& of_rows) {
    Request request;
    request.references = of_rows;
    return network.run(rows, request).logits;
  };
  auto changed = [&](auto change) { return held.defined() ? change(held) : held; };
  at::Tensor moved = scores(sample.roll(1, 0), changed([](const at::Tensor& t) { return t.roll(1, 0); })).roll(-1, 0);
  if (n == 1) {
    auto twice = [](const at::Tensor& t) { return at::cat({t, t}); };
    moved = scores(twice(sample), changed(twice)).narrow(0, 1, 1);
  }
  auto difference = (moved - seen.logits).abs().max().item<double>();
  if (network.info().random_layers > 0 && difference > kRandomness * seen.logits.abs().max().item<double>())
    warnings.emplace_back(
        "scores of one input differ from pass to pass (the graph draws random numbers): robustness may only be "
        "apparent, attacks would have to average over it");
  return warnings;
}

}  // namespace galvani
