// Aumann and Shapley's values: what each player adds while all of them come in together, by degrees. The values of all
// players follow from one integral of derivatives. They are Shapley values where a game is multilinear in the degrees,
// and others elsewhere.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attribute/shapley_builtin.h"
#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"

namespace galvani {
namespace {

constexpr std::int64_t kFewestPoints = 4;  // of a part of the way
// Errors of the parts have either sign, so that their squares add up; three times that is seldom exceeded.
constexpr double kSafety = 3;
constexpr double kRounding = 3e-7;  // of a loss in single precision, where looking closer helps no more

// A part of the way from nobody to all in one game.
struct Stretch {
  std::int64_t game;
  double from, to;
  double worth_from = 0;
  double worth_to = 0;
  double residual = 0;  // what the players' shares leave of the difference
};

class PathShapley : public ShapleyEstimator {
 public:
  explicit PathShapley(const Options& options)
      : points_(options.integer("points")), tolerance_(options.real("tolerance")), most_(options.integer("most")) {}
  bool is_shapley() const override { return false; }
  bool needs_slopes() const override { return true; }

 private:
  void run(Game& game, const Rng&, ShapleyValues& found) const override {
    std::vector<Stretch> open;
    std::vector<double> allowed;  // squares of errors, of each game
    for (std::int64_t i = 0; i < game.size(); ++i) {
      open.push_back({i, 0, 1, found.nobody[i].item<double>()});
      allowed.push_back(std::pow(tolerance_ * scale_of(found, i) / kSafety, 2));
    }
    std::int64_t points = points_;
    at::Tensor shares = walk(game, open, radau_rule(points), found);
    // Where derivatives jump on the way, the parts around it are halved again and again.
    while (true) {
      check_interrupt();
      points = std::min(points, std::max(kFewestPoints, points / 2));
      std::vector<std::int64_t> rows = to_be_halved(open, points, allowed, found);
      if (rows.empty()) break;
      std::vector<char> halved(open.size(), 0);
      std::vector<Stretch> halves;
      for (std::int64_t row : rows) {
        const Stretch& part = open[static_cast<std::size_t>(row)];
        halved[static_cast<std::size_t>(row)] = 1;
        double middle = (part.from + part.to) / 2;
        halves.push_back({part.game, part.from, middle, part.worth_from});
        halves.push_back({part.game, middle, part.to});
      }
      settle(open, shares, halved, found);
      shares = walk(game, halves, radau_rule(points), found);
      open = std::move(halves);
    }
    settle(open, shares, std::vector<char>(open.size(), 0), found);
  }

  static double scale_of(const ShapleyValues& found, std::int64_t game) {
    return std::max(
        {1.0, std::abs(found.nobody.data_ptr<double>()[game]), std::abs(found.all.data_ptr<double>()[game])});
  }

  // All but those whose errors are small enough together; what these take of what is allowed is gone.
  std::vector<std::int64_t> to_be_halved(const std::vector<Stretch>& open, std::int64_t points,
                                         std::vector<double>& allowed, const ShapleyValues& found) const {
    std::vector<std::int64_t> rows;
    if (tolerance_ == 0) return rows;
    std::vector<std::int64_t> order(open.size());
    std::iota(order.begin(), order.end(), 0);
    auto error = [&](std::int64_t row) { return std::abs(open[static_cast<std::size_t>(row)].residual); };
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return error(a) < error(b); });
    std::vector<double> taken(allowed.size(), 0);
    std::vector<std::int64_t> left(allowed.size());
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = most_ - found.slopes.data_ptr<std::int64_t>()[i];
    for (std::int64_t row : order) {
      const Stretch& part = open[static_cast<std::size_t>(row)];
      auto game = static_cast<std::size_t>(part.game);
      double square = part.residual * part.residual;
      bool small =
          taken[game] + square <= allowed[game] / 4 || std::abs(part.residual) < kRounding * scale_of(found, part.game);
      if (small) {
        taken[game] += square;
      } else if (std::isfinite(square) && left[game] >= 2 * points) {
        left[game] -= 2 * points;
        rows.push_back(row);
      }
    }
    for (std::size_t i = 0; i < allowed.size(); ++i) allowed[i] = std::max(0.0, allowed[i] - taken[i]);
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  // Adds the shares of the parts that are not looked at again.
  static void settle(const std::vector<Stretch>& parts, const at::Tensor& shares, const std::vector<char>& again,
                     ShapleyValues& found) {
    std::vector<std::int64_t> rows, games;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (again[i] != 0) continue;
      rows.push_back(static_cast<std::int64_t>(i));
      games.push_back(parts[i].game);
    }
    if (!rows.empty())
      found.values.index_add_(0, at::tensor(games, at::kLong), shares.index_select(0, at::tensor(rows, at::kLong)));
  }

