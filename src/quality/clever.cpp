#include "galvani/quality/clever.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/model/evaluate.h"
#include "quality/ball.h"

namespace galvani {
namespace {

constexpr std::int64_t kSampleBytes = std::int64_t{64} << 20;  // that exist at once

// Lengths of gradients in the norm that is dual to the ball's: [N, K, ...] → [N, K].
at::Tensor dual_lengths(const at::Tensor& gradients, CleverNorm norm) {
  at::Tensor flat = gradients.flatten(2);
  switch (norm) {
    case CleverNorm::l1:
      return flat.abs().amax(2);
    case CleverNorm::l2:
      return flat.norm(2, {2});
    case CleverNorm::linf:
      return flat.abs().sum(2);
  }
  return {};
}

// Samples [first, first + count) of the ball around an input, on the file's scale.
at::Tensor samples_around(const at::Tensor& input, const SampleType& type, const CleverSettings& settings,
                          const Rng& rng, std::int64_t first, std::int64_t count) {
  at::Tensor samples = at::empty({count, input.numel()});
  auto radius = static_cast<float>(settings.radius * static_cast<double>(type.full()));
  auto low = static_cast<float>(type.low()), high = static_cast<float>(type.high());
  const auto* centre = input.data_ptr<float>();
  auto n = static_cast<std::size_t>(input.numel());
  workers().run(count, [&](std::int64_t i, int) {
    float* point = samples.data_ptr<float>() + i * static_cast<std::int64_t>(n);
    unit_ball_point(settings.norm, rng.derive(static_cast<std::uint64_t>(first + i)), point, n);
    for (std::size_t v = 0; v < n; ++v) {
      point[v] = centre[v] + radius * point[v];
      if (settings.clip) point[v] = std::clamp(point[v], low, high);
    }
  });
  std::vector<std::int64_t> shape = type.batch(count);
  return samples.view(shape);
}

SampleType type_of(const at::Tensor& input) {
  if (input.dim() == 3) return SampleType::image(input.size(0), input.size(1), input.size(2));
  return SampleType::audio(input.size(0), input.size(1), 0);
}

// The classes to look at, by number: those that score best besides the verdict.
std::vector<std::int64_t> targets_of(const at::Tensor& logits, std::int64_t verdict, std::int64_t most) {
  std::vector<std::int64_t> classes;
  for (std::int64_t c = 0; c < logits.size(0); ++c) {
    if (c != verdict) classes.push_back(c);
  }
  const auto* scores = logits.data_ptr<float>();
  std::stable_sort(classes.begin(), classes.end(),
                   [&](std::int64_t a, std::int64_t b) { return scores[a] > scores[b]; });
  if (most > 0 && most < static_cast<std::int64_t>(classes.size())) classes.resize(static_cast<std::size_t>(most));
  std::sort(classes.begin(), classes.end());
  return classes;
}

// The largest slope of every batch for every target: [batches, K].
at::Tensor largest_slopes(Network& network, const at::Tensor& input, std::int64_t verdict,
                          const std::vector<std::int64_t>& targets, const CleverSettings& settings, const Rng& rng) {
  SampleType type = type_of(input);
  at::Tensor centre = input.to(at::kFloat).contiguous();
  at::Tensor columns = at::tensor(targets, at::kLong);
  Request request;
  request.objectives = static_cast<std::int64_t>(targets.size());
  request.input_gradient = true;
  request.objective = [&](const Pass& pass) {
    return pass.logits.narrow(1, verdict, 1) - pass.logits.index_select(1, columns);
  };
  // Gradients stay in the worker; a row of numbers comes out.
  request.reducer = [&](const Outputs& part, std::int64_t) {
    return std::vector<at::Tensor>{dual_lengths(part.input_gradient, settings.norm)};
  };
  std::int64_t all = settings.batches * settings.samples;
  std::int64_t chunk =
      std::max<std::int64_t>(1, kSampleBytes / static_cast<std::int64_t>(sizeof(float)) / centre.numel());
  std::vector<at::Tensor> lengths;
  for (std::int64_t first = 0; first < all; first += chunk) {
    check_interrupt();
    at::Tensor samples = samples_around(centre, type, settings, rng, first, std::min(chunk, all - first));
    lengths.push_back(network.run(samples, request).reduced[0]);
  }
  // Per unit of the file → per full scale.
  at::Tensor joined = at::cat(lengths) * static_cast<double>(type.full());
  return joined.view({settings.batches, settings.samples, request.objectives}).amax(1);
}

double length_of(const at::Tensor& change, CleverNorm norm) {
  switch (norm) {
    case CleverNorm::l1:
      return change.abs().sum().item<double>();
    case CleverNorm::l2:
      return change.norm().item<double>();
    case CleverNorm::linf:
      return change.abs().max().item<double>();
  }
  return 0;
}

// The smallest change among tests that the model gets wrong.
double smallest_change(Network& network, const TestRows& rows, CleverNorm norm, double full) {
  double smallest = std::numeric_limits<double>::quiet_NaN();
  at::Tensor wrong = predict(network, rows.tests).labels.ne(rows.labels);
  for (std::int64_t i = 0; i < rows.labels.size(0); ++i) {
    if (!wrong[i].item<bool>()) continue;
    double length = length_of((rows.tests[i].to(at::kDouble) - rows.originals[i].to(at::kDouble)) / full, norm);
    if (!(smallest <= length)) smallest = length;
  }
  return smallest;
}

// One input after the other, in an order that is drawn, until there are enough that the model gets right.
struct CleverCandidate {
  at::Tensor input;  // [...shape]
  std::int64_t row = 0;
  std::int64_t label = Labelled::kUnlabelled;
  double smallest_found = std::numeric_limits<double>::quiet_NaN();
};
CleverResult measure_candidates(Network& network, std::int64_t candidates, std::int64_t most,
                                const CleverSettings& settings, std::uint64_t seed,
                                const std::function<CleverCandidate(std::int64_t)>& candidate) {
  auto start = std::chrono::steady_clock::now();
  CleverResult result;
  Rng rng = Rng(seed).derive("clever");
  std::vector<std::int64_t> order = rng.derive("inputs").sample(candidates, candidates);
  Progress progress("sampling slopes", std::min(most, candidates), "inputs");
  for (std::int64_t index : order) {
    if (static_cast<std::int64_t>(result.inputs.size()) == most) break;
    check_interrupt();
    CleverCandidate next = candidate(index);
    auto verdict = predict(network, next.input.unsqueeze(0)).labels.item<std::int64_t>();
    if (verdict == kNotANumber || (next.label != Labelled::kUnlabelled && verdict != next.label)) {
      ++result.passed_over;
      continue;
    }
    CleverScore score = clever(network, next.input, settings, rng.derive(static_cast<std::uint64_t>(next.row)));
    result.inputs.push_back({next.row, next.label, std::move(score), next.smallest_found});
    progress.advance();
  }
  progress.finish();
  std::vector<double> scores;
  for (const CleverInput& input : result.inputs) scores.push_back(input.score.score());
  if (!scores.empty()) result.interval = bootstrap_mean(scores, {}, rng.derive("bootstrap"));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::vector<double> scores_of(const CleverResult& result) {
  std::vector<double> scores;
  for (const CleverInput& input : result.inputs) scores.push_back(input.score.score());
  return scores;
}

}  // namespace

const CleverTarget& CleverScore::nearest() const {
  return *std::min_element(targets.begin(), targets.end(),
                           [](const CleverTarget& a, const CleverTarget& b) { return a.score < b.score; });
}

double CleverScore::score() const {
  return nearest().score;
}

CleverScore clever(Network& network, const at::Tensor& input, const CleverSettings& settings, const Rng& rng) {
  if (settings.batches < 1 || settings.samples < 1 || !(settings.radius > 0))
    bad_usage("CLEVER needs a batch, a sample and a radius above 0");
  at::Tensor logits = predict(network, input.unsqueeze(0)).logits[0].contiguous();
  CleverScore result;
  result.verdict = verdicts(logits.unsqueeze(0)).item<std::int64_t>();
  if (result.verdict == kNotANumber) bad_input("{}: its scores of an input are not finite", network.info().path);
  std::vector<std::int64_t> targets = targets_of(logits, result.verdict, settings.targets);
  if (targets.empty()) bad_input("{}: has one class only, so nothing is near another", network.info().path);
  at::Tensor slopes = largest_slopes(network, input, result.verdict, targets, settings, rng).to(at::kDouble);
  if (!slopes.isfinite().all().item<bool>())
    bad_input("{}: its gradients are not finite, which CLEVER needs", network.info().path);
  if (slopes.max().item<double>() == 0)
    bad_input("{}: has no gradients, which CLEVER needs: its operators are of integers, or its scores constant",
              network.info().path);
  slopes = slopes.t().contiguous();
  for (std::size_t k = 0; k < targets.size(); ++k) {
    const auto* first = slopes.data_ptr<double>() + static_cast<std::int64_t>(k) * settings.batches;
    std::vector<double> maxima(first, first + settings.batches);
    CleverTarget target;
    target.target = targets[k];
    target.margin = logits[result.verdict].item<double>() - logits[target.target].item<double>();
    target.largest = *std::max_element(maxima.begin(), maxima.end());
    target.fit = fit_extremes(maxima);
    // No slope at all: nothing inside the ball changes the margin.
    target.score = target.fit.bound > 0 ? std::min(target.margin / target.fit.bound, settings.radius) : settings.radius;
    result.targets.push_back(target);
  }
  return result;
}

CleverResult measure_clever(Network& network, const DataView& data, std::int64_t most, const CleverSettings& settings,
                            std::uint64_t seed) {
  check_fits(network, data.type().shape, data.name);
  return measure_candidates(network, data.size(), most, settings, seed, [&](std::int64_t row) {
    return CleverCandidate{data.fetch(row, 1)[0], row, data.labels[row].item<std::int64_t>()};
  });
}

CleverResult measure_clever(Network& network, const TestSet& tests, std::int64_t most, const CleverSettings& settings,
                            std::uint64_t seed) {
  check_fits(network, tests.type().shape, tests.name());
  std::map<std::int64_t, std::vector<std::int64_t>> rows;  // of each original
  for (std::int64_t i = 0; i < tests.size(); ++i) rows[tests.groups()[static_cast<std::size_t>(i)]].push_back(i);
  std::vector<std::int64_t> originals;
  for (const auto& [group, unused] : rows) originals.push_back(group);
  constexpr std::size_t kChunk = 256;
  return measure_candidates(
      network, static_cast<std::int64_t>(originals.size()), most, settings, seed, [&](std::int64_t index) {
        CleverCandidate next;
        next.row = originals[static_cast<std::size_t>(index)];
        const std::vector<std::int64_t>& own = rows[next.row];
        for (std::size_t first = 0; first < own.size(); first += kChunk) {
          std::vector<std::int64_t> some(
              own.begin() + static_cast<std::ptrdiff_t>(first),
              own.begin() + static_cast<std::ptrdiff_t>(std::min(own.size(), first + kChunk)));
          TestRows fetched = tests.fetch(some);
          next.input = fetched.originals[0];
          next.label = fetched.labels[0].item<std::int64_t>();
          double found = smallest_change(network, fetched, settings.norm, static_cast<double>(tests.type().full()));
          if (!(next.smallest_found <= found)) next.smallest_found = found;
        }
        return next;
      });
}

double CleverResult::mean() const {
  return inputs.empty() ? std::numeric_limits<double>::quiet_NaN() : mean_of(scores_of(*this));
}

double CleverResult::least() const {
  std::vector<double> scores = scores_of(*this);
  return scores.empty() ? std::numeric_limits<double>::quiet_NaN() : *std::min_element(scores.begin(), scores.end());
}

double CleverResult::median() const {
  std::vector<double> scores = scores_of(*this);
  if (scores.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(scores.begin(), scores.end());
  std::size_t half = scores.size() / 2;
  return scores.size() % 2 == 1 ? scores[half] : (scores[half - 1] + scores[half]) / 2;
}

std::int64_t CleverResult::rejected() const {
  std::int64_t count = 0;
  for (const CleverInput& input : inputs) {
    for (const CleverTarget& target : input.score.targets) count += target.fit.fitted ? 0 : 1;
  }
  return count;
}

std::int64_t CleverResult::compared() const {
  return std::count_if(inputs.begin(), inputs.end(),
                       [](const CleverInput& i) { return !std::isnan(i.smallest_found); });
}

std::int64_t CleverResult::exceeding() const {
  return std::count_if(inputs.begin(), inputs.end(),
                       [](const CleverInput& i) { return i.score.score() > i.smallest_found; });
}

Figures figures_of(const CleverResult& result) {
  return {{"clever", result.mean()},
          {"clever-least", result.least()},
          {"clever-median", result.median()},
          {"clever-exceeding", static_cast<double>(result.exceeding())}};
}

Json as_json(const CleverResult& result) {
  auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json inputs = Json::array();
  for (const CleverInput& input : result.inputs) {
    Json targets = Json::array();
    for (const CleverTarget& t : input.score.targets)
      targets.push_back({{"class", t.target},
                         {"margin", t.margin},
                         {"largest_slope", t.largest},
                         {"bound", t.fit.bound},
                         {"fitted", t.fit.fitted},
                         {"fit_p", t.fit.p},
                         {"fit_distance", t.fit.distance},
                         {"shape", t.fit.fitted ? Json(t.fit.distribution.shape) : Json()},
                         {"score", t.score}});
    inputs.push_back({{"input", input.row},
                      {"label", input.label},
                      {"verdict", input.score.verdict},
                      {"score", input.score.score()},
                      {"smallest_found", number(input.smallest_found)},
                      {"targets", targets}});
  }
  return {{"mean", number(result.mean())},
          {"interval", result.inputs.empty() ? Json() : Json{result.interval.low, result.interval.high}},
          {"least", number(result.least())},
          {"median", number(result.median())},
          {"passed_over", result.passed_over},
          {"rejected_fits", result.rejected()},
          {"compared", result.compared()},
          {"exceeding", result.exceeding()},
          {"seconds", result.seconds},
          {"inputs", inputs}};
}

}  // namespace galvani
