#include "galvani/fuzz/calibrate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/rng.h"
#include "galvani/model/evaluate.h"
#include "galvani/mutate/catalogue.h"

namespace galvani {
namespace {

// So many of each class, drawn by the seed, in the order of the data.
std::vector<std::int64_t> drawn(const DataView& data, const CalibrateOptions& options) {
  std::map<std::int64_t, std::vector<std::int64_t>> by_class;
  for (std::int64_t i = 0; i < data.size(); ++i) by_class[data.labels.data_ptr<std::int64_t>()[i]].push_back(i);
  std::vector<std::int64_t> rows;
  for (auto& [label, all] : by_class) {
    auto n = static_cast<std::int64_t>(all.size());
    std::int64_t wanted = std::llround(options.share * static_cast<double>(n));
    if (options.most > 0) wanted = std::min(wanted, options.most / static_cast<std::int64_t>(by_class.size()));
    wanted = std::clamp(wanted, std::min(options.least, n), n);
    Rng rng = Rng(options.seed).derive("calibrate").derive(static_cast<std::uint64_t>(label + 1));
    for (std::int64_t place : rng.sample(n, wanted)) rows.push_back(all[static_cast<std::size_t>(place)]);
  }
  std::sort(rows.begin(), rows.end());
  if (options.most > 0 && static_cast<std::int64_t>(rows.size()) > options.most) {
    std::vector<std::int64_t> fewer;
    for (std::int64_t i = 0; i < options.most; ++i)
      fewer.push_back(rows[static_cast<std::size_t>(i) * rows.size() / static_cast<std::size_t>(options.most)]);
    rows = std::move(fewer);
  }
  return rows;
}

// The value that so large a share of the sorted ones is not above.
double quantile_of(const std::vector<double>& sorted, double q) {
  double place = q * static_cast<double>(sorted.size() - 1);
  auto low = static_cast<std::size_t>(std::floor(place));
  auto high = std::min(low + 1, sorted.size() - 1);
  double part = place - static_cast<double>(low);
  return sorted[low] * (1 - part) + sorted[high] * part;
}

}  // namespace

Calibrated calibrate(PathFinder& finder, Network& network, const DataView& data, const CalibrateOptions& options) {
  if (data.type().kind != SampleKind::image) bad_usage("{}: the mutation rules are of images", data.name);
  std::vector<std::int64_t> rows = drawn(data, options);
  if (rows.empty()) bad_input("{}: there are no inputs", data.name);
  Calibrated result;
  result.rules = catalogue_rules(options.mutators);
  MutatorSet set(options.mutators, {{}, {}});
  std::vector<Rule> rules;
  for (const std::string& rule : result.rules) rules.push_back(set.parse(rule));
  auto count = static_cast<std::int64_t>(rules.size());
  double same = 0;
  Progress progress("calibrating", static_cast<std::int64_t>(rows.size()) * count, "mutants");
  for (std::int64_t row : rows) {
    check_interrupt();
    at::Tensor original = data.fetch({row}).contiguous();
    std::vector<at::Tensor> mutants(rules.size());
    workers().run(count, [&](std::int64_t i, int) {
      auto place = static_cast<std::size_t>(i);
      mutants[place] = set.apply(rules[place], original[0]);
    });
    at::Tensor images = at::cat({original, at::stack(mutants)});
    Predictions seen = predict(network, images);
    auto label = data.labels.data_ptr<std::int64_t>()[row];
    if (label == Labelled::kUnlabelled) label = seen.labels.data_ptr<std::int64_t>()[0];
    if (label == kNotANumber) continue;
    std::vector<DecisionPath> paths = finder.find(images, at::full({count + 1}, label, at::kLong), seen.logits);
    std::vector<std::pair<const DecisionPath*, const DecisionPath*>> pairs;
    std::string text = finder.text(paths[0]);
    for (std::size_t i = 1; i < paths.size(); ++i) {
      pairs.emplace_back(&paths[0], &paths[i]);
      result.wrong.push_back(seen.labels.data_ptr<std::int64_t>()[i] != label ? 1 : 0);
      same += finder.text(paths[i]) == text ? 1 : 0;
    }
    std::vector<double> similar = finder.similarity(pairs);
    result.similarity.insert(result.similarity.end(), similar.begin(), similar.end());
    ++result.record.inputs;
    progress.advance(count);
  }
  if (result.similarity.empty()) bad_input("{}: gives no finite scores", network.info().path);
  std::vector<double> sorted = result.similarity;
  std::sort(sorted.begin(), sorted.end());
  auto n = static_cast<double>(sorted.size());
  Calibration& record = result.record;
  record.paths = finder.spec();
  record.data = data.name;
  record.generator = options.mutators;
  record.mutants = static_cast<std::int64_t>(sorted.size());
  record.quantile = options.quantile;
  record.tau = quantile_of(sorted, options.quantile);
  for (int i = 0; i < 3; ++i) record.quartiles[i] = quantile_of(sorted, 0.25 * (i + 1));
  auto below = std::lower_bound(sorted.begin(), sorted.end(), record.tau) - sorted.begin();
  record.below = static_cast<double>(below) / n;
  record.same_words = same / n;
  return result;
}

}  // namespace galvani
