#include "galvani/coverage/nearest.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "galvani/base/rng.h"

namespace galvani {
namespace {

at::Tensor noise(std::int64_t rows, std::int64_t width, std::uint64_t seed, float scale) {
  at::Tensor t = at::empty({rows, width});
  Rng(seed).fill_normal(t.data_ptr<float>(), static_cast<std::size_t>(t.numel()));
  return t * scale + 3;
}

// Also where values are so close that single precision cannot tell them apart, or so large that it overflows.
TEST(Nearest, IsThatOfTheDoubleLoop) {
  for (float scale : {1.0F, 1e-6F, 1e18F}) {
    at::Tensor rows = noise(5000, 10, 1, scale);
    rows[17] = rows[4000];
    at::Tensor queries = noise(40, 10, 2, scale);
    queries[0] = rows[4000];
    NearestSearch::Ranges ranges = {{10, 900}, {2000, 5000}};
    std::vector<Nearest> found = NearestSearch(rows).nearest(queries, ranges);
    for (std::int64_t i = 0; i < queries.size(0); ++i) {
      Nearest expected;
      for (auto [begin, end] : ranges) {
        for (std::int64_t j = begin; j < end; ++j) {
          double distance = squared_distance(queries.data_ptr<float>() + i * 10, rows.data_ptr<float>() + j * 10, 10);
          if (expected.index < 0 || distance < expected.squared_distance) expected = {j, distance};
        }
      }
      EXPECT_EQ(found[static_cast<std::size_t>(i)].index, expected.index) << scale;
      EXPECT_EQ(found[static_cast<std::size_t>(i)].squared_distance, expected.squared_distance);
    }
    EXPECT_EQ(found[0].index, 17);
  }
}

TEST(Nearest, SeveralAreThoseOfTheDoubleLoop) {
  for (float scale : {1.0F, 1e-6F, 1e18F}) {
    at::Tensor rows = noise(3000, 7, 5, scale);
    rows[17] = rows[2000];
    at::Tensor queries = noise(20, 7, 6, scale);
    queries[0] = rows[2000];
    queries[1] = at::full({7}, 1e25F);  // too large for single precision, whatever the rows
    for (std::int64_t k : {1, 5, 200, 4000}) {
      auto found = NearestSearch(rows).nearest_k(queries, k);
      for (std::int64_t i = 0; i < queries.size(0); ++i) {
        std::vector<std::pair<double, std::int64_t>> expected;
        for (std::int64_t j = 0; j < 3000; ++j)
          expected.emplace_back(squared_distance(queries.data_ptr<float>() + i * 7, rows.data_ptr<float>() + j * 7, 7),
                                j);
        std::sort(expected.begin(), expected.end());
        const auto& near = found[static_cast<std::size_t>(i)];
        ASSERT_EQ(near.size(), static_cast<std::size_t>(std::min<std::int64_t>(k, 3000)));
        for (std::size_t at = 0; at < near.size(); ++at) {
          ASSERT_EQ(near[at].index, expected[at].second) << scale << " " << k;
          ASSERT_EQ(near[at].squared_distance, expected[at].first);
        }
      }
    }
  }
}

TEST(Nearest, NothingToChooseFrom) {
  EXPECT_EQ(NearestSearch(at::empty({0, 4})).nearest(at::zeros({1, 4}), {{0, 0}})[0].index, -1);
}

TEST(Nearest, WithinARadius) {
  at::Tensor stored = noise(9000, 6, 3, 1);
  std::vector<float> flat(stored.data_ptr<float>(), stored.data_ptr<float>() + stored.numel());
  at::Tensor queries = noise(50, 6, 4, 1);
  std::vector<const float*> rows;
  for (std::int64_t i = 0; i < 50; ++i) rows.push_back(queries.data_ptr<float>() + i * 6);
  // A radius that is exactly some distance: it counts as within.
  for (double radius : {0.2, 0.5, squared_distance(rows[7], flat.data() + 6 * 6, 6)}) {
    std::vector<char> within = rows_within(rows, flat, 6, radius);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      bool expected = false;
      for (std::size_t j = 0; j < flat.size(); j += 6)
        expected |= squared_distance(rows[i], flat.data() + j, 6) <= radius;
      EXPECT_EQ(within[i] != 0, expected);
    }
  }
}

}  // namespace
}  // namespace galvani
