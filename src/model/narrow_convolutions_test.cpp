#include "model/narrow_convolutions.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "model/input_gradient.h"

namespace galvani {
namespace {

TEST(NarrowConvolution, HasTheGradientOfTheConvolution) {
  struct Case {
    std::int64_t channels, groups, height, width;
    std::vector<std::int64_t> kernel, stride, padding, dilation;
  };
  at::manual_seed(4);
  for (const Case& c :
       {Case{1, 1, 28, 28, {5, 5}, {1, 1}, {2, 2}, {1, 1}}, Case{1, 1, 28, 28, {5, 5}, {1, 1}, {0, 0}, {1, 1}},
        Case{3, 1, 32, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, Case{2, 1, 9, 70, {4, 2}, {1, 1}, {3, 1}, {1, 1}},
        Case{4, 1, 33, 5, {1, 5}, {1, 1}, {0, 3}, {1, 1}}, Case{1, 1, 12, 11, {3, 3}, {1, 1}, {3, 3}, {1, 1}},
        Case{1, 1, 600, 600, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, Case{3, 1, 33, 20, {3, 5}, {2, 3}, {1, 0}, {1, 1}},
        Case{4, 2, 17, 18, {3, 3}, {2, 2}, {2, 3}, {2, 3}}, Case{2, 1, 9, 8, {4, 2}, {5, 3}, {0, 0}, {1, 1}}}) {
    at::Tensor x = at::randn({3, c.channels, c.height, c.width}), bias = at::randn({6});
    at::Tensor weight = at::randn({6, c.channels / c.groups, c.kernel[0], c.kernel[1]});
    at::Tensor ours = x.clone().requires_grad_(true), theirs = x.clone().requires_grad_(true);
    at::Tensor y = narrow_convolution(ours, weight, bias, c.stride, c.padding, c.dilation, c.groups);
    at::Tensor expected = at::conv2d(theirs, weight, bias, c.stride, c.padding, c.dilation, c.groups);
    EXPECT_TRUE(at::equal(y, expected));
    at::Tensor along = at::randn_like(y);
    at::Tensor found = torch::autograd::grad({(y * along).sum()}, {ours})[0];
    at::Tensor right = torch::autograd::grad({(expected * along).sum()}, {theirs})[0];
    ASSERT_EQ(found.sizes(), right.sizes());
    EXPECT_TRUE(at::allclose(found, right, 1e-4, 1e-4)) << (found - right).abs().max();
    EXPECT_GT(right.abs().max().item<double>(), 1);
  }
}

// By registers of every width that the processor has.
TEST(InputGradient, IsTheTransposedConvolution) {
  at::manual_seed(5);
  for (std::int64_t lanes = 4; lanes <= InputGradient::widest(); lanes *= 2) {
    for (std::int64_t channels = 1; channels <= InputGradient::kMostChannels; ++channels) {
      at::Tensor of_output = at::randn({3, 6, 15, 38}), weight = at::randn({6, channels, 4, 3});
      at::Tensor expected = at::conv_transpose2d(of_output, weight, {}, {1, 1}, {2, 1});
      at::Tensor found = at::full_like(expected, 7);
      InputGradient gradient{};
      gradient.of_output = of_output.data_ptr<float>();
      gradient.weight = weight.data_ptr<float>();
      gradient.of_input = found.data_ptr<float>();
      gradient.count = 3;
      gradient.outputs = 6;
      gradient.channels = channels;
      gradient.height = found.size(2);
      gradient.width = found.size(3);
      gradient.kernel_height = 4;
      gradient.kernel_width = 3;
      gradient.top = 2;
      gradient.left = 1;
      ASSERT_EQ(gradient.out_height(), 15);
      ASSERT_EQ(gradient.out_width(), 38);
      at::Tensor padded = at::zeros({gradient.padded_numbers()});
      gradient.padded = padded.data_ptr<float>();
      gradient.compute(lanes);
      EXPECT_TRUE(at::allclose(found, expected, 1e-4, 1e-4)) << lanes << " lanes, " << channels << " channels";
    }
  }
}

}  // namespace
}  // namespace galvani
