#include "galvani/data/memory.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/data/spec.h"
#include "galvani/data/view.h"

namespace galvani {
namespace {

Labelled about(const std::string& name) {
  Labelled result;
  result.name = name;
  result.labels = at::tensor({0, 1, 0, 1}, at::kLong);
  result.class_names = {"a", "b"};
  return result;
}

const SampleType kTiny = SampleType::image(1, 2, 3);

TEST(Memory, ASpecOpensWhatWasLentWithoutACopy) {
  at::Tensor images = at::arange(24, at::kByte).reshape({4, 1, 2, 3});
  lend_data(about("four"), kTiny, images);
  DataView data = open_data("memory:four");
  EXPECT_EQ(data.size(), 4);
  EXPECT_EQ(data.name, "memory:four");
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(data.fetch(1, 2).data_ptr(), images[1].data_ptr());
  DataView odd = open_data("memory:four[1::2]");
  EXPECT_EQ(odd.size(), 2);
  EXPECT_TRUE(at::equal(odd.fetch(0, 2), at::stack({images[1], images[3]})));
  EXPECT_EQ(absolute_spec("memory:four[:2]"), "memory:four[:2]");
  EXPECT_EQ(training_split_of("memory:four"), "");
  take_back_data("four");
  EXPECT_EQ(data.fetch(0, 4).size(0), 4);  // opened before
  EXPECT_THROW(open_data("memory:four"), Error);
}

TEST(Memory, WhatDoesNotFitTogetherIsRefused) {
  at::Tensor images = at::zeros({4, 1, 2, 3}, at::kByte);
  EXPECT_THROW(lend_data(about("a+b"), kTiny, images), Error);
  EXPECT_THROW(lend_data(about(""), kTiny, images), Error);
  EXPECT_THROW(lend_data(about("x"), kTiny, images.to(at::kFloat)), Error);
  EXPECT_THROW(lend_data(about("x"), kTiny, images.narrow(0, 0, 3)), Error);
  EXPECT_THROW(lend_data(about("x"), kTiny, images.transpose(2, 3)), Error);
  EXPECT_THROW(lend_data(about("x"), SampleType::image(1, 3, 2), images), Error);
  Labelled more = about("x");
  more.labels = at::tensor({0, 1, 2, 3}, at::kLong);  // two classes have names
  EXPECT_THROW(lend_data(more, kTiny, images), Error);
}

}  // namespace
}  // namespace galvani
