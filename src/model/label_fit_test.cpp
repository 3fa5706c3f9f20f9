#include "galvani/model/label_fit.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/rng.h"

namespace galvani {
namespace {

// Of each of `labels` in turn the network says what `said` makes of it.
template <class Said>
std::optional<LabelFit> fit_of(std::int64_t classes, std::int64_t labels, std::int64_t inputs, Said said) {
  at::Tensor counts = at::zeros({2, classes, classes}, at::kLong);
  at::Tensor half = held_out_rows(0, inputs);
  for (std::int64_t i = 0; i < inputs; ++i) {
    std::int64_t label = i % labels;
    counts[half[i].item<std::int64_t>()][label][said(label, i)] += 1;
  }
  return fit_labels(counts[0], counts[1]);
}

std::int64_t drawn(std::int64_t i, std::int64_t below) {
  return static_cast<std::int64_t>(
      Rng(5).derive({static_cast<std::uint64_t>(i)}).below(static_cast<std::uint64_t>(below)));
}

TEST(LabelFit, AShiftByOne) {
  // 1,001 outputs, of which the first is background; a fifth of the verdicts is drawn.
  auto background = fit_of(1001, 1000, 1000,
                           [](std::int64_t label, std::int64_t i) { return i % 5 == 0 ? drawn(i, 1001) : label + 1; });
  ASSERT_TRUE(background);
  EXPECT_EQ(background->shift, 1);
  EXPECT_NEAR(background->accuracy, 0.8, 0.01);
  EXPECT_EQ(remedy_text(*background, {}).find("80.00% if the network's class is the label + 1"), 0U)
      << remedy_text(*background, {});
  EXPECT_NE(remedy_text(*background, {}).find("--label-shift 1 "), std::string::npos);
  // Labels 1 to 9 of 10 classes: the sample has none of the last class.
  at::Tensor counts = at::zeros({2, 10, 10}, at::kLong);
  for (std::int64_t i = 0; i < 90; ++i) counts[i / 9 % 2][1 + i % 9][i % 9] += 1;
  auto from_one = fit_labels(counts[0], counts[1]);
  ASSERT_TRUE(from_one);
  EXPECT_EQ(from_one->shift, -1);
  EXPECT_EQ(from_one->accuracy, 1);
  EXPECT_NE(remedy_text(*from_one, {}).find("--label-shift -1 "), std::string::npos);
}

TEST(LabelFit, AnotherOrderIsJudgedOnInputsThatItWasNotTakenFrom) {
  const std::vector<std::int64_t> class_of = {3, 0, 2, 4, 1};
  auto order = fit_of(5, 5, 400, [&](std::int64_t label, std::int64_t i) {
    return i % 10 < 2 ? drawn(i, 5) : class_of[static_cast<std::size_t>(label)];
  });
  ASSERT_TRUE(order);
  EXPECT_EQ(order->shift, 0);
  EXPECT_EQ(order->class_of, class_of);
  EXPECT_NEAR(order->accuracy, 0.84, 0.08);
  EXPECT_NE(remedy_text(*order, {}).find("(0 → 3, 1 → 0, 3 → 4, 4 → 1)"), std::string::npos) << remedy_text(*order, {});
  EXPECT_NE(remedy_text(*order, {}).find("--classes 1,4,2,0,3 names"), std::string::npos);
  EXPECT_NE(remedy_text(*order, {"a", "b", "c", "d e", "f"}).find("--classes 'b,f,c,a,d e' names"), std::string::npos);
  EXPECT_NE(remedy_text(*order, {"a", "b,b", "c", "d", "e"}).find("; name the network's classes in its order"),
            std::string::npos);
  // Two classes that are the other one each.
  auto swapped = fit_of(2, 2, 60, [](std::int64_t label, std::int64_t) { return 1 - label; });
  ASSERT_TRUE(swapped);
  EXPECT_EQ(swapped->class_of, (std::vector<std::int64_t>{1, 0}));
}

TEST(LabelFit, ChanceIsTakenForNothing) {
  // What fits 60 drawn verdicts best is right for many of them, and for none of the others.
  for (std::int64_t classes : {2, 10, 50}) {
    EXPECT_FALSE(fit_of(classes, classes, 60, [&](std::int64_t, std::int64_t i) { return drawn(i, classes); }))
        << classes;
  }
  EXPECT_FALSE(fit_of(100, 100, 100, [&](std::int64_t, std::int64_t i) { return drawn(i, 100); }))
      << "with one input of each class all of them fit";
  // One verdict for all, which is the next class of the one label there is, or of many.
  EXPECT_FALSE(fit_of(10, 1, 200, [](std::int64_t, std::int64_t) { return 1; }));
  EXPECT_FALSE(fit_of(10, 10, 200, [](std::int64_t, std::int64_t) { return 4; }));
  // A network that is right, and one that is right half the time.
  EXPECT_FALSE(fit_of(10, 10, 200, [](std::int64_t label, std::int64_t) { return label; }));
  EXPECT_FALSE(
      fit_of(10, 10, 200, [](std::int64_t label, std::int64_t i) { return i % 2 == 0 ? label : drawn(i, 10); }));
  EXPECT_FALSE(fit_of(5, 4, 20, [](std::int64_t label, std::int64_t) { return label + 1; })) << "too few inputs";
}

TEST(LabelFit, OfVerdicts) {
  at::Tensor labels = at::arange(100, at::kLong).remainder(9), verdicts = labels + 1;
  verdicts[7] = -1;  // not a number
  auto fit = fit_labels(labels, verdicts, 10);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->shift, 1);
  EXPECT_EQ(fit->accuracy, 1) << "of those that have a verdict";
}

TEST(LabelFit, HalvesDoNotFollowAPeriodOfTheRows) {
  at::Tensor half = held_out_rows(0, 4096);
  for (std::int64_t period : {2, 3, 8, 10, 64}) {
    for (std::int64_t first = 0; first < period; ++first) {
      auto share = half.slice(0, first, 4096, period).to(at::kDouble).mean().item<double>();
      EXPECT_NEAR(share, 0.5, 0.3) << period << " " << first;
    }
  }
  // Of 1,000 classes in turn hardly one has all of its six inputs in one part: 2 of 64, by chance.
  at::Tensor of_class = held_out_rows(0, 6000).view({6, 1000}).sum(0);
  EXPECT_LT(of_class.remainder(6).eq(0).sum().item<std::int64_t>(), 60);
  EXPECT_TRUE(at::equal(half.narrow(0, 100, 50), held_out_rows(100, 50)));
}

}  // namespace
}  // namespace galvani
