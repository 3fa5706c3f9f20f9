#include "galvani/semantics/discrepancy.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/progress.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

constexpr std::int64_t kTogether = 64;

}  // namespace

double Discrepancy::score() const {
  return similarity.empty() ? 0 : static_cast<double>(below) / static_cast<double>(similarity.size());
}

double Discrepancy::mean() const {
  if (similarity.empty()) return 0;
  return std::accumulate(similarity.begin(), similarity.end(), 0.0) / static_cast<double>(similarity.size());
}

Discrepancy measure_discrepancy(PathFinder& finder, Network& network, const DataView& inputs, const DataView& originals,
                                double tau) {
  if (inputs.size() != originals.size())
    bad_usage("{} has {} inputs and {} has {}: originals must be as many, in the order of what was made of them",
              inputs.name, inputs.size(), originals.name, originals.size());
  check_fits(network, inputs.type().shape, inputs.name);
  check_fits(network, originals.type().shape, originals.name);
  Discrepancy result;
  result.tau = tau;
  Progress progress("paths", inputs.size(), "pairs");
  inputs.for_each_piece(kTogether, [&](const at::Tensor& some, std::int64_t first) {
    std::int64_t n = some.size(0);
    at::Tensor before = originals.fetch(first, n);
    Predictions of_original = predict(network, before);
    Predictions of_input = predict(network, some);
    std::vector<std::int64_t> rows, targets;
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t target = inputs.labels.data_ptr<std::int64_t>()[first + i];
      if (target < 0) target = originals.labels.data_ptr<std::int64_t>()[first + i];
      if (target < 0) target = of_original.labels.data_ptr<std::int64_t>()[i];
      if (target < 0) continue;  // no finite scores, so nothing to compare
      rows.push_back(i);
      targets.push_back(target);
    }
    progress.advance(n);
    if (rows.empty()) return;
    at::Tensor index = at::tensor(rows, at::kLong);
    at::Tensor target = at::tensor(targets, at::kLong);
    std::vector<DecisionPath> a =
        finder.find(before.index_select(0, index), target, of_original.logits.index_select(0, index));
    std::vector<DecisionPath> b =
        finder.find(some.index_select(0, index), target, of_input.logits.index_select(0, index));
    std::vector<std::pair<const DecisionPath*, const DecisionPath*>> pairs;
    for (std::size_t i = 0; i < a.size(); ++i) pairs.emplace_back(&a[i], &b[i]);
    std::vector<double> similar = finder.similarity(pairs);
    result.similarity.insert(result.similarity.end(), similar.begin(), similar.end());
    result.below += std::count_if(similar.begin(), similar.end(), [tau](double s) { return s < tau; });
  });
  return result;
}

}  // namespace galvani
