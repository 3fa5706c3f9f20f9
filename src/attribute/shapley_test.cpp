#include "galvani/attribute/shapley.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <cmath>
#include <csignal>
#include <functional>

#include "attribute/shapley_builtin.h"
#include "attribute/testing.h"
#include "galvani/attribute/excitable.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"

namespace galvani {
namespace {

// Games given by a formula of the degrees, whose derivatives are taken by central differences.
class FormulaGame : public Game {
 public:
  using Formula = std::function<double(std::int64_t game, const std::vector<double>& degrees)>;
  FormulaGame(std::int64_t size, std::int64_t players, Formula formula)
      : size_(size), players_(players), formula_(std::move(formula)) {}
  std::int64_t size() const override { return size_; }
  std::int64_t players() const override { return players_; }
  at::Tensor worth(const at::Tensor& games, const at::Tensor& masks) override {
    at::Tensor result = at::empty({games.size(0)}, at::kDouble);
    for (std::int64_t row = 0; row < games.size(0); ++row) {
      std::vector<double> degrees;
      for (std::int64_t i = 0; i < players_; ++i) degrees.push_back(masks[row][i].item<double>());
      result[row] = formula_(games[row].item<std::int64_t>(), degrees);
    }
    return result;
  }
  Diagonal along(const at::Tensor& games, const at::Tensor& degrees, const at::Tensor& weights) override {
    constexpr double kStep = 1e-5;
    Diagonal result{at::empty_like(degrees), at::zeros({games.size(0), players_}, at::kDouble)};
    for (std::int64_t row = 0; row < games.size(0); ++row) {
      for (std::int64_t q = 0; q < degrees.size(1); ++q) {
        std::vector<double> at(static_cast<std::size_t>(players_), degrees[row][q].item<double>());
        auto game = games[row].item<std::int64_t>();
        result.worth[row][q] = formula_(game, at);
        for (std::size_t i = 0; i < at.size(); ++i) {
          std::vector<double> up = at, down = at;
          up[i] += kStep;
          down[i] -= kStep;
          double slope = (formula_(game, up) - formula_(game, down)) / (2 * kStep);
          result.slopes[row][static_cast<std::int64_t>(i)] += slope * weights[row][q].item<double>();
        }
      }
    }
    return result;
  }

 private:
  std::int64_t size_, players_;
  Formula formula_;
};

// Sums of products of degrees, with coefficients drawn at random for every set of up to `order` players.
struct Multilinear {
  std::vector<std::pair<std::uint32_t, double>> terms;

