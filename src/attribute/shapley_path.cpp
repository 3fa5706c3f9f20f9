// Aumann and Shapley's values: what each player adds while all of them come in together, by degrees. The values of all
// players follow from one integral of derivatives. They are Shapley values where a game is multilinear in the degrees,
// and others elsewhere.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "attribute/shapley_builtin.h"
#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"

namespace galvani {
namespace {

constexpr std::int64_t kFewestPoints = 4;  // of a part of the way

// A part of the way from nobody to all in one game.
struct Stretch {
  std::int64_t game;
  double from, to;
  double worth_from = 0;  // what is known of the beginning
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
    const auto* nobody = found.nobody.data_ptr<double>();
    const auto* all = found.all.data_ptr<double>();
    std::vector<Stretch> way;
    for (std::int64_t i = 0; i < game.size(); ++i) way.push_back({i, 0, 1, nobody[i]});
    QuadratureRule rule = radau_rule(points_), finer = radau_rule(std::max(kFewestPoints, points_ / 2));
    at::Tensor shares = walk(game, way, rule, found);
    found.values += shares;
    if (tolerance_ == 0) return;
    // Where derivatives jump, on the way, the parts around it are halved again and again.
    auto* spent = found.slopes.data_ptr<std::int64_t>();
    auto left = [&](std::int64_t i) { return most_ - spent[i]; };
    while (true) {
      check_interrupt();
      std::vector<Stretch> halves;
      std::vector<std::int64_t> halved;  // rows of `shares` that are replaced
      std::vector<std::int64_t> asked(static_cast<std::size_t>(game.size()), 0);
      for (std::size_t row = 0; row < way.size(); ++row) {
        const Stretch& part = way[row];
        double scale = std::max({1.0, std::abs(nobody[part.game]), std::abs(all[part.game])});
        std::int64_t& planned = asked[static_cast<std::size_t>(part.game)];
        auto cost = 2 * static_cast<std::int64_t>(finer.nodes.size());
        bool good = std::abs(part.residual) <= tolerance_ * scale * std::sqrt(part.to - part.from) / 2;
        if (good || !std::isfinite(part.residual) || planned + cost > left(part.game)) continue;
        planned += cost;
        halved.push_back(static_cast<std::int64_t>(row));
        double middle = (part.from + part.to) / 2;
        halves.push_back({part.game, part.from, middle, part.worth_from});
        halves.push_back({part.game, middle, part.to});
      }
      if (halves.empty()) return;
      at::Tensor index = at::tensor(halved, at::kLong);
      std::vector<std::int64_t> games;
      for (std::int64_t row : halved) games.push_back(way[static_cast<std::size_t>(row)].game);
      found.values.index_add_(0, at::tensor(games, at::kLong), shares.index_select(0, index), -1);
      at::Tensor parts = walk(game, halves, finer, found);
      std::vector<std::int64_t> of_halves;
      for (const Stretch& half : halves) of_halves.push_back(half.game);
      found.values.index_add_(0, at::tensor(of_halves, at::kLong), parts);
      way = std::move(halves);
      shares = parts;
    }
  }

  // The players' shares of each part, [parts, players]. A part that begins where the one before it ends is told so by
  // its place in the list.
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
      if (row > 0 && part.from > 0 && parts[static_cast<std::size_t>(row - 1)].game == part.game &&
          parts[static_cast<std::size_t>(row - 1)].to == part.from)
        part.worth_from = parts[static_cast<std::size_t>(row - 1)].worth_to;
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
    double first = vectors[0][i].item<double>();
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
        1e-5,
        "how much may be missing of the sum, relative to it where it is above 1, before more are; 0: never",
        0.0,
        1.0,
        {}},
       {"most", std::int64_t{1024}, "points in all", 1.0, 1e6, {}}},
      [](const Options& options) { return std::unique_ptr<ShapleyEstimator>(std::make_unique<PathShapley>(options)); }};
}

}  // namespace galvani
