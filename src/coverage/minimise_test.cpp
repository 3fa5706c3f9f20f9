#include "galvani/coverage/minimise.h"

#include <gtest/gtest.h>

#include <set>

#include "galvani/base/rng.h"

namespace galvani {
namespace {

Features lists(const std::vector<std::vector<std::uint64_t>>& inputs) {
  Features features;
  for (const auto& ids : inputs) {
    features.ids.insert(features.ids.end(), ids.begin(), ids.end());
    features.finish_input();
  }
  return features;
}

std::vector<std::int64_t> kept(const FeatureTable& table) {
  std::vector<std::int64_t> result;
  for (const KeptInput& input : minimise(table)) result.push_back(input.input);
  return result;
}

// Looks at every input in every round.
std::vector<std::int64_t> plain_greedy(const FeatureTable& table) {
  std::set<std::uint32_t> covered;
  std::vector<std::int64_t> result;
  while (true) {
    std::size_t most = 0;
    std::int64_t best = -1;
    for (std::int64_t i = 0; i < table.inputs(); ++i) {
      std::size_t gain = 0;
      for (std::uint32_t feature : table.row(i)) gain += covered.count(feature) == 0 ? 1 : 0;
      if (gain > most) {
        most = gain;
        best = i;
      }
    }
    if (best < 0) return result;
    covered.insert(table.row(best).begin(), table.row(best).end());
    result.push_back(best);
  }
}

// CAM of profiles A 11100111, B 11100011, C 11110000, D 00001111: A first, then C and D in either order; B adds
// nothing.
TEST(Minimise, PublishedOrder) {
  FeatureTable table;
  table.add(0, lists({{0, 1, 2, 5, 6, 7}, {0, 1, 2, 6, 7}, {0, 1, 2, 3}, {4, 5, 6, 7}}), 0);
  EXPECT_EQ(kept(table), (std::vector<std::int64_t>{0, 2, 3}));
}

TEST(Minimise, FamiliesAreKeptApart) {
  FeatureTable table;
  table.add(0, lists({{1}, {1}}), 0);
  table.add(0, lists({{}, {1}}), 1);
  EXPECT_EQ(table.features(), 2U);
  EXPECT_EQ(kept(table), (std::vector<std::int64_t>{1}));
}

TEST(Minimise, IsThePlainGreedyAndKeepsEveryFeature) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    std::vector<std::vector<std::uint64_t>> inputs(60);
    std::set<std::uint64_t> all;
    for (auto& ids : inputs) {
      for (std::int64_t i : rng.sample(80, rng.between(0, 12))) ids.push_back(static_cast<std::uint64_t>(i));
      all.insert(ids.begin(), ids.end());
    }
    FeatureTable table;
    table.add(0, lists(inputs), 0);
    std::vector<std::int64_t> chosen = kept(table);
    EXPECT_EQ(chosen, plain_greedy(table));
    std::set<std::uint64_t> covered;
    for (std::int64_t i : chosen)
      covered.insert(inputs[static_cast<std::size_t>(i)].begin(), inputs[static_cast<std::size_t>(i)].end());
    EXPECT_EQ(covered, all);
  }
}

}  // namespace
}  // namespace galvani
