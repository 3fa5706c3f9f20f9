#include "galvani/data/digits.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/data/dataset.h"

namespace galvani {
namespace {

TEST(Digits, SameForAnyNumberOfWorkers) {
  set_workers(1);
  Dataset one = load_data("digits:test[:600]");
  for (int n : {2, 4}) {
    set_workers(n);
    EXPECT_TRUE(load_data("digits:test[:600]").images.equal(one.images));
  }
}

TEST(Digits, SlicesEqualTheWhole) {
  Dataset whole = load_data("digits:train[:1000]");
  Dataset slice = load_data("digits:train[300:900:7]");
  for (std::int64_t i = 0; i < slice.size(); ++i) {
    EXPECT_TRUE(slice.images[i].equal(whole.images[300 + 7 * i]));
    EXPECT_EQ(slice.labels[i].item<std::int64_t>(), whole.labels[300 + 7 * i].item<std::int64_t>());
  }
  EXPECT_FALSE(load_data("digits:test[:10]").images.equal(load_data("digits:train[:10]").images));
}

TEST(Digits, BalancedAndShuffled) {
  Dataset data = load_data("digits");
  EXPECT_EQ(data.name, "digits:test");
  EXPECT_EQ(data.size(), kDigitsTest);
  EXPECT_TRUE(at::bincount(data.labels).equal(at::full({10}, 1000, at::kLong)));
  EXPECT_FALSE(data.labels.slice(0, 0, 10).equal(data.labels.slice(0, 10, 20)));
}

// The drawing must stay what it is: trained models and recorded results depend on it.
TEST(Digits, InkIsWhereItBelongs) {
  Dataset data = load_data("digits:test[:2000]");
  at::Tensor mean = data.images.to(at::kFloat).mean();
  EXPECT_NEAR(mean.item<float>(), 33, 4);
  at::Tensor per_image = data.images.to(at::kFloat).mean({1, 2, 3});
  EXPECT_GT(per_image.min().item<float>(), 3);
  EXPECT_LT(per_image.max().item<float>(), 120);
  EXPECT_EQ(load_data("digits:train").size(), kDigitsTrain);
  EXPECT_THROW(open_digits("dev"), Error);
}

}  // namespace
}  // namespace galvani