  Multilinear(std::int64_t players, std::size_t order, std::uint64_t seed) {
    Rng rng(seed);
    for (std::uint32_t set = 0; set < (1U << players); ++set) {
      if (std::bitset<32>(set).count() <= order) terms.emplace_back(set, rng.uniform(-1, 1));
    }
  }
  double operator()(const std::vector<double>& degrees) const {
    double sum = 0;
    for (const auto& [set, coefficient] : terms) {
      double product = coefficient;
      for (std::size_t i = 0; i < degrees.size(); ++i) product *= ((set >> i) & 1U) != 0 ? degrees[i] : 1;
      sum += product;
    }
    return sum;
  }
  // Every term is shared evenly by the players in it.
  std::vector<double> shapley(std::size_t players) const {
    std::vector<double> values(players, 0);
    for (const auto& [set, coefficient] : terms) {
      for (std::size_t i = 0; i < players; ++i) {
        if (((set >> i) & 1U) != 0) values[i] += coefficient / static_cast<double>(std::bitset<32>(set).count());
      }
    }
    return values;
  }
};

FormulaGame game_of(const Multilinear& formula, std::int64_t players) {
  return {1, players, [&formula](std::int64_t, const std::vector<double>& at) { return formula(at); }};
}

ShapleyValues estimated(const std::string& spec, Game& game, std::uint64_t seed = 1) {
  return make_shapley(Spec::parse(spec))->estimate(game, Rng(seed));
}

double furthest(const at::Tensor& found, const std::vector<double>& wanted) {
  return (found - at::tensor(wanted, at::kDouble)).abs().max().item<double>();
}

TEST(Shapley, GlovesByHand) {
  // One left glove, two right ones: a pair is worth 1. Shapley 1953's values are 2/3, 1/6, 1/6.
  FormulaGame gloves(
      1, 3, [](std::int64_t, const std::vector<double>& in) { return in[0] * (1 - (1 - in[1]) * (1 - in[2])); });
  const std::vector<double> wanted = {2.0 / 3, 1.0 / 6, 1.0 / 6};
  EXPECT_LT(furthest(estimated("exact", gloves).values[0], wanted), 1e-12);
  EXPECT_LT(furthest(estimated("path", gloves).values[0], wanted), 1e-8);
  EXPECT_EQ(estimated("exact", gloves).worths[0].item<std::int64_t>(), 2 + 8);
}

TEST(Shapley, EveryTermOfAMultilinearGameIsSharedEvenly) {
  Multilinear formula(6, 6, 3);
  FormulaGame game = game_of(formula, 6);
  EXPECT_LT(furthest(estimated("exact", game).values[0], formula.shapley(6)), 1e-10);
  EXPECT_LT(furthest(estimated("path:tolerance=1e-5", game).values[0], formula.shapley(6)), 1e-6);
}

// One order and its reverse, one coalition and its complement: interactions of two players cancel out.
TEST(Shapley, DrawingIsExactUpToInteractionsOfTwo) {
  Multilinear formula(7, 2, 5);
  FormulaGame game = game_of(formula, 7);
  for (const char* spec : {"permutation:pairs=2", "regression:coalitions=64"}) {
    ShapleyValues found = estimated(spec, game);
    EXPECT_LT(furthest(found.values[0], formula.shapley(7)), 1e-9) << spec;
    EXPECT_LT(found.half_widths.max().item<double>(), 1e-6) << spec;
  }
}

// Of many intervals that are to hold the value 95 times of 100, not many more and not many fewer must do so.
TEST(Shapley, IntervalsHoldTheValue) {
  constexpr std::int64_t kPlayers = 8;
  for (const char* spec : {"permutation:pairs=12", "regression:coalitions=96"}) {
    int held = 0, all = 0;
    for (std::uint64_t round = 0; round < 40; ++round) {
      Multilinear formula(kPlayers, 5, 100 + round);
      FormulaGame game = game_of(formula, kPlayers);
      ShapleyValues found = estimated(spec, game, round);
      at::Tensor off = (found.values[0] - at::tensor(formula.shapley(kPlayers), at::kDouble)).abs();
      held += off.le(found.half_widths[0]).sum().item<int>();
      all += kPlayers;
      EXPECT_LT(std::abs(found.residual()[0].item<double>()), 1e-9) << spec;
    }
    double share = static_cast<double>(held) / all;
    EXPECT_GT(share, 0.91) << spec;
    EXPECT_LT(share, 0.99) << spec;
  }
}

TEST(Shapley, PermutationStopsAtTheErrorThatIsWanted) {
  Multilinear easy(6, 2, 1), hard(6, 6, 2);
  FormulaGame game(2, 6,
                   [&](std::int64_t which, const std::vector<double>& at) { return which == 0 ? easy(at) : hard(at); });
  ShapleyValues found = estimated("permutation:pairs=4000,error=0.05", game);
  EXPECT_LE(found.half_widths.max().item<double>(), 0.05);
  EXPECT_EQ(found.worths[0].item<std::int64_t>(), 2 + 8 * 2 * 5);
  EXPECT_GT(found.worths[1].item<std::int64_t>(), 4 * found.worths[0].item<std::int64_t>());
  EXPECT_LT(found.worths[1].item<std::int64_t>(), 2 + 4000 * 2 * 5);
}

// Along the diagonal the square of a degree counts in full; coalitions see 0 and 1 alone.
TEST(Shapley, PathIsAnotherValueWhereDegreesAreNotLinear) {
  FormulaGame game(1, 2, [](std::int64_t, const std::vector<double>& in) { return in[0] * in[0] * in[1]; });
  EXPECT_LT(furthest(estimated("exact", game).values[0], {0.5, 0.5}), 1e-12);
  EXPECT_LT(furthest(estimated("path", game).values[0], {2.0 / 3, 1.0 / 3}), 1e-8);
  EXPECT_FALSE(make_shapley(Spec::parse("path"))->is_shapley());
}

TEST(Shapley, PathLooksCloserWhereDerivativesJump) {
  FormulaGame game(2, 2, [](std::int64_t which, const std::vector<double>& in) {
    double sum = in[0] + 2 * in[1];
    return which == 0 ? sum : 10 * std::max(0.0, sum - 1.1) + sum;
  });
  ShapleyValues rough = estimated("path:tolerance=0", game), fine = estimated("path:tolerance=1e-5", game);
  EXPECT_EQ(rough.slopes[0].item<std::int64_t>(), 16);
  EXPECT_EQ(fine.slopes[0].item<std::int64_t>(), 16);
  EXPECT_GT(std::abs(rough.residual()[1].item<double>()), 1e-3);
  EXPECT_LT(std::abs(fine.residual()[1].item<double>()), 2e-4);
  EXPECT_GT(fine.slopes[1].item<std::int64_t>(), 32);
  // max(0, 3 t - 1.1) by degree: 10 x (1 - 1.1 / 3) for the first player, twice as much for the second.
  EXPECT_NEAR(fine.values[1][0].item<double>(), 1 + 10 * (1 - 1.1 / 3), 1e-4);
  EXPECT_NEAR(fine.values[1][1].item<double>(), 2 * (1 + 10 * (1 - 1.1 / 3)), 2e-4);
}

TEST(Shapley, RadauIsExactForPolynomials) {
  for (std::int64_t n : {1, 2, 3, 4, 8, 16, 64}) {
    QuadratureRule rule = radau_rule(n);
    EXPECT_EQ(rule.nodes.back(), 1);
    EXPECT_GT(rule.nodes.front(), 0);
    for (std::int64_t degree : {std::int64_t{0}, n - 1, 2 * n - 2}) {
      double sum = 0;
      for (std::size_t i = 0; i < rule.nodes.size(); ++i)
        sum += rule.weights[i] * std::pow(rule.nodes[i], static_cast<double>(degree));
      EXPECT_NEAR(sum, 1 / static_cast<double>(degree + 1), 1e-13) << n << " points, degree " << degree;
    }
  }
}

TEST(Shapley, RefusesWhatCannotBeDone) {
  FormulaGame large(1, 17, [](std::int64_t, const std::vector<double>& in) { return in[0]; });
  EXPECT_NE(testing::error_of([&] { estimated("exact", large); }).find("at most 16"), std::string::npos);
  EXPECT_NE(testing::error_of([&] { estimated("regression:coalitions=60", large); }).find("at least 68"),
            std::string::npos);
  EXPECT_NE(testing::error_of([&] { estimated("permutations", large); }).find("did you mean 'permutation'"),
            std::string::npos);
  FormulaGame one(1, 1, [](std::int64_t, const std::vector<double>& in) { return 3 * in[0]; });
  for (const char* spec : {"exact", "permutation", "regression", "path"})
    EXPECT_NEAR(estimated(spec, one).values[0][0].item<double>(), 3, 1e-8) << spec;
}

// The first score of the published network; its first layer hands on the inputs, so that its neurons are they.
class ScoreGame : public Game {
 public:
  ScoreGame(Network& network, at::Tensor input) : network_(network), input_(std::move(input)) {}
  std::int64_t size() const override { return 1; }
  std::int64_t players() const override { return 3; }
  at::Tensor worth(const at::Tensor& games, const at::Tensor& masks) override {
    Request request;
    request.masks = {{0, masks}};
    return network_.run(input_.expand({games.size(0), -1, -1, -1}).contiguous(), request)
        .logits.select(1, 0)
        .to(at::kDouble);
  }
  Diagonal along(const at::Tensor&, const at::Tensor&, const at::Tensor&) override { return {}; }

