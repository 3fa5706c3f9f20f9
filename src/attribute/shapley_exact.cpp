// Shapley values by their definition: every coalition is evaluated (DeepSensor, equation 5).
#include <ATen/ATen.h>

#include <cmath>
#include <numeric>

#include "attribute/shapley_builtin.h"
#include "galvani/base/error.h"

namespace galvani {
namespace {

constexpr std::int64_t kMostPlayers = 16;
constexpr std::int64_t kCoalitionsAtOnce = 4096;

class ExactShapley : public ShapleyEstimator {
 private:
  void run(Game& game, const Rng&, ShapleyValues& found) const override {
    std::int64_t n = game.players();
    if (n > kMostPlayers)
      bad_usage(
          "exact Shapley values need every coalition, which is too many of {} neurons; take at most {}, or another "
          "estimator",
          n, kMostPlayers);
    std::vector<std::int64_t> games(static_cast<std::size_t>(game.size()));
    std::iota(games.begin(), games.end(), 0);
    std::int64_t coalitions = std::int64_t{1} << n;
    for (std::int64_t first = 0; first < coalitions; first += kCoalitionsAtOnce) {
      std::int64_t count = std::min(kCoalitionsAtOnce, coalitions - first);
      at::Tensor masks = at::empty({count, n});
      // What the worth of each coalition counts for each player.
      at::Tensor shares = at::empty({count, n}, at::kDouble);
      for (std::int64_t row = 0; row < count; ++row) {
        std::int64_t set = first + row;
        std::int64_t size = 0;
        for (std::int64_t player = 0; player < n; ++player) size += (set >> player) & 1;
        for (std::int64_t player = 0; player < n; ++player) {
          bool in = ((set >> player) & 1) != 0;
          masks.data_ptr<float>()[row * n + player] = in ? 1 : 0;
          shares.data_ptr<double>()[row * n + player] = in ? weight(size, n) : -weight(size + 1, n);
        }
      }
      found.values += worth_of_all(game, games, masks).matmul(shares);
    }
    found.worths += coalitions;
  }

  // (s - 1)! (n - s)! / n! of coalitions of s with the player; no such coalition: 0.
  static double weight(std::int64_t size, std::int64_t n) {
    if (size < 1 || size > n) return 0;
    auto s = static_cast<double>(size), all = static_cast<double>(n);
    return std::exp(std::lgamma(s) + std::lgamma(all - s + 1) - std::lgamma(all + 1));
  }
};

}  // namespace

ShapleyEntry exact_shapley_entry() {
  return {"exact", "Shapley values from all coalitions of at most 16 neurons", {}, [](const Options&) {
            return std::unique_ptr<ShapleyEstimator>(std::make_unique<ExactShapley>());
          }};
}

}  // namespace galvani
