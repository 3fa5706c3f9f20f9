#include "galvani/base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace galvani {
namespace {

// Known answers published with the Random123 library.
TEST(Philox, KnownAnswers) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, StreamIsAFunctionOfSeedAndPath) {
  Rng a(7);
  Rng used(7);
  for (int i = 0; i < 100; ++i) used.next_u32();
  EXPECT_EQ(a.derive({1, 2}).next_u64(), used.derive({1, 2}).next_u64());
  EXPECT_NE(a.derive({1, 2}).next_u64(), a.derive({2, 1}).next_u64());
  EXPECT_NE(a.derive("mutate").next_u64(), a.derive("select").next_u64());
  EXPECT_NE(a.derive(1).next_u64(), Rng(8).derive(1).next_u64());
}

TEST(Rng, BelowIsUniform) {
  Rng rng(1);
  std::array<int, 7> counts{};
  constexpr int kDraws = 70000;
  for (int i = 0; i < kDraws; ++i) ++counts[rng.below(7)];
  double chi2 = 0;
  for (int c : counts) chi2 += (c - kDraws / 7.0) * (c - kDraws / 7.0) / (kDraws / 7.0);
  EXPECT_LT(chi2, 22.5);  // 6 degrees of freedom, p = 0.001
}

TEST(Rng, NormalHasItsMoments) {
  Rng rng(2);
  std::vector<float> values(200001);
  rng.fill_normal(values.data(), values.size());
  double sum = 0;
  double squares = 0;
  for (float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
}

TEST(Rng, SampleIsDistinctAndComplete) {
  Rng rng(3);
  std::vector<std::int64_t> all = rng.sample(50, 50);
  EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), 50U);
  EXPECT_EQ(*std::max_element(all.begin(), all.end()), 49);
  EXPECT_EQ(rng.sample(1000000, 3).size(), 3U);
}

}  // namespace
}  // namespace galvani
