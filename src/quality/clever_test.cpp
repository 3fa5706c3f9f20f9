#include "galvani/quality/clever.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/data/dataset.h"
#include "quality/ball.h"
#include "quality/testing.h"

namespace galvani {
namespace {

// Values drawn from the distribution itself, by its inverse at evenly spaced shares.
std::vector<double> drawn_from(const ReverseWeibull& distribution, int n) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i)
    values.push_back(distribution.end -
                     distribution.scale * std::pow(-std::log((i + 0.5) / n), 1 / distribution.shape));
  return values;
}

TEST(WeibullTest, FindsItsEndAgain) {
  for (double shape : {2.0, 4.0, 8.0}) {
    ReverseWeibull truth{10, 3, shape};
    ExtremeFit fit = fit_extremes(drawn_from(truth, 200));
    EXPECT_TRUE(fit.fitted);
    EXPECT_GT(fit.p, 0.9) << shape;
    EXPECT_NEAR(fit.bound, 10, 0.35) << shape;
    EXPECT_NEAR(fit.distribution.shape / shape, 1, 0.25) << shape;
    EXPECT_EQ(fit.bound, fit.distribution.end);
  }
}

// What is multiplied and shifted gives an end that is, too.
TEST(WeibullTest, FollowsScaleAndPlace) {
  std::vector<double> values = drawn_from({1, 0.5, 3}, 100), moved;
  for (double value : values) moved.push_back(1000 * value + 50);
  EXPECT_NEAR(fit_extremes(moved).bound, 1000 * fit_extremes(values).bound + 50, 0.01);
}

TEST(WeibullTest, NoSpreadOrNoFit) {
  ExtremeFit same = fit_extremes({2, 2, 2, 2});
  EXPECT_FALSE(same.fitted);
  EXPECT_EQ(same.bound, 2);
  EXPECT_EQ(fit_extremes({7}).bound, 7);
  // Two heaps far apart are nothing that a maximum does.
  std::vector<double> heaps(200, 1.0);
  for (std::size_t i = 0; i < heaps.size(); ++i) heaps[i] = (i % 2 == 0 ? 1.0 : 100.0) + 1e-3 * static_cast<double>(i);
  ExtremeFit fit = fit_extremes(heaps);
  EXPECT_FALSE(fit.fitted);
  EXPECT_LT(fit.p, kLeastFitP);
  EXPECT_DOUBLE_EQ(fit.bound, 100.199);
}

// Gumbel's distribution has no end: exp(-exp(-x)).
TEST(WeibullTest, NoEndIsFoundWhereThereIsNone) {
  std::vector<double> values;
  for (int i = 0; i < 500; ++i) values.push_back(20 - std::log(-std::log((i + 0.5) / 500)));
  ExtremeFit fit = fit_extremes(values);
  EXPECT_FALSE(fit.fitted);
  EXPECT_EQ(fit.bound, values.back());
}

// Critical values at 5% and 1% as textbooks print them.
TEST(WeibullTest, KolmogorovPublished) {
  EXPECT_NEAR(kolmogorov_p(0.40925, 10), 0.05, 0.002);
  EXPECT_NEAR(kolmogorov_p(0.29408, 20), 0.05, 0.002);
  EXPECT_NEAR(kolmogorov_p(0.18845, 50), 0.05, 0.002);
  EXPECT_NEAR(kolmogorov_p(0.48895, 10), 0.01, 0.001);
  EXPECT_EQ(kolmogorov_p(0.001, 10), 1);
}

// A linear model has the same slope everywhere, so its score is the distance to the boundary: margin / ‖w‖ in the dual
// norm. Differences of weights (0.3, 0.4) and (-1, 0): margins 0.2 and 0.8 at x = (0.4, 0.2).
TEST(CleverTest, IsExactOnALinearModel) {
  at::Tensor weight = at::tensor({0.3, 0.0, 1.3, 0.4, 0.0, 0.4}).view({2, 3});
  auto network = testing::linear_network({1, 1, 2}, weight, at::tensor({0.0, 0.0, -1.2}));
  at::Tensor input = at::tensor({102, 51}, at::kInt).to(at::kByte).view({1, 1, 2});
  CleverSettings settings;
  settings.batches = 5;
  settings.samples = 10;
  auto scores = [&](CleverNorm norm) {
    settings.norm = norm;
    CleverScore found = clever(*network, input, settings, Rng(1));
    EXPECT_EQ(found.verdict, 0);
    EXPECT_EQ(found.targets[0].target, 1);
    EXPECT_NEAR(found.targets[0].margin, 0.2, 1e-6);
    EXPECT_NEAR(found.targets[1].margin, 0.8, 1e-6);
    EXPECT_FALSE(found.targets[0].fit.fitted);
    return std::vector<double>{found.targets[0].score, found.targets[1].score, found.score()};
  };
  std::vector<double> l2 = scores(CleverNorm::l2), linf = scores(CleverNorm::linf), l1 = scores(CleverNorm::l1);
  EXPECT_NEAR(l2[0], 0.2 / 0.5, 1e-5);
  EXPECT_NEAR(l2[1], 0.8, 1e-5);
  EXPECT_EQ(l2[2], l2[0]);
  EXPECT_NEAR(linf[0], 0.2 / 0.7, 1e-5);
  EXPECT_NEAR(l1[0], 0.2 / 0.4, 1e-5);
  // Never more than the radius that was looked at.
  settings.radius = 0.25;
  EXPECT_EQ(scores(CleverNorm::l2)[0], 0.25);
}