 private:
  Network& network_;
  at::Tensor input_;
};

TEST(Shapley, PublishedExample) {
  auto network = testing::published_network(16);
  ScoreGame game(*network, at::tensor({20.F, 50.F, 30.F}).view({1, 3, 1, 1}));
  EXPECT_LT(furthest(estimated("exact", game).values[0], {230.0 / 3, 590.0 / 3, 350.0 / 3}), 1e-3);
  EXPECT_LT(furthest(estimated("permutation:pairs=200", game).values[0], {230.0 / 3, 590.0 / 3, 350.0 / 3}), 0.5);
}

// A convolution of 3 neurons, a dense layer of 6, an output of 3.
std::unique_ptr<Network> small_network(std::uint64_t seed) {
  Rng rng(seed);
  auto drawn = [&](const std::vector<std::int64_t>& shape, double size) {
    at::Tensor value = at::empty(shape);
    rng.fill_normal(value.data_ptr<float>(), static_cast<std::size_t>(value.numel()));
    return value * size;
  };
  Network::Options options;
  options.execution = {16, false};
  return testing::scripted_network(
      "  a = torch.relu(torch.conv2d(x, self.w1, self.b1))\n"
      "  b = torch.max_pool2d(a, [2, 2]).flatten(1)\n"
      "  c = torch.relu(torch.linear(b, self.w2, self.b2))\n"
      "  return torch.linear(c, self.w3, self.b3)\n",
      {{"w1", drawn({3, 1, 3, 3}, 0.6)},
       {"b1", drawn({3}, 0.2)},
       {"w2", drawn({6, 27}, 0.4)},
       {"b2", drawn({6}, 0.2)},
       {"w3", drawn({3, 6}, 0.8)},
       {"b3", drawn({3}, 0.2)}},
      {1, 8, 8}, options);
}

struct SmallGame {
  std::unique_ptr<Network> network;
  std::unique_ptr<LossGame> game;

