// Shapley values as the weights of a linear game that is nearest to the given one (Charnes et al. 1988), fitted to
// coalitions drawn at random, each with its complement (Covert and Lee 2021). What is linear in the game adds no error,
// and by the complements neither do interactions of two.
#include <ATen/ATen.h>

#include <cmath>
#include <numeric>

#include "attribute/shapley_builtin.h"
#include "galvani/base/error.h"

namespace galvani {
namespace {

constexpr std::int64_t kCoalitionsAPlayer = 4;  // at least, for the fit to have room

class RegressionShapley : public ShapleyEstimator {
 public:
  explicit RegressionShapley(const Options& options) : pairs_((options.integer("coalitions") + 1) / 2) {}

 private:
  void run(Game& game, const Rng& rng, ShapleyValues& found) const override {
    std::int64_t n = game.players();
    if (2 * pairs_ < kCoalitionsAPlayer * n)
      bad_usage("regression from {} coalitions is too little for {} neurons; give it at least {}", 2 * pairs_, n,
                kCoalitionsAPlayer * n);
    std::vector<std::int64_t> games(static_cast<std::size_t>(game.size()));
    std::iota(games.begin(), games.end(), 0);
    at::Tensor masks = draw(rng, n);
    // Of a coalition less its complement; in a linear game the sum of the players in it less that of the others.
    at::Tensor gaps = worth_of_all(game, games, masks) - worth_of_all(game, games, 1 - masks);
    at::Tensor signs = 2 * masks.to(at::kDouble) - 1;
    // By the efficiency axiom the values have a known mean; only how they differ from it is fitted.
    at::Tensor mean = (found.all - found.nobody) / static_cast<double>(n);
    at::Tensor design = signs - signs.mean(1, /*keepdim=*/true);
    at::Tensor target = gaps - mean.unsqueeze(1) * signs.sum(1).unsqueeze(0);
    auto pairs = static_cast<double>(pairs_);
    at::Tensor moments = design.t().matmul(design) / pairs + 1.0 / static_cast<double>(n);
    at::Tensor fit = at::linalg_solve(moments, design.t().contiguous()) / pairs;  // [n, pairs]
    at::Tensor differences = target.matmul(fit.t());
    found.values = mean.unsqueeze(1) + differences;
    // How far each value would move with each pair, by the pairs' own errors as they would be without it (HC3).
    at::Tensor leverage = (design * fit.t()).sum(1);
    at::Tensor errors = (target - differences.matmul(design.t())) / (1 - leverage).clamp_min(1e-6).unsqueeze(0);
    found.half_widths =
        at::sqrt((errors * errors).matmul((fit * fit).t())) * student_quantile(static_cast<double>(pairs_ - n + 1));
    found.worths += 2 * pairs_;
  }

  // One coalition a pair, [pairs, n]: of s players with probability in proportion to 1 / (s (n - s)).
  at::Tensor draw(const Rng& rng, std::int64_t n) const {
    std::vector<double> cumulated;
    double total = 0;
    for (std::int64_t size = 1; size < n; ++size) {
      total += 1.0 / static_cast<double>(size * (n - size));
      cumulated.push_back(total);
    }
    at::Tensor masks = at::zeros({pairs_, n});
    for (std::int64_t pair = 0; pair < pairs_; ++pair) {
      Rng own = rng.derive(static_cast<std::uint64_t>(pair));
      auto at = std::upper_bound(cumulated.begin(), cumulated.end() - 1, own.uniform() * total);
      for (std::int64_t player : own.sample(n, at - cumulated.begin() + 1))
        masks.data_ptr<float>()[pair * n + player] = 1;
    }
    return masks;
  }

  std::int64_t pairs_;
};

}  // namespace

ShapleyEntry regression_shapley_entry() {
  return {"regression",
          "Shapley values as the nearest linear game, fitted to coalitions and their complements, with intervals",
          {{"coalitions", std::int64_t{2048}, "that are drawn, complements included", 4.0, 1e8, {}}},
          [](const Options& options) {
            return std::unique_ptr<ShapleyEstimator>(std::make_unique<RegressionShapley>(options));
          }};
}

}  // namespace galvani
