// Shapley values from orders drawn at random, each with its reverse: what a player adds to those before it. A pair is
// exact up to interactions of two.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attribute/shapley_builtin.h"
#include "galvani/base/error.h"

namespace galvani {
namespace {

constexpr std::int64_t kFewestPairs = 8;  // before anything is said about the error
constexpr std::int64_t kPairsAtOnce = 8;

class PermutationShapley : public ShapleyEstimator {
 public:
  explicit PermutationShapley(const Options& options)
      : pairs_(options.integer("pairs")), error_(options.real("error")) {}

 private:
  void run(Game& game, const Rng& rng, ShapleyValues& found) const override {
    std::int64_t n = game.players();
    at::Tensor squares = at::zeros_like(found.values);  // of differences from the mean
    found.half_widths = at::zeros_like(found.values);
    std::vector<std::int64_t> open(static_cast<std::size_t>(game.size()));
    std::iota(open.begin(), open.end(), 0);
    for (std::int64_t done = 0; done < pairs_ && !open.empty();) {
      std::int64_t count = std::min(kPairsAtOnce, pairs_ - done);
      at::Tensor rows = at::tensor(open, at::kLong);
      at::Tensor mean = found.values.index_select(0, rows), spread = squares.index_select(0, rows);
      std::vector<std::vector<std::int64_t>> orders;
      at::Tensor masks = prefixes(rng, done, count, n, orders);
      at::Tensor worth = worth_of_all(game, open, masks).view({-1, count, 2, n - 1});
      for (std::int64_t pair = 0; pair < count; ++pair) {
        at::Tensor added = marginals(worth.select(1, pair), orders[static_cast<std::size_t>(pair)],
                                     found.nobody.index_select(0, rows), found.all.index_select(0, rows));
        at::Tensor step = added - mean;
        mean += step / static_cast<double>(done + pair + 1);
        spread += step * (added - mean);
      }
      done += count;
      at::Tensor half = done < 2 ? at::full_like(mean, std::numeric_limits<double>::infinity())
                                 : at::sqrt(spread / static_cast<double>(done * (done - 1))) *
                                       student_quantile(static_cast<double>(done - 1));
      found.values.index_copy_(0, rows, mean);
      squares.index_copy_(0, rows, spread);
      found.half_widths.index_copy_(0, rows, half);
      found.worths.index_add_(0, rows, at::full({rows.size(0)}, count * 2 * (n - 1), at::kLong));
      if (error_ == 0 || done < kFewestPairs) continue;
      at::Tensor worst = half.amax({1}).contiguous();
      std::vector<std::int64_t> left;
      for (std::size_t i = 0; i < open.size(); ++i) {
        if (!(worst.data_ptr<double>()[i] <= error_)) left.push_back(open[i]);
      }
      open = std::move(left);
    }
  }

  // The coalitions of 1 to n - 1 players that come first, in an order and in its reverse: [pairs * 2 * (n - 1), n].
  static at::Tensor prefixes(const Rng& rng, std::int64_t first, std::int64_t count, std::int64_t n,
                             std::vector<std::vector<std::int64_t>>& orders) {
    at::Tensor masks = at::zeros({count, 2, n - 1, n});
    for (std::int64_t pair = 0; pair < count; ++pair) {
      std::vector<std::int64_t> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      rng.derive(static_cast<std::uint64_t>(first + pair)).shuffle(order);
      for (int way = 0; way < 2; ++way) {
        float* mask = masks.data_ptr<float>() + (pair * 2 + way) * (n - 1) * n;
        for (std::int64_t size = 1; size < n; ++size, mask += n) {
          for (std::int64_t place = 0; place < size; ++place)
            mask[order[static_cast<std::size_t>(way == 0 ? place : n - 1 - place)]] = 1;
        }
      }
      orders.push_back(std::move(order));
    }
    return masks.view({-1, n});
  }

  // worth [G, 2, n - 1] of those coalitions → what each player added, the mean of both ways: [G, n].
  static at::Tensor marginals(const at::Tensor& worth, const std::vector<std::int64_t>& order, const at::Tensor& nobody,
                              const at::Tensor& all) {
    at::Tensor ends[2] = {nobody.unsqueeze(1), all.unsqueeze(1)};
    at::Tensor result = at::zeros({worth.size(0), static_cast<std::int64_t>(order.size())}, at::kDouble);
    std::vector<std::int64_t> reverse(order.rbegin(), order.rend());
    for (int way = 0; way < 2; ++way) {
      at::Tensor steps = at::cat({ends[0], worth.select(1, way), ends[1]}, 1);
      at::Tensor added = steps.slice(1, 1) - steps.slice(1, 0, -1);
      result.index_add_(1, at::tensor(way == 0 ? order : reverse, at::kLong), added / 2);
    }
    return result;
  }

  std::int64_t pairs_;
  double error_;
};

}  // namespace

ShapleyEntry permutation_shapley_entry() {
  return {"permutation",
          "Shapley values from orders drawn at random, each with its reverse, with intervals",
          {{"pairs", std::int64_t{32}, "orders, each with its reverse, at most", 2.0, 1e6, {}},
           {"error", 0.0, "of the widest half of an interval at which it stops; 0: never", 0.0, 1e9, {}}},
          [](const Options& options) {
            return std::unique_ptr<ShapleyEstimator>(std::make_unique<PermutationShapley>(options));
          }};
}

}  // namespace galvani
