#include "galvani/quality/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace galvani