// Inside a radius r lies r^n of the volume: half of the points below 0.5^(1/n), none beyond 1, and none preferred by
// sign or axis.
TEST(BallTest, PointsAreUniform) {
  for (CleverNorm norm : {CleverNorm::l1, CleverNorm::l2, CleverNorm::linf}) {
    for (std::size_t n : {2, 5}) {
      double inner = 0, first = 0, square = 0, last_square = 0;
      const int kPoints = 20000;
      std::vector<float> point(n);
      for (int i = 0; i < kPoints; ++i) {
        unit_ball_point(norm, Rng(7).derive(static_cast<std::uint64_t>(i)), point.data(), n);
        double sum = 0, squares = 0, largest = 0;
        for (float v : point) {
          sum += std::abs(v);
          squares += v * v;
          largest = std::max<double>(largest, std::abs(v));
        }
        double length = norm == CleverNorm::l1 ? sum : norm == CleverNorm::l2 ? std::sqrt(squares) : largest;
        EXPECT_LE(length, 1 + 1e-6);
        inner += length < std::pow(0.5, 1 / static_cast<double>(n)) ? 1 : 0;
        first += point.front();
        square += point.front() * point.front();
        last_square += point.back() * point.back();
      }
      EXPECT_NEAR(inner / kPoints, 0.5, 0.015);
      EXPECT_NEAR(first / kPoints, 0, 0.015);
      EXPECT_NEAR(square / last_square, 1, 0.05);
      // The mean square of a coordinate: 1/(n + 2), 1/3 and 2/((n + 1)(n + 2)).
      auto d = static_cast<double>(n);
      double wanted = norm == CleverNorm::l2     ? 1 / (d + 2)
                      : norm == CleverNorm::linf ? 1.0 / 3
                                                 : 2 / ((d + 1) * (d + 2));
      EXPECT_NEAR(square / kPoints / wanted, 1, 0.04);
    }
  }
}

TEST(CleverTest, SameForAnyNumberOfWorkersAndRepeatable) {
  auto network = testing::small_network();
  at::Tensor input = testing::noise_images(*network, 1)[0];
  CleverSettings settings;
  settings.batches = 6;
  settings.samples = 11;
  settings.targets = 3;
  set_workers(1);
  CleverScore one = clever(*network, input, settings, Rng(3));
  set_workers(3);
  CleverScore three = clever(*network, input, settings, Rng(3));
  ASSERT_EQ(one.targets.size(), 3u);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(one.targets[k].target, three.targets[k].target);
    EXPECT_EQ(one.targets[k].largest, three.targets[k].largest);
    EXPECT_EQ(one.targets[k].score, three.targets[k].score);
  }
  EXPECT_NE(one.targets[0].largest, clever(*network, input, settings, Rng(4)).targets[0].largest);
  // All nine, and the nearest of them.
  settings.targets = 0;
  CleverScore all = clever(*network, input, settings, Rng(3));
  EXPECT_EQ(all.targets.size(), 9u);
  EXPECT_LE(all.score(), one.score());
}

TEST(CleverTest, RefusesWhatHasNoGradients) {
  auto network = testing::linear_network({1, 1, 2}, at::zeros({2, 3}), at::tensor({1.0, 0.0, 0.5}));
  at::Tensor input = at::zeros({1, 1, 2}, at::kByte);
  EXPECT_THROW(clever(*network, input, {}, Rng(1)), Error);
  CleverSettings nothing;
  nothing.samples = 0;
  EXPECT_THROW(clever(*network, input, nothing, Rng(1)), Error);
}

// Three inputs of the linear model above; tests 0.5 and 0.1 away from the first.
TEST(CleverTest, IsComparedWithWhatWasFound) {
  at::Tensor weight = at::tensor({1.0, 0.0, 0.0, 0.0}).view({2, 2});
  auto network = testing::linear_network({1, 1, 2}, weight, at::tensor({0.0, 0.4}));
  auto data = [](const std::vector<int>& values, const std::vector<std::int64_t>& labels) {
    Dataset set;
    set.name = "by hand";
    set.images = at::tensor(values, at::kInt).to(at::kByte).view({-1, 1, 1, 2});
    set.labels = at::tensor(labels, at::kLong);
    return DataView(set);
  };
  // x0 = 153/255 = 0.6: 0.2 above the boundary. The second is wrong as it is.
  DataView originals = data({153, 0, 51, 0, 204, 0}, {0, 0, 0});
  DataView tests = data({51, 0, 0, 0, 204, 255}, {0, 0, 0});
  auto pairs = paired_tests(tests, originals);
  CleverSettings settings;
  settings.batches = 4;
  settings.samples = 5;
  CleverResult found = measure_clever(*network, *pairs, 10, settings, 1);
  ASSERT_EQ(found.inputs.size(), 2u);
  EXPECT_EQ(found.passed_over, 1);
  EXPECT_EQ(found.compared(), 1);
  EXPECT_EQ(found.exceeding(), 0);
  EXPECT_NEAR(found.least(), 0.2, 1e-5);
  EXPECT_NEAR(found.mean(), 0.3, 1e-5);
  EXPECT_NEAR(found.median(), 0.3, 1e-5);
  for (const CleverInput& input : found.inputs) {
    if (input.row == 0)
      EXPECT_NEAR(input.smallest_found, 0.4, 1e-6);
    else
      EXPECT_TRUE(std::isnan(input.smallest_found));
  }
  EXPECT_EQ(measure_clever(*network, originals, 1, settings, 1).inputs.size(), 1u);
}

}  // namespace
}  // namespace galvani
