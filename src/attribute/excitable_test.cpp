#include "galvani/attribute/excitable.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "attribute/testing.h"

namespace galvani {
namespace {

TEST(Excitable, AboveTheThreshold) {
  double none = std::numeric_limits<double>::quiet_NaN();
  at::Tensor values = at::tensor({0.02, 0.01, -0.5, 0.3, 0.0, none, 0.0, 0.0}, at::kDouble).view({2, 4});
  at::Tensor wanted = at::tensor({1, 0, 0, 1, 0, 0, 0, 0}).to(at::kBool).view({2, 4});
  EXPECT_TRUE(at::equal(excitable(values, {}), wanted));
  // Of -0.5, the largest: above 0.25 only 0.3 is left. Where nothing is worth anything, nothing is excitable.
  at::Tensor relative = excitable(values.slice(0, 0, 1), {0.5, true});
  EXPECT_TRUE(at::equal(relative, at::tensor({0, 0, 0, 1}).to(at::kBool).view({1, 4})));
  EXPECT_EQ(excitable(at::zeros({1, 3}, at::kDouble), {0, true}).sum().item<int>(), 0);
}

TEST(Excitable, LargestAndShared) {
  at::Tensor a = at::tensor({5.0, 1.0, 5.0, 2.0}, at::kDouble).view({1, 4});
  at::Tensor b = at::tensor({0.0, 9.0, 8.0, 7.0}, at::kDouble).view({1, 4});
  EXPECT_TRUE(at::equal(largest(a, 3), at::tensor(std::vector<std::int64_t>{0, 2, 3}).view({1, 3})));
  EXPECT_EQ(shared_neurons(largest(a, 3), largest(b, 3))[0].item<int>(), 2);
  EXPECT_EQ(largest(a, 10).size(1), 4);
}

TEST(Excitable, NeuronsHaveNamesAndAPicture) {
  TraceLayout layout;
  layout.add("conv<1>", 2);
  layout.add("fc", 3);
  EXPECT_EQ(place_of(layout, 1).tap, "conv<1>");
  EXPECT_EQ(place_of(layout, 4).tap, "fc");
  EXPECT_EQ(place_of(layout, 4).neuron, 2);
  EXPECT_NE(testing::error_of([&] { place_of(layout, 5); }), "");
  std::string svg = strips_svg("a & b", layout, {{"noise", at::tensor({1.0, -1.0, 0.0, 0.25, 0.5}, at::kDouble)}});
  EXPECT_NE(svg.find("a &amp; b"), std::string::npos);
  EXPECT_NE(svg.find("conv&lt;1&gt;"), std::string::npos);
  // The largest is the full red, the smallest the full blue, nothing is white.
  for (const char* colour : {"#b2182b", "#2166ac", "#ffffff"}) EXPECT_NE(svg.find(colour), std::string::npos) << colour;
}

}  // namespace
}  // namespace galvani
