#include "galvani/report/tsne.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/base/rng.h"
#include "galvani/report/feature_map.h"
#include "report/quadtree.h"

namespace galvani {
namespace {

// Three clouds, 20 apart in 8 dimensions, one after the other.
at::Tensor three_clouds(std::int64_t each) {
  at::Tensor points = at::empty({3 * each, 8});
  for (std::int64_t i = 0; i < 3 * each; ++i) {
    Rng(3).derive(static_cast<std::uint64_t>(i)).fill_normal(points[i].data_ptr<float>(), 8);
    points[i][i / each] += 20;
  }
  return points;
}

double squared(const std::array<double, 2>& a, const std::array<double, 2>& b) {
  return (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]);
}

// Points whose nearest on the map is of another cloud.
std::int64_t strays(const TsneMap& map, std::int64_t each) {
  std::int64_t count = 0;
  auto n = static_cast<std::int64_t>(map.points.size());
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t nearest = i == 0 ? 1 : 0;
    for (std::int64_t j = 0; j < n; ++j) {
      if (j != i && squared(map.points[static_cast<std::size_t>(i)], map.points[static_cast<std::size_t>(j)]) <
                        squared(map.points[static_cast<std::size_t>(i)], map.points[static_cast<std::size_t>(nearest)]))
        nearest = j;
    }
    count += nearest / each != i / each ? 1 : 0;
  }
  return count;
}

// Kullback and Leibler's divergence of a map, from the definitions: widths by bisection on the deviation.
double divergence_by_definition(const at::Tensor& points, const TsneMap& map, double perplexity) {
  auto n = static_cast<std::size_t>(points.size(0));
  at::Tensor d = at::cdist(points.to(at::kDouble), points.to(at::kDouble)).pow(2).contiguous();
  const double* squares = d.data_ptr<double>();
  std::vector<std::vector<double>> p(n, std::vector<double>(n, 0));
  for (std::size_t i = 0; i < n; ++i) {
    double low = 1e-3, high = 1e3;
    for (int tries = 0; tries < 200; ++tries) {
      double deviation = std::sqrt(low * high), sum = 0, entropy = 0;
      for (std::size_t j = 0; j < n; ++j) {
        p[i][j] = i == j ? 0 : std::exp(-squares[i * n + j] / (2 * deviation * deviation));
        sum += p[i][j];
      }
      for (double& share : p[i]) {
        share /= sum;
        if (share > 0) entropy -= share * std::log2(share);
      }
      (std::exp2(entropy) < perplexity ? low : high) = deviation;
    }
  }
  double total = 0, result = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) total += i == j ? 0 : 1 / (1 + squared(map.points[i], map.points[j]));
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double both = (p[i][j] + p[j][i]) / (2 * static_cast<double>(n));
      if (both > 0) result += both * std::log(both * total * (1 + squared(map.points[i], map.points[j])));
    }
  }
  return result;
}

TEST(Tsne, KeepsCloudsApartAndNearPointsNear) {
  TsneOptions options;
  options.perplexity = 8;
  options.iterations = 400;
  at::Tensor points = three_clouds(25);
  TsneMap exact = tsne(points, options);
  EXPECT_TRUE(exact.exact);
  EXPECT_EQ(strays(exact, 25), 0);
  EXPECT_LT(exact.divergence, 0.6);
  EXPECT_NEAR(exact.divergence, divergence_by_definition(points, exact, 8), 1e-4);
  options.exact = 0;
  TsneMap fast = tsne(points, options);
  EXPECT_FALSE(fast.exact);
  EXPECT_EQ(strays(fast, 25), 0);
  // Shares of neighbours beyond 3 times the perplexity are missing, so divergences differ a little.
  EXPECT_NEAR(fast.divergence, exact.divergence, 0.15);
}

TEST(Tsne, IsTheSameOnAnyNumberOfThreads) {
  TsneOptions options;
  options.iterations = 30;
  for (std::int64_t exact : {0, 1000}) {
    options.exact = exact;
    set_workers(1);
    TsneMap one = tsne(three_clouds(40), options);
    set_workers(3);
    TsneMap three = tsne(three_clouds(40), options);
    EXPECT_EQ(one.points, three.points);
    EXPECT_EQ(one.divergence, three.divergence);
  }
}

