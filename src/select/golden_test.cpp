// Known values: published ones, ones worked out by hand, and plain formulas.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "galvani/base/rng.h"
#include "galvani/select/diverse.h"
#include "galvani/select/evaluate.h"
#include "select/ats.h"
#include "select/builtin.h"
#include "select/coverage_order.h"
#include "select/fused.h"
#include "select/neighbours.h"
#include "select/nss.h"

namespace galvani {
namespace {

using Rows = std::vector<std::int64_t>;

Rows best_first(const std::vector<double>& scores) {
  Rows order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  return order;
}

at::Tensor normal_rows(std::int64_t n, std::int64_t width, std::uint64_t seed) {
  at::Tensor t = at::empty({n, width});
  Rng(seed).fill_normal(t.data_ptr<float>(), static_cast<std::size_t>(t.numel()));
  return t;
}

// NSS table 2. It prints .2 as the score of the fifth input, but its three sensitivities sum to .25, as those of the
// fourth do; the printed order holds with equal ones in the order of the table.
TEST(SelectGolden, TheWorkedExampleOfNss) {
  at::Tensor x = at::tensor({.4, .5, .6, .2, .4, .2, .4, .5, .3, .8, .5, .7, .5, .3, .4, .3, .6, .4}).view({6, 3});
  at::Tensor y = at::tensor({.3, .4, .4, .2, .4, .2, .3, .3, .3, .7, .45, .6, .4, .2, .35, .25, .55, .4}).view({6, 3});
  x = x.to(at::kFloat);
  y = y.to(at::kFloat);
  std::vector<double> scores(6, 0.0);
  add_tns_scores(x, y, {0, 1, 2}, Normalise::none, 1, scores.data());
  const double expected[] = {.4, 0, .3, .25, .25, .1};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(scores[i], expected[i], 1e-6);
  for (double& score : scores) score = std::round(score * 1e6);
  EXPECT_EQ(best_first(scores), (Rows{0, 2, 3, 4, 5, 1}));

  // Summed over the six: .45, .5 and .35.
  std::vector<double> sums;
  add_sensitivity(x, y, Normalise::none, sums);
  EXPECT_NEAR(sums[0], .45, 1e-6);
  EXPECT_NEAR(sums[1], .5, 1e-6);
  EXPECT_NEAR(sums[2], .35, 1e-6);
  EXPECT_EQ(most_sensitive(sums, 67), (Rows{1, 0}));
  EXPECT_EQ(most_sensitive(sums, 1), (Rows{1}));
  EXPECT_EQ(most_sensitive(std::vector<double>(192, 1.0), 10).size(), 19U);
}

// NSS 2.2.1 by hand: changes 1, 2, 0, 1 of outputs 4, 1, 0, 5 (sum 10), and 3, 0, 1, 0 of 0, 2, 2, 0 (sum 4).
TEST(SelectGolden, SensitivityIsDividedByTheNeuronOrTheLayer) {
  at::Tensor x = at::tensor({4.F, -1.F, 0.F, 5.F, 0.F, 2.F, 2.F, 0.F}).view({2, 4});
  at::Tensor y = at::tensor({5.F, 1.F, 0.F, 4.F, 3.F, 2.F, 1.F, 0.F}).view({2, 4});
  auto scores = [&](Normalise by, const Rows& neurons) {
    std::vector<double> result(2, 0.0);
    add_tns_scores(x, y, neurons, by, 1, result.data());
    return result;
  };
  EXPECT_NEAR(scores(Normalise::neuron, {0, 1, 2, 3})[0], 1. / 4 + 2 + 1. / 5, 1e-6);
  EXPECT_NEAR(scores(Normalise::neuron, {1, 2, 3})[1], 1. / 2, 1e-6);
  EXPECT_NEAR(scores(Normalise::neuron, {0})[1], 3e6, 1);
  EXPECT_NEAR(scores(Normalise::layer, {0, 1, 2, 3})[0], 4. / 10, 1e-6);
  EXPECT_NEAR(scores(Normalise::layer, {0, 1, 2, 3})[1], 4. / 4, 1e-6);
  // The whole layer's outputs, whichever neurons are looked at.
  EXPECT_NEAR(scores(Normalise::layer, {1})[0], 2. / 10, 1e-6);
  std::vector<double> sums;
  add_sensitivity(x, y, Normalise::neuron, sums);
  EXPECT_NEAR(sums[0], 3e6 + .25, 1);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_NEAR(sums[i], (std::vector<double>{0, 2, .5, .2}[i]), 1e-6);
  sums.clear();
  add_sensitivity(x, y, Normalise::layer, sums);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(sums[i], (std::vector<double>{.1 + .75, .2, .25, .1}[i]), 1e-6);
}

TEST(SelectGolden, GiniAndPredictionConfidence) {
  double scores[2];
  gini_of(at::tensor({.1F, .2F, .3F, .4F, .5F, .1F, .1F, .3F}).view({2, 4}), scores);
  EXPECT_NEAR(scores[0], .7, 1e-6);
  EXPECT_NEAR(scores[1], .64, 1e-6);
  const float p[] = {.1F, .8F, .08F, .02F};
  EXPECT_NEAR(prediction_confidence(p, 4), .7, 1e-6);
}

TEST(SelectGolden, Apfd) {
  // Every input a fault, all of another type.
  Apfd all = measure_apfd({1, 2, 3}, {0, 1, 2});
  EXPECT_DOUBLE_EQ(all.faults, 1 - 6.0 / 9 + 1.0 / 6);
  EXPECT_DOUBLE_EQ(all.types, 1 - 6.0 / 9 + 1.0 / 6);
  EXPECT_DOUBLE_EQ(measure_apfd({1, 0, 0}, {0, 1, 2}).faults, 1 - 1.0 / 3 + 1.0 / 6);
  // Three faults of two types, at places 1, 3 and 4.
  Apfd mixed = measure_apfd({5, 0, 5, 2}, {0, 1, 2, 3});
  EXPECT_DOUBLE_EQ(mixed.faults, 1 - 8.0 / 12 + 1.0 / 8);
  EXPECT_DOUBLE_EQ(mixed.types, 1 - 5.0 / 8 + 1.0 / 8);
  EXPECT_TRUE(std::isnan(measure_apfd({0, 0}, {0, 1}).faults));
}

TEST(SelectGolden, FaultTypesAndTheirCurve) {
  at::Tensor labels = at::tensor({1, 1, 2, 0, 1, 2}, at::kLong), said = at::tensor({1, 2, 1, 0, 2, -1}, at::kLong);
  std::vector<std::int64_t> types = fault_types(labels, said);
  EXPECT_EQ(types, (Rows{0, 1, 2, 0, 1, 3}));
  EXPECT_EQ(type_curve(types, {4, 1, 0, 5}), (Rows{1, 1, 1, 2}));
  PickFigures figures = measure_picks(types, {4, 1, 0, 5});
  EXPECT_EQ(figures.faults, 3);
  EXPECT_EQ(figures.types, 2);
  EXPECT_DOUBLE_EQ(figures.fdr, 0.75);
  EXPECT_DOUBLE_EQ(figures.rauc, 5.0 / (1 + 2 + 3 + 3));
}

Features profiles(const std::vector<std::string>& rows) {
  Features features;
  for (const std::string& row : rows) {
    for (std::size_t bit = 0; bit < row.size(); ++bit) {
      if (row[bit] == '1') features.ids.push_back(bit);
    }
    features.finish_input();
  }
  return features;
}

TEST(SelectGolden, CoverageAdditionalAndTotal) {
  FeatureTable table;
  table.add(0, profiles({"11100111", "11100011", "11110000", "00001111"}), 0);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<double> scores(4);
    Rows additional = coverage_order(table, 4, true, seed, scores);
    EXPECT_TRUE(additional == (Rows{0, 3, 2, 1}) || additional == (Rows{0, 2, 3, 1}));
    EXPECT_EQ(scores, (std::vector<double>{6, 0, 1, 1}));
    Rows total = coverage_order(table, 4, false, seed, scores);
    EXPECT_TRUE(total == (Rows{0, 1, 2, 3}) || total == (Rows{0, 1, 3, 2}));
    EXPECT_EQ(scores, (std::vector<double>{6, 5, 4, 4}));
  }
}

TEST(SelectGolden, LazyGreedyIsPlainGreedy) {
  Rng rng(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> rows;
    for (int i = 0; i < 60; ++i) {
      std::string row;
      for (int bit = 0; bit < 80; ++bit) row += rng.chance(0.1) ? '1' : '0';
      rows.push_back(row);
    }
    FeatureTable table;
    table.add(0, profiles(rows), 0);
    std::vector<double> scores(60);
    Rows lazy = coverage_order(table, 60, true, 1, scores);
    std::string covered(80, '0');
    std::vector<char> taken(60, 0);
    for (std::size_t place = 0;; ++place) {
      int best = -1, most = 0;
      for (int i = 0; i < 60; ++i) {
        int gain = 0;
        for (std::size_t bit = 0; bit < 80; ++bit)
          gain += rows[static_cast<std::size_t>(i)][bit] == '1' && covered[bit] == '0' ? 1 : 0;
        if (taken[static_cast<std::size_t>(i)] == 0 && gain > most) {
          best = i;
          most = gain;
        }
      }
      if (best < 0) break;
      ASSERT_EQ(lazy[place], best);
      taken[static_cast<std::size_t>(best)] = 1;
      for (std::size_t bit = 0; bit < 80; ++bit)
        if (rows[static_cast<std::size_t>(best)][bit] == '1') covered[bit] = '1';
    }
  }
}

TEST(SelectGolden, DatisIsItsFormula) {
  constexpr std::int64_t kClasses = 4, kNear = 15;
  constexpr double kTemperature = 0.1;
  at::Tensor train = unit_rows(normal_rows(300, 6, 1)), test = unit_rows(normal_rows(40, 6, 2));
  Rows labels, said;
  Rng rng(5);
  for (int i = 0; i < 300; ++i) labels.push_back(rng.between(0, kClasses - 1));
  for (int i = 0; i < 40; ++i) said.push_back(rng.between(0, kClasses - 1));
  auto near = neighbours_of(NearestSearch(train), test, kNear);
  at::Tensor x = train.to(at::kDouble), z = test.to(at::kDouble);
  for (std::int64_t i = 0; i < 40; ++i) {
    at::Tensor distances = (x - z[i]).square().sum(1);
    auto [smallest, index] = distances.topk(kNear, 0, /*largest=*/false);
    at::Tensor weights = (-smallest / kTemperature).exp();
    std::vector<double> p(kClasses, 0);
    for (std::int64_t j = 0; j < kNear; ++j)
      p[static_cast<std::size_t>(labels[static_cast<std::size_t>(index[j].item<std::int64_t>())])] +=
          weights[j].item<double>() / weights.sum().item<double>();
    std::int64_t verdict = said[static_cast<std::size_t>(i)];
    auto largest = std::max_element(p.begin(), p.end()) - p.begin();
    std::vector<double> sorted = p;
    std::sort(sorted.rbegin(), sorted.rend());
    double own = p[static_cast<std::size_t>(verdict)] + 1e-15;
    double expected = (largest == verdict ? sorted[1] : sorted[0]) / own;
    double found = support_doubt(near[static_cast<std::size_t>(i)], labels.data(), kClasses, verdict, kTemperature);
    EXPECT_NEAR(found / expected, 1, 1e-9);
  }
}

// (The whole of fused is computed once more by tests/golden/select_numpy.py.)
TEST(SelectGolden, PartsOfFused) {
  const double p[] = {.7, .2, .1};
  EXPECT_DOUBLE_EQ(doubt_of(p, 3, 0, 0), std::log(.2 / .7));
  EXPECT_DOUBLE_EQ(doubt_of(p, 3, 2, .1), std::log(.8 / .2));
  // Squared distances 0, 1 and 4: weights 1, exp(-1/2) and exp(-2).
  const std::int64_t labels[] = {2, 0, 2, 1};
  double shares[3];
  shares_of_labels({{1, 0}, {0, 1}, {3, 4}}, labels, 3, shares);
  double sum = 1 + std::exp(-.5) + std::exp(-2);
  EXPECT_NEAR(shares[0], 1 / sum, 1e-9);
  EXPECT_NEAR(shares[2], std::exp(-.5) / sum, 1e-9);
  EXPECT_NEAR(shares[1], std::exp(-2) / sum, 1e-9);
  // All at the same place.
  shares_of_labels({{0, 0}, {1, 0}}, labels, 3, shares);
  EXPECT_DOUBLE_EQ(shares[2], .5);
  EXPECT_NEAR(log_distance({{0, 1}, {1, 9}, {2, 100}}, 2), std::log(2), 1e-6);
  EXPECT_EQ(log_distance({}, 3), 0);
}

TEST(SelectGolden, DatisDropsWhatIsRedundant) {
  constexpr std::int64_t kCount = 60, kBudget = 30;
  at::Tensor rows = unit_rows(normal_rows(kCount, 5, 9));
  Rows picks = drop_redundant(rows, kBudget, 0.2);
  at::Tensor x = rows.to(at::kDouble);
  at::Tensor distances = (x.unsqueeze(0) - x.unsqueeze(1)).square().sum(2).sqrt();
  at::Tensor mean = std::get<0>(distances.topk(kBudget, 1, /*largest=*/false)).mean(1);
  std::vector<double> by_distance(mean.data_ptr<double>(), mean.data_ptr<double>() + kCount);
  Rows far = best_first(by_distance);
  std::vector<double> worth;
  for (std::int64_t i = 0; i < kCount; ++i) {
    auto place = std::find(far.begin(), far.end(), i) - far.begin();
    worth.push_back(0.8 * static_cast<double>(kCount - i) + 0.2 * static_cast<double>(kCount - place));
  }
  Rows expected = best_first(worth);
  expected.resize(kBudget);
  EXPECT_EQ(picks, expected);
}

// log det(F Fᵀ + ridge) computed anew for every candidate.
TEST(SelectGolden, DiverseChoiceIsThatOfDeterminants) {
  constexpr std::int64_t kCount = 45, kBudget = 15;
  at::Tensor features = normal_rows(kCount, 20, 11);
  std::vector<double> weights;
  Rng rng(4);
  for (std::int64_t i = 0; i < kCount; ++i) weights.push_back(0.9 - 0.01 * static_cast<double>(i));
  Rows found = choose_diverse(features, weights, kBudget);
  at::Tensor rows = unit_rows(features).to(at::kDouble);
  auto log_det = [&](const Rows& set) {
    if (set.empty()) return 0.0;
    at::Tensor f = rows.index_select(0, at::tensor(set, at::kLong));
    at::Tensor gram = at::mm(f, f.t()) + kDiversityRidge * at::eye(f.size(0), at::kDouble);
    return at::logdet(gram).item<double>();
  };
  Rows expected;
  for (std::int64_t chunk = 0; chunk < kBudget; ++chunk) {
    std::vector<double> gains;
    for (std::int64_t i = chunk; i < kCount; i += kBudget) {
      Rows with = expected;
      with.push_back(i);
      gains.push_back(log_det(with) - log_det(expected));
    }
    double low = *std::min_element(gains.begin(), gains.end()), high = *std::max_element(gains.begin(), gains.end());
    // Rows of length 1: with none before them all gain the same, up to rounding.
    bool same = high - low <= 1e-5;
    std::int64_t best = chunk;
    double most = -1;
    for (std::size_t at = 0; at < gains.size(); ++at) {
      std::int64_t i = chunk + static_cast<std::int64_t>(at) * kBudget;
      double worth = weights[static_cast<std::size_t>(i)] * (same ? 1 : (gains[at] - low) / (high - low));
      if (worth > most) {
        best = i;
        most = worth;
      }
    }
    expected.push_back(best);
  }
  EXPECT_EQ(found, expected);
}

TEST(SelectGolden, WeightsOfADiverseChoice) {
  double none = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(diversity_weights({.5, .25, 0}), (std::vector<double>{.5, .25, 0}));
  EXPECT_EQ(diversity_weights({infinite, 3, 1, -1, none}), (std::vector<double>{1, 1, .5, 0, 0}));
}

// Three classes have one pair: verdict 0, edge between 1 and 2.
TEST(SelectGolden, AtsTakesWhatIsNotCoveredYet) {
  // Where the lines from vertex 0 meet the edge: .5 (twice), .8, and one output that is sure.
  const float p[] = {.4F, .3F, .3F, .4F, .3F, .3F, .4F, .48F * .999F, .12F, .995F, .004F, .001F, .34F, .33F, .33F};
  std::vector<double> lengths;
  Rows order = ats_order(p, 5, 3, 3, lengths);
  // The third is of class 1, where nothing is covered; the second covers nothing that the last or first do not.
  // A' of (.4, .3, .3): it sums to one already, so it stays: radius .005 x (.99 - .4).
  EXPECT_NEAR(lengths[4], 2 * .005 * (.99 - .34), 1e-7);
  EXPECT_EQ(order[0], 4);
  EXPECT_EQ(order[1], 2);
  EXPECT_EQ(lengths[0], 0);
  EXPECT_EQ(order.back(), 3);
}

// Against a plain greedy choice with a fine grid in place of intervals.
TEST(SelectGolden, AtsIsPlainGreedy) {
  constexpr std::int64_t kCount = 40, kClasses = 4, kGrid = 200000;
  at::Tensor p = normal_rows(kCount, kClasses, 21).softmax(1).contiguous();
  std::vector<double> lengths;
  Rows order = ats_order(p.data_ptr<float>(), kCount, kClasses, kClasses, lengths);
  std::vector<std::vector<char>> grids(kClasses * kClasses * kClasses, std::vector<char>(kGrid, 0));
  auto cells = [&](std::int64_t row, const std::function<void(std::vector<char>&, std::int64_t)>& visit) {
    const float* a = p.data_ptr<float>() + row * kClasses;
    auto i = std::max_element(a, a + kClasses) - a;
    for (std::int64_t x = 0; x < kClasses; ++x) {
      for (std::int64_t y = x + 1; y < kClasses; ++y) {
        if (x == i || y == i) continue;
        double top = 2.0 / 3 * a[i] - a[x] / 3.0 - a[y] / 3.0 + 1.0 / 3;
        double left = 2.0 / 3 * a[x] - a[i] / 3.0 - a[y] / 3.0 + 1.0 / 3;
        double right = 2.0 / 3 * a[y] - a[i] / 3.0 - a[x] / 3.0 + 1.0 / 3;
        double middle = left / (left + right), radius = .005 * (.99 - top);
        auto first = std::max<std::int64_t>(0, std::llround((middle - radius) * kGrid));
        auto last = std::min<std::int64_t>(kGrid, std::llround((middle + radius) * kGrid));
        for (std::int64_t cell = first; cell < last; ++cell)
          visit(grids[static_cast<std::size_t>((i * kClasses + x) * kClasses + y)], cell);
      }
    }
  };
  // What each gained, by cells, in the order that was found, is what was reported, and no other would have gained more.
  std::vector<char> taken(kCount, 0);
  for (std::int64_t row : order) {
    auto gain_of = [&](std::int64_t candidate) {
      double gain = 0;
      cells(candidate, [&](std::vector<char>& grid, std::int64_t cell) {
        gain += grid[static_cast<std::size_t>(cell)] != 0 ? 0 : 1.0 / kGrid;
      });
      return gain;
    };
    double own = gain_of(row);
    EXPECT_NEAR(own, lengths[static_cast<std::size_t>(row)], 1e-4);
    taken[static_cast<std::size_t>(row)] = 1;
    for (std::int64_t other = 0; other < kCount; ++other) {
      if (taken[static_cast<std::size_t>(other)] == 0) {
        EXPECT_LE(gain_of(other), own + 1e-4);
      }
    }
    cells(row, [&](std::vector<char>& grid, std::int64_t cell) { grid[static_cast<std::size_t>(cell)] = 1; });
  }
}

}  // namespace
}  // namespace galvani
