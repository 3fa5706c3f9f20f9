#include "semantics/quantile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/rng.h"

namespace galvani {
namespace {

std::vector<float> values_of(const std::string& kind, std::size_t n) {
  Rng rng(7);
  std::vector<float> values(n);
  for (float& v : values) {
    double x = rng.normal();
    if (kind == "normal") v = static_cast<float>(x);
    if (kind == "far") v = static_cast<float>(1000 + x);
    if (kind == "negative") v = static_cast<float>(-std::exp(3 * x));
    if (kind == "relu") v = static_cast<float>(std::max(0.0, x - 2));
    if (kind == "wide") v = static_cast<float>(x * std::exp(3 * rng.normal()));
  }
  return values;
}

TEST(QuantileSketch, StaysWithinItsStatedError) {
  for (const char* kind : {"normal", "far", "negative", "relu", "wide"}) {
    std::vector<float> values = values_of(kind, 200000);
    QuantileSketch sketch;
    sketch.add(values.data(), static_cast<std::int64_t>(values.size()));
    std::vector<float> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    for (double q : {0.9, 0.99, 0.995}) {
      Quantile found = sketch.at(q);
      float truth = sorted[static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size()))) - 1];
      EXPECT_GE(found.value, truth) << kind;
      EXPECT_LE(found.value - truth, std::abs(truth) / 256 + 1e-12) << kind << " " << q;
      auto above = std::count_if(values.begin(), values.end(), [&](float v) { return v > found.value; });
      EXPECT_DOUBLE_EQ(found.above, static_cast<double>(above) / static_cast<double>(values.size())) << kind;
      EXPECT_LE(found.above, 1 - q + 1e-12);
    }
    EXPECT_EQ(sketch.least(), sorted.front());
    EXPECT_EQ(sketch.largest(), sorted.back());
  }
}

TEST(QuantileSketch, OrderAndPartsDoNotMatter) {
  std::vector<float> values = values_of("wide", 20000);
  QuantileSketch whole, reversed, first, second;
  whole.add(values.data(), 20000);
  for (std::size_t i = values.size(); i-- > 0;) reversed.add(&values[i], 1);
  first.add(values.data(), 7000);
  second.add(values.data() + 7000, 13000);
  first.merge(second);
  for (int percent = 0; percent <= 100; ++percent) {
    double q = percent / 100.0;
    EXPECT_EQ(whole.at(q).value, reversed.at(q).value) << q;
    EXPECT_EQ(whole.at(q).above, reversed.at(q).above) << q;
    EXPECT_EQ(whole.at(q).value, first.at(q).value) << q;
    EXPECT_EQ(whole.at(q).above, first.at(q).above) << q;
  }
}

TEST(QuantileSketch, OfOneValue) {
  QuantileSketch sketch;
  float zero = -0.0F;
  for (int i = 0; i < 5; ++i) sketch.add(&zero, 1);
  EXPECT_EQ(sketch.at(0.99).value, 0);
  EXPECT_EQ(sketch.at(0.99).above, 0);
  EXPECT_EQ(sketch.size(), 5U);
}

}  // namespace
}  // namespace galvani
