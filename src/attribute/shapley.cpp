#include "galvani/attribute/shapley.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "attribute/shapley_builtin.h"
#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"

namespace galvani {
namespace {

constexpr std::int64_t kMaskValues = std::int64_t{1} << 23;  // that exist at once

}  // namespace

at::Tensor ShapleyValues::residual() const {
  return all - nobody - values.sum(1);
}

ShapleyValues ShapleyEstimator::estimate(Game& game, const Rng& rng) const {
  std::int64_t n = game.size(), players = game.players();
  if (n == 0 || players == 0) bad_usage("there is no game without players, and none to play");
  ShapleyValues found;
  at::Tensor games = at::arange(n, at::kLong);
  found.nobody = game.worth(games, at::zeros({n, players}));
  found.all = game.worth(games, at::ones({n, players}));
  found.values = at::zeros({n, players}, at::kDouble);
  found.worths = at::full({n}, 2, at::kLong);
  found.slopes = at::zeros({n}, at::kLong);
  if (players == 1) {
    found.values.copy_((found.all - found.nobody).unsqueeze(1));
  } else {
    run(game, rng, found);
  }
  return found;
}

at::Tensor worth_of_all(Game& game, const std::vector<std::int64_t>& games, const at::Tensor& masks) {
  auto n = static_cast<std::int64_t>(games.size());
  std::int64_t k = masks.size(0), players = masks.size(1);
  at::Tensor result = at::empty({n, k}, at::kDouble);
  std::int64_t at_once = std::max<std::int64_t>(1, kMaskValues / players);
  std::int64_t columns = std::min(k, at_once), rows = std::max<std::int64_t>(1, at_once / columns);
  at::Tensor which = at::tensor(games, at::kLong);
  for (std::int64_t first = 0; first < n; first += rows) {
    at::Tensor part = which.narrow(0, first, std::min(rows, n - first));
    for (std::int64_t from = 0; from < k; from += columns) {
      check_interrupt();
      at::Tensor some = masks.narrow(0, from, std::min(columns, k - from));
      at::Tensor worth = game.worth(part.repeat_interleave(some.size(0)), some.repeat({part.size(0), 1}));
      result.narrow(0, first, part.size(0)).narrow(1, from, some.size(0)).copy_(worth.view({part.size(0), -1}));
    }
  }
  return result;
}

double student_quantile(double freedom) {
  // Cornish and Fisher's expansion around the normal quantile; off by less than one in a hundred from five degrees on.
  constexpr double kNormal = 1.959963984540054;
  double z2 = kNormal * kNormal, v = freedom;
  return kNormal * (1 + (z2 + 1) / (4 * v) + (5 * z2 * z2 + 16 * z2 + 3) / (96 * v * v) +
                    (3 * z2 * z2 * z2 + 19 * z2 * z2 + 17 * z2 - 15) / (384 * v * v * v));
}

const ShapleyRegistry& shapley_estimators() {
  static const ShapleyRegistry registry(
      "estimator of Shapley values",
      {exact_shapley_entry(), permutation_shapley_entry(), regression_shapley_entry(), path_shapley_entry()});
  return registry;
}

std::unique_ptr<ShapleyEstimator> make_shapley(const Spec& spec) {
  Options options = shapley_estimators().options(spec);
  std::unique_ptr<ShapleyEstimator> estimator = shapley_estimators().create(spec);
  estimator->id_ = spec.name;
  estimator->spec_ = options.str();
  return estimator;
}

}  // namespace galvani