TEST(Tsne, TakesPointsThatAreTheSameAndFewOfThem) {
  TsneOptions options;
  options.iterations = 50;
  for (std::int64_t exact : {0, 1000}) {
    options.exact = exact;
    for (const at::Tensor& points : {at::zeros({12, 3}), at::zeros({4, 1}), three_clouds(2), at::rand({5, 40})}) {
      TsneMap map = tsne(points, options);
      EXPECT_LE(map.perplexity, static_cast<double>(points.size(0)) / 3);
      for (const auto& point : map.points) EXPECT_TRUE(std::isfinite(point[0]) && std::isfinite(point[1]));
    }
  }
  EXPECT_THROW(tsne(at::zeros({3, 3})), Error);
  EXPECT_THROW(tsne(at::full({9, 3}, std::numeric_limits<double>::quiet_NaN())), Error);
}

TEST(QuadTree, PushesAsAllPointsTogetherDo) {
  std::vector<std::array<double, 2>> points;
  Rng rng(9);
  for (int i = 0; i < 400; ++i) points.push_back({rng.normal() * 10, rng.normal() * 3});
  for (int i = 0; i < 9; ++i) points.push_back(points[5]);
  QuadTree tree(points);
  double off = 0, size = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    QuadTree::Push all;
    for (std::size_t j = 0; j < points.size(); ++j) {
      if (j != i) all.add(points[i], points[j], 1);
    }
    QuadTree::Push whole = tree.push(i, 0), near = tree.push(i, 0.5);
    EXPECT_NEAR(whole.closeness, all.closeness, 1e-9);
    EXPECT_NEAR(whole.force[0], all.force[0], 1e-9);
    EXPECT_NEAR(whole.force[1], all.force[1], 1e-9);
    EXPECT_NEAR(near.closeness, all.closeness, 0.05 * all.closeness);
    off += std::abs(near.force[0] - all.force[0]) + std::abs(near.force[1] - all.force[1]);
    size += std::abs(all.force[0]) + std::abs(all.force[1]);
  }
  EXPECT_GT(off, 0);
  EXPECT_LT(off, 0.05 * size);
}

// On a line: 0, 1, 2 (benign, labels 0, 0, 1), and a test at 1.9 with label 0 that is taken for 1.
TEST(FeatureNeighbours, AreCountedByGroupAndLabel) {
  auto group = [](const char* name, const std::vector<float>& places, const std::vector<std::int64_t>& labels,
                  const std::vector<std::int64_t>& verdicts) {
    return FeatureGroup{name, at::tensor(places).unsqueeze(1), at::tensor(labels, at::kLong),
                        at::tensor(verdicts, at::kLong)};
  };
  std::vector<FeatureGroup> groups{group("benign", {0, 1, 2}, {0, 0, 1}, {0, 0, 1}), group("tests", {1.9F}, {0}, {1})};
  std::vector<FeatureNeighbours> found = feature_neighbours(groups, 2);
  // 0: 1 and 1.9; 1: 1.9 and (0 or 2, equally far, so the first); 2: 1.9 and 1. Each has one test among its two.
  EXPECT_EQ(found[0].in_group, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(found[1].in_group, (std::vector<double>{1, 0}));
  // Of the test's two nearest benign ones, 2 and 1, the labels are 1 and 0.
  EXPECT_DOUBLE_EQ(found[1].same_label, 0.5);
  EXPECT_DOUBLE_EQ(found[1].same_verdict, 0.5);
  // 0: 1 (label 0), 2 (1); 1: 0 (0), 2 (1); 2: 1 and 0, neither its label.
  EXPECT_DOUBLE_EQ(found[0].same_label, (0.5 + 0.5 + 0) / 3);
  found = feature_neighbours(groups, 1);
  EXPECT_EQ(found[0].in_group, (std::vector<double>{1.0 / 3, 2.0 / 3}));
  EXPECT_DOUBLE_EQ(found[1].same_verdict, 1);
  EXPECT_DOUBLE_EQ(found[1].same_label, 0);
  TsneMap map;
  map.points = {{0, 0}, {1, 0}, {2, 0}, {1.9, 1}};
  std::string svg = feature_map_svg("a < b", groups, map, {"zero", "one"});
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_NE(svg.find("tests (1)"), std::string::npos);
  // Eight points, two groups and two classes in the legends.
  std::size_t circles = 0;
  for (std::size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++circles;
  EXPECT_EQ(circles, 12U);
}

}  // namespace
}  // namespace galvani