  explicit SmallGame(std::uint64_t seed) : network(small_network(seed)) {
    at::Tensor originals = testing::random_images(*network, 6);
    at::Tensor changed = at::empty_like(originals);
    Rng rng(seed + 1000);
    for (std::int64_t i = 0; i < changed.numel(); ++i) {
      auto value = static_cast<std::int64_t>(originals.data_ptr<std::uint8_t>()[i]) + rng.between(-60, 60);
      changed.data_ptr<std::uint8_t>()[i] = static_cast<std::uint8_t>(std::clamp<std::int64_t>(value, 0, 255));
    }
    game = std::make_unique<LossGame>(*network, network->select_taps("default"), changed, originals,
                                      network->run(originals).logits.argmax(1));
  }
};

// Ranks with equal values sharing theirs are not needed: no two are equal.
double rank_correlation(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor ranks_a = a.argsort(std::int64_t{0}).argsort(std::int64_t{0}).to(at::kDouble),
             ranks_b = b.argsort(std::int64_t{0}).argsort(std::int64_t{0}).to(at::kDouble);
  at::Tensor x = ranks_a - ranks_a.mean(), y = ranks_b - ranks_b.mean();
  return ((x * y).sum() / at::sqrt((x * x).sum() * (y * y).sum())).item<double>();
}

TEST(ShapleyOfNeurons, OnTenNetworks) {
  double correlation = 0, apart = 0, size = 0;
  int held = 0, intervals = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SmallGame small(seed);
    ASSERT_EQ(small.game->players(), 12);
    ShapleyValues exact = estimated("exact", *small.game), path = estimated("path:tolerance=1e-5", *small.game);
    // The efficiency axiom.
    EXPECT_LT(exact.residual().abs().max().item<double>(), 1e-5);
    EXPECT_LT(path.residual().abs().max().item<double>(), 1e-5) << "after " << path.slopes;
    for (const char* spec : {"permutation:pairs=24", "regression:coalitions=240"}) {
      ShapleyValues drawn = estimated(spec, *small.game, seed);
      EXPECT_LT(drawn.residual().abs().max().item<double>(), 1e-5);
      held += (drawn.values - exact.values).abs().le(drawn.half_widths).sum().item<int>();
      intervals += static_cast<int>(drawn.values.numel());
    }
    for (std::int64_t row = 0; row < exact.values.size(0); ++row)
      correlation += rank_correlation(exact.values[row], path.values[row]) / 60;
    apart += (exact.values - path.values).abs().mean().item<double>() / 10;
    size += exact.values.abs().mean().item<double>() / 10;
  }
  RecordProperty("rank_correlation", std::to_string(correlation));
  RecordProperty("mean_difference", std::to_string(apart));
  RecordProperty("mean_value", std::to_string(size));
  RecordProperty("share_held", std::to_string(static_cast<double>(held) / intervals));
  // They are related, and they are not the same.
  EXPECT_GT(correlation, 0.5);
  EXPECT_LT(correlation, 0.999);
  EXPECT_GT(apart, 1e-3 * size);
  EXPECT_GT(static_cast<double>(held) / intervals, 0.9);
}

// Of a change they are those of the changed input less those of the original.
TEST(ShapleyOfNeurons, AreLinearInTheGame) {
  auto network = small_network(4);
  at::Tensor before = testing::random_images(*network, 3), after = 255 - before;
  at::Tensor labels = at::tensor(std::vector<std::int64_t>{0, 1, 2});
  std::vector<int> taps = network->select_taps("default");
  LossGame change(*network, taps, after, before, labels), changed(*network, taps, after, {}, labels),
      original(*network, taps, before, {}, labels);
  EXPECT_EQ(change.passes_each(), 2);
  for (const char* spec : {"exact", "permutation", "regression:coalitions=64", "path:tolerance=0"}) {
    at::Tensor parts = estimated(spec, changed).values - estimated(spec, original).values;
    EXPECT_TRUE(at::allclose(estimated(spec, change).values, parts, 0, 1e-5)) << spec;
  }
}

TEST(ShapleyOfNeurons, DoNotDependOnOtherInputsPiecesOrThreads) {
  auto make = [](std::int64_t micro_batch) { return testing::zoo_network("lenet1", {1, 28, 28}, micro_batch); };
  auto network = make(16);
  at::Tensor inputs = testing::random_images(*network, 5);
  at::Tensor labels = at::tensor(std::vector<std::int64_t>{0, 1, 2, 3, 4});
  std::vector<int> taps = network->select_taps("default");
  for (const char* spec : {"permutation:pairs=3", "regression:coalitions=128", "path:points=12,tolerance=0"}) {
    LossGame game(*network, taps, inputs, {}, labels);
    at::Tensor all = estimated(spec, game).values;
    int before = workers().size();
    set_workers(before == 1 ? 3 : 1);
    EXPECT_TRUE(at::equal(estimated(spec, game).values, all)) << spec;
    set_workers(before);
    LossGame alone(*network, taps, inputs.narrow(0, 3, 1), {}, labels.narrow(0, 3, 1));
    EXPECT_TRUE(at::allclose(estimated(spec, alone).values[0], all[3], 1e-3, 1e-5)) << spec;
    auto small = make(5);
    LossGame cut(*small, taps, inputs, {}, labels);
    EXPECT_TRUE(at::allclose(estimated(spec, cut).values, all, 1e-3, 1e-5)) << spec;
  }
}

// With nobody there the scores are the last layer's offsets, whatever batch norms and sigmoids make of zero.
TEST(ShapleyOfNeurons, NobodyIsNobody) {
  at::Tensor offsets = at::tensor(std::vector<float>{1, -2, 0.5});
  Network::Options options;
  options.execution = {8, false};
  auto network = testing::scripted_network(
      "  a = torch.conv2d(x, self.w1)\n"
      "  b = torch.batch_norm(a, self.one, self.one, self.zero, self.one, False, 0.1, 1e-5, False)\n"
      "  c = torch.sigmoid(b).flatten(1)\n"
      "  return torch.linear(c, self.w2, self.b2)\n",
      {{"w1", at::ones({2, 1, 3, 3}) / 9},
       {"one", at::ones({2})},
       {"zero", at::zeros({2})},
       {"w2", at::arange(3 * 72).view({3, 72}) / 720},
       {"b2", offsets}},
      {1, 8, 8}, options);
  at::Tensor labels = at::tensor(std::vector<std::int64_t>{1});
  LossGame game(*network, network->select_taps("conv2d"), testing::random_images(*network, 1), {}, labels);
  double expected = -offsets.to(at::kDouble).log_softmax(0)[1].item<double>();
  EXPECT_NEAR(game.worth(at::zeros({1}, at::kLong), at::zeros({1, 2})).item<double>(), expected, 1e-6);
}

TEST(ShapleyOfNeurons, ALayerAndItsActivationAreOnePlayerEach) {
  auto network = testing::zoo_network("lenet1", {1, 28, 28});
  at::Tensor labels = at::tensor(std::vector<std::int64_t>{0});
  LossGame game(*network, network->select_taps("conv*"), testing::random_images(*network, 1), {}, labels);
  EXPECT_EQ(game.players(), 4 + 12);
}

TEST(ShapleyOfNeurons, StopBetweenMicroBatches) {
  auto network = small_network(1);
  at::Tensor labels = at::zeros({2}, at::kLong);
  LossGame game(*network, network->select_taps("default"), testing::random_images(*network, 2), {}, labels);
  request_interrupt(SIGINT);
  EXPECT_EQ(testing::error_of([&] { game.worth(labels, at::ones({2, game.players()})); }), "interrupted");
  EXPECT_EQ(testing::error_of([&] {
              game.along(labels, at::ones({2, 1}, at::kDouble), at::ones({2, 1}, at::kDouble));
            }),
            "interrupted");
  clear_interrupt();
}

TEST(ShapleyOfNeurons, RefuseWhatDoesNotFit) {
  auto network = small_network(1);
  at::Tensor images = testing::random_images(*network, 2);
  at::Tensor labels = at::tensor(std::vector<std::int64_t>{0, 3});
  std::vector<int> taps = network->select_taps("default");
  EXPECT_NE(testing::error_of([&] { LossGame(*network, taps, images, {}, labels); }), "");
  EXPECT_NE(testing::error_of([&] { LossGame(*network, taps, images, {}, labels.narrow(0, 0, 1)); }), "");
  EXPECT_NE(testing::error_of([&] { LossGame(*network, taps, images, images.narrow(0, 0, 1), labels.clamp_max(2)); }),
            "");
}

}  // namespace
}  // namespace galvani