  // The players' shares of each part, [parts, players]. A half that is the second of two follows the first.
  at::Tensor walk(Game& game, std::vector<Stretch>& parts, const QuadratureRule& rule, ShapleyValues& found) const {
    auto n = static_cast<std::int64_t>(parts.size()), points = static_cast<std::int64_t>(rule.nodes.size());
    at::Tensor degrees = at::empty({n, points}, at::kDouble), weights = at::empty({n, points}, at::kDouble);
    std::vector<std::int64_t> games;
    auto* spent = found.slopes.data_ptr<std::int64_t>();
    auto* worths = found.worths.data_ptr<std::int64_t>();
    for (std::int64_t row = 0; row < n; ++row) {
      const Stretch& part = parts[static_cast<std::size_t>(row)];
      double length = part.to - part.from;
      for (std::int64_t i = 0; i < points; ++i) {
        degrees.data_ptr<double>()[row * points + i] = part.from + length * rule.nodes[static_cast<std::size_t>(i)];
        weights.data_ptr<double>()[row * points + i] = length * rule.weights[static_cast<std::size_t>(i)];
      }
      games.push_back(part.game);
      spent[part.game] += points;
      worths[part.game] += points;
    }
    Game::Diagonal seen = game.along(at::tensor(games, at::kLong), degrees, weights);
    at::Tensor ends = seen.worth.select(1, points - 1).contiguous(), sums = seen.slopes.sum(1).contiguous();
    for (std::int64_t row = 0; row < n; ++row) {
      Stretch& part = parts[static_cast<std::size_t>(row)];
      if (row > 0) {
        const Stretch& last = parts[static_cast<std::size_t>(row - 1)];
        if (last.game == part.game && last.to == part.from) part.worth_from = last.worth_to;
      }
      part.worth_to = ends.data_ptr<double>()[row];
      part.residual = part.worth_to - part.worth_from - sums.data_ptr<double>()[row];
    }
    return seen.slopes;
  }

  std::int64_t points_;
  double tolerance_;
  std::int64_t most_;
};

}  // namespace

QuadratureRule radau_rule(std::int64_t n) {
  // Golub 1973: the eigenvalues of a matrix made of the recurrence of Legendre's polynomials, whose last entry is
  // chosen so that 1 is one of them. It is on [-1, 1].
  at::Tensor matrix = at::zeros({n, n}, at::kDouble);
  auto entry = matrix.accessor<double, 2>();
  double ratio = 1;  // of the monic polynomials of degree k and k - 1 at 1
  for (std::int64_t k = 1; k < n; ++k) {
    auto square = static_cast<double>(k * k) / static_cast<double>(4 * k * k - 1);
    entry[k][k - 1] = entry[k - 1][k] = std::sqrt(square);
    if (k == n - 1) {
      entry[k][k] = 1 - square / ratio;
    } else {
      ratio = 1 - square / ratio;
    }
  }
  if (n == 1) entry[0][0] = 1;
  auto [values, vectors] = at::linalg_eigh(matrix);
  QuadratureRule rule;
  for (std::int64_t i = 0; i < n; ++i) {
    auto first = vectors[0][i].item<double>();
    rule.nodes.push_back(i == n - 1 ? 1 : (values[i].item<double>() + 1) / 2);
    rule.weights.push_back(first * first);
  }
  return rule;
}

ShapleyEntry path_shapley_entry() {
  return {
      "path",
      "Aumann-Shapley values: all neurons together, by degrees; from derivatives, so cheap, but another value",
      {{"points", std::int64_t{16}, "on the way where derivatives are taken, at first", 1.0, 256.0, {}},
       {"tolerance",
        1e-3,
        "how much may be missing of the sum, relative to it where it is above 1, before more are; 0: never",
        0.0,
        1.0,
        {}},
       {"most", std::int64_t{8192}, "points in all", 1.0, 1e6, {}}},
      [](const Options& options) { return std::unique_ptr<ShapleyEstimator>(std::make_unique<PathShapley>(options)); }};
}

}  // namespace galvani
