#include "galvani/quality/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "galvani/base/error.h"

namespace galvani {
namespace {

using Values = std::vector<double>;

TEST(Moments, ByHand) {
  EXPECT_DOUBLE_EQ(mean_of({2, 4, 4, 4, 5, 5, 7, 9}), 5);
  EXPECT_DOUBLE_EQ(deviation_of({1, 2, 3, 4, 5}), std::sqrt(2.5));
  EXPECT_EQ(deviation_of({7}), 0);
  EXPECT_EQ(mean_of({}), 0);
}

// The example of SciPy's documentation of mannwhitneyu: diagnoses of men and women.
TEST(MannWhitneyTest, PublishedExample) {
  Values males = {19, 22, 16, 29, 24}, females = {20, 11, 17, 12};
  MannWhitney exact = mann_whitney(males, females);
  EXPECT_TRUE(exact.exact);
  EXPECT_EQ(exact.u, 17);
  EXPECT_NEAR(exact.p, 0.1111111111111111, 1e-12);
  EXPECT_EQ(mann_whitney(females, males).u, 20 - 17);
  EXPECT_NEAR(mann_whitney(females, males).p, 0.1111111111111111, 1e-12);
  MannWhitney normal = mann_whitney(males, females, MannWhitneyMethod::normal);
  EXPECT_FALSE(normal.exact);
  EXPECT_NEAR(normal.p, 0.11134688653314041, 1e-12);
}

// Without overlap only two of all splits are as extreme.
TEST(MannWhitneyTest, SmallestP) {
  EXPECT_NEAR(mann_whitney({1, 2, 3}, {4, 5, 6}).p, 2.0 / 20, 1e-12);
  EXPECT_NEAR(mann_whitney({4, 5, 6, 7}, {0, 1, 2, 3}).p, 2.0 / 70, 1e-12);
  EXPECT_NEAR(mann_whitney({1}, {2}).p, 1, 1e-12);
  EXPECT_NEAR(least_p(3, 3), 0.1, 1e-12);
  EXPECT_NEAR(least_p(5, 5), 2.0 / 252, 1e-12);
  EXPECT_NEAR(least_p(1, 1), 1, 1e-12);
}

// Samples of 1..2n whose U is the one wanted: the top of `b` is pushed down by `u` places.
MannWhitney with_u(int n, int u) {
  Values a, b;
  for (int i = 1; i <= n; ++i) {
    a.push_back(i);
    b.push_back(n + i);
  }
  // Every exchange of neighbours across the samples adds one to U.
  for (int done = 0; done < u;) {
    for (std::size_t i = a.size(); i-- > 0 && done < u;) {
      auto next = std::find(b.begin(), b.end(), a[i] + 1);
      if (next == b.end()) continue;
      std::swap(*next, a[i]);
      ++done;
    }
  }
  MannWhitney result = mann_whitney(a, b);
  EXPECT_EQ(result.u, u);
  return result;
}

// Critical values of the two-sided test at 5% as textbooks print them: U at or below it is significant.
TEST(MannWhitneyTest, PublishedCriticalValues) {
  const std::vector<std::pair<int, int>> table = {{4, 0}, {5, 2}, {6, 5}, {7, 8}, {8, 13}, {9, 17}, {10, 23}, {12, 37}};
  for (auto [n, critical] : table) {
    EXPECT_LE(with_u(n, critical).p, 0.05) << n;
    EXPECT_GT(with_u(n, critical + 1).p, 0.05) << n;
  }
}

// {1, 1} of {1, 1, 2, 2}: doubled ranks 3, 3, 7, 7; of the six splits two are as far from the mean as it is.
TEST(MannWhitneyTest, TiesByHand) {
  EXPECT_NEAR(mann_whitney({1, 1}, {2, 2}).p, 2.0 / 6, 1e-12);
  EXPECT_NEAR(mann_whitney({1, 2}, {1, 2}).p, 1, 1e-12);
  EXPECT_EQ(mann_whitney({1, 2}, {1, 2}).u, 2);
  EXPECT_NEAR(mann_whitney({5, 5, 5}, {5, 5, 5}).p, 1, 1e-12);
  EXPECT_NEAR(mann_whitney({5, 5, 5}, {5, 5, 5}, MannWhitneyMethod::normal).p, 1, 1e-12);
  EXPECT_EQ(mann_whitney({}, {1}).p, 1);
}

// {1, 2, 2} and {2, 3, 4}: ranks 1, 3, 3 and 3, 5, 6; U = 7 - 6 = 1, one group of three ties.
// Variance 9/12·(7 - 24/30) = 4.65; z = (|1 - 4.5| - 0.5)/√4.65 = 1.39122; p = 0.16416.
TEST(MannWhitneyTest, TieCorrectionByHand) {
  MannWhitney normal = mann_whitney({1, 2, 2}, {2, 3, 4}, MannWhitneyMethod::normal);
  EXPECT_EQ(normal.u, 1);
  EXPECT_NEAR(normal.p, 0.16416, 5e-5);
}

TEST(MannWhitneyTest, LargeSamplesAreApproximated) {
  Values a, b;
  for (int i = 0; i < 30; ++i) {
    a.push_back(i);
    b.push_back(i + 7.5);
  }
  MannWhitney result = mann_whitney(a, b);
  EXPECT_FALSE(result.exact);
  EXPECT_NEAR(result.p, mann_whitney(a, b, MannWhitneyMethod::exact).p, 0.001);
}

TEST(VarghaDelaney, ByHand) {
  EXPECT_DOUBLE_EQ(vargha_delaney({1, 2, 3}, {1, 2}), 4.0 / 6);
  EXPECT_DOUBLE_EQ(vargha_delaney({2}, {1}), 1);
  EXPECT_DOUBLE_EQ(vargha_delaney({1, 2}, {1, 2}), 0.5);
  EXPECT_DOUBLE_EQ(vargha_delaney({}, {1}), 0.5);
  EXPECT_STREQ(effect_size(0.5), "negligible");
  EXPECT_STREQ(effect_size(0.6), "small");
  EXPECT_STREQ(effect_size(0.35), "medium");
  EXPECT_STREQ(effect_size(0), "large");
}

// p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") of R.
TEST(Holm, PublishedExample) {
  Values found = holm({0.01, 0.04, 0.03, 0.005});
  Values wanted = {0.03, 0.06, 0.06, 0.02};
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-12);
  EXPECT_EQ(holm({0.9, 0.8}), (Values{1, 1}));
  EXPECT_TRUE(holm({}).empty());
}

// The example of SciPy's documentation of wilcoxon: heights of cross- and self-fertilised plants (Darwin's).
TEST(WilcoxonTest, PublishedExamples) {
  Values plants = {6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75}, zero(15, 0);
  Wilcoxon found = wilcoxon(plants, zero);
  EXPECT_TRUE(found.exact);
  EXPECT_EQ(found.v, 120 - 24);
  EXPECT_NEAR(found.p, 0.041259765625, 1e-12);
  EXPECT_EQ(wilcoxon(zero, plants).v, 24);
  EXPECT_NEAR(wilcoxon(zero, plants).p, 0.041259765625, 1e-12);
  // R's wilcox.test on Hollander and Wolfe's depression factors: V = 40, one-sided p = 0.01953.
  Values before = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  Values after = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  found = wilcoxon(before, after);
  EXPECT_EQ(found.v, 40);
  EXPECT_NEAR(found.p, 2 * 0.01953125, 1e-12);
}

// Critical values of the two-sided test at 5%, as textbooks print them: a smaller sum at or below it is significant.
TEST(WilcoxonTest, PublishedCriticalValues) {
  const std::vector<std::pair<int, int>> table = {{6, 0},  {7, 2},   {8, 3},   {9, 5},
                                                  {10, 8}, {12, 13}, {15, 25}, {20, 52}};
  for (auto [n, critical] : table) {
    for (int wanted : {critical, critical + 1}) {
      // Ranks 1..n; the largest that still fit make up the sum wanted.
      Values values;
      for (int rank = n, left = wanted; rank > 0; --rank) {
        bool taken = rank <= left;
        if (taken) left -= rank;
        values.push_back(taken ? rank : -rank);
      }
      Wilcoxon found = wilcoxon(values, Values(values.size(), 0));
      EXPECT_EQ(found.v, wanted);
      EXPECT_EQ(found.p <= 0.05, wanted == critical) << n;
    }
  }
}

// Differences 1, 1, -1, 2 and a pair without one: doubled ranks 4, 4, 4, 8, of 16 choices of signs V = (4 + 4 + 8)/2 =
// 8 is as far from 5 as 4 + 4 + 4 + 8 = 20 (1), 16 (3), 4 (3) and 0 (1) are: 8/16.
TEST(WilcoxonTest, TiesAndZerosByHand) {
  Wilcoxon found = wilcoxon({2, 2, 0, 3, 7}, {1, 1, 1, 1, 7});
  EXPECT_EQ(found.pairs, 4u);
  EXPECT_EQ(found.v, 8);
  EXPECT_NEAR(found.p, 0.5, 1e-12);
  EXPECT_EQ(wilcoxon({1, 2}, {1, 2}).p, 1);
  EXPECT_EQ(wilcoxon({}, {}).p, 1);
  EXPECT_THROW(wilcoxon({1}, {}), Error);
  // Variance 4·5·9/24 - (27 - 3)/48 = 7; z = (|8 - 5| - 0.5)/√7 = 0.944911; p = 0.344704.
  EXPECT_NEAR(wilcoxon({2, 2, 0, 3}, {1, 1, 1, 1}, WilcoxonMethod::normal).p, 0.344704, 1e-6);
}

TEST(WilcoxonTest, LargeSamplesAreApproximated) {
  Values a, b(60, 0);
  for (int i = 0; i < 60; ++i) a.push_back(i % 3 == 0 ? -i - 1 : i + 1);
  EXPECT_FALSE(wilcoxon(a, b).exact);
  EXPECT_NEAR(wilcoxon(a, b).p, wilcoxon(a, b, WilcoxonMethod::exact).p, 0.001);
}

// R's cor.test on Hollander and Wolfe's tuna: lightness and quality.
const Values kTuna = {44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1};
const Values kTunaQuality = {2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8};

TEST(CorrelationTest, PearsonPublished) {
  Correlation found = pearson(kTuna, kTunaQuality);
  EXPECT_NEAR(found.r, 0.5711816, 5e-8);
  EXPECT_NEAR(found.p, 0.1082, 5e-5);
  // Anscombe's first two sets: the same 0.816 by design.
  Values x = {10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5};
  EXPECT_NEAR(pearson(x, {8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68}).r, 0.81642, 5e-6);
  EXPECT_NEAR(pearson(x, {9.14, 8.14, 8.74, 8.77, 9.26, 8.10, 6.13, 3.10, 9.13, 7.26, 4.74}).r, 0.81624, 5e-6);
  EXPECT_EQ(pearson({1, 2, 3}, {2, 4, 6}).p, 0);
  EXPECT_DOUBLE_EQ(pearson({1, 2, 3}, {6, 4, 2}).r, -1);
  EXPECT_EQ(pearson({1, 2, 3}, {5, 5, 5}).p, 1);
  EXPECT_THROW(pearson({1}, {}), Error);
}

TEST(CorrelationTest, SpearmanPublished) {
  Correlation found = spearman(kTuna, kTunaQuality);  // R: S = 48, rho 0.6, p = 0.0968
  EXPECT_TRUE(found.exact);
  EXPECT_NEAR(found.r, 0.6, 1e-12);
  EXPECT_NEAR(found.p, 0.0968, 5e-5);
  // SciPy's documentation of spearmanr.
  found = spearman({1, 2, 3, 4, 5}, {5, 6, 7, 8, 7}, SpearmanMethod::student);
  EXPECT_NEAR(found.r, 0.82078268166812329, 1e-12);
  EXPECT_NEAR(found.p, 0.088587005313543798, 1e-12);
  // Of the six orders of three two are as extreme.
  EXPECT_NEAR(spearman({1, 2, 3}, {1, 5, 9}).p, 2.0 / 6, 1e-12);
  // Ties: {1, 1, 2} has three orders, of which one sum (ranks 1.5, 1.5, 3 along 1, 2, 3) is the largest, one the least.
  EXPECT_NEAR(spearman({1, 2, 3}, {1, 1, 2}).p, 2.0 / 3, 1e-12);
}

// SciPy's documentation of pointbiserialr.
TEST(CorrelationTest, PointBiserialPublished) {
  Correlation found = point_biserial({false, false, false, true, true, true, true}, {0, 1, 2, 3, 4, 5, 6});
  EXPECT_NEAR(found.r, 0.8660254037844386, 1e-12);
  EXPECT_NEAR(found.p, 0.011724811003954652, 1e-12);
}

// Critical values of Student's t as textbooks print them, two-sided 5% and 1%.
TEST(StudentTest, PublishedCriticalValues) {
  for (auto [freedom, t] : {std::pair{1, 12.706}, {2, 4.303}, {5, 2.571}, {10, 2.228}, {30, 2.042}, {120, 1.980}})
    EXPECT_NEAR(student_p(t, freedom), 0.05, 5e-5) << freedom;
  for (auto [freedom, t] : {std::pair{1, 63.657}, {4, 4.604}, {20, 2.845}})
    EXPECT_NEAR(student_p(t, freedom), 0.01, 1e-5) << freedom;
  EXPECT_DOUBLE_EQ(student_p(0, 5), 1);
}

TEST(BootstrapTest, IsRepeatableAndHoldsTheMean) {
  Values values;
  for (int i = 0; i < 100; ++i) values.push_back(i);
  Interval found = bootstrap_mean(values, {}, Rng(1));
  Interval again = bootstrap_mean(values, {}, Rng(1));
  EXPECT_EQ(found.low, again.low);
  EXPECT_EQ(found.high, again.high);
  EXPECT_NE(found.low, bootstrap_mean(values, {}, Rng(2)).low);
  // The standard error of this mean is 28.87/10: ±1.96 of it.
  EXPECT_NEAR(found.low, 49.5 - 5.66, 0.7);
  EXPECT_NEAR(found.high, 49.5 + 5.66, 0.7);
  // Any statistic: the median of 0..99.
  Interval median = bootstrap(
      values.size(),
      [&](std::vector<std::size_t> drawn) {
        std::sort(drawn.begin(), drawn.end());
        return values[drawn[drawn.size() / 2]];
      },
      Rng(3));
  EXPECT_LT(median.low, 50);
  EXPECT_GT(median.high, 50);
}

// Ten equal values of one seed say as much as one.
TEST(BootstrapTest, GroupsAreDrawnTogether) {
  Values values, few;
  std::vector<std::int64_t> groups;
  for (int seed = 0; seed < 20; ++seed) {
    few.push_back(seed);
    for (int i = 0; i < 10; ++i) {
      values.push_back(seed);
      groups.push_back(seed);
    }
  }
  Interval together = bootstrap_mean(values, groups, Rng(1));
  Interval alone = bootstrap_mean(values, {}, Rng(1));
  Interval of_seeds = bootstrap_mean(few, {}, Rng(1));
  EXPECT_GT(together.high - together.low, 2 * (alone.high - alone.low));
  EXPECT_DOUBLE_EQ(together.low, of_seeds.low);
  EXPECT_DOUBLE_EQ(together.high, of_seeds.high);
}

// Binomial with n = 10 and p = 0.5: P(X <= 1) = 0.0107, P(X <= 2) = 0.0547; P(X <= 7) = 0.9453, P(X <= 8) = 0.9893.
TEST(BootstrapTest, SharesByHand) {
  Interval found = bootstrap_share(5, 10);
  EXPECT_DOUBLE_EQ(found.low, 0.2);
  EXPECT_DOUBLE_EQ(found.high, 0.8);
  EXPECT_EQ(bootstrap_share(0, 5).high, 0);
  EXPECT_EQ(bootstrap_share(5, 5).low, 1);
  found = bootstrap_share(250000, 1000000);
  EXPECT_NEAR(found.low, 0.25 - 1.96 * 0.000433, 1e-5);
  EXPECT_NEAR(found.high, 0.25 + 1.96 * 0.000433, 1e-5);
}

}  // namespace
}  // namespace galvani
