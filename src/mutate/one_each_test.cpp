#include "galvani/mutate/one_each.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/error.h"

namespace galvani {
namespace {

TEST(OneEach, FollowsFromTheSeedAndTheRow) {
  Dataset data = load_data("digits:test[0:40]");
  DataView view(data);
  OneEach maker("nss", data.type());
  std::vector<std::string> rules, others;
  DataView pool = changed_once(view, maker, 3, rules);
  at::Tensor all = pool.fetch(0, 40);
  EXPECT_TRUE(at::equal(pool.fetch({7, 30, 2}), all.index_select(0, at::tensor({7, 30, 2}))));
  EXPECT_TRUE(at::equal(pool.labels, data.labels));
  EXPECT_FALSE(at::equal(changed_once(view, maker, 4, others).fetch(0, 40), all));
  for (std::int64_t i = 0; i < 40; ++i) {
    EXPECT_FALSE(at::equal(all[i], data.images[i]));
    // The rule, applied again, is the same mutant.
    EXPECT_TRUE(
        at::equal(maker.set().apply(maker.set().parse(rules[static_cast<std::size_t>(i)]), data.images[i]), all[i]));
  }
}

TEST(OneEach, WhatNothingChangesStays) {
  Dataset data = load_data("digits:test[0:3]");
  data.images.zero_();
  OneEach maker("rotation", data.type());
  std::vector<std::string> rules;
  DataView view(data);
  EXPECT_TRUE(at::equal(changed_once(view, maker, 0, rules).fetch(0, 3), data.images));
  EXPECT_EQ(rules, std::vector<std::string>(3, ""));
}

TEST(OneEach, RefusesSounds) {
  EXPECT_THROW(OneEach("nss", SampleType::parse("1,8000@8000", "sound")), Error);
}

}  // namespace
}  // namespace galvani
