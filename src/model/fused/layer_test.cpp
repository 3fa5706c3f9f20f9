#include "model/fused/layer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/testing.h"

namespace galvani {
namespace {

using Kind = FusedActivation::Kind;

// The largest difference, as a share of the largest value.
double fused_error(const at::Tensor& have, const at::Tensor& want) {
  EXPECT_EQ(have.sizes(), want.sizes());
  return ((have - want).abs().max() / want.abs().max()).item<double>();
}

at::Tensor noise(c10::IntArrayRef sizes, std::int64_t seed) {
  at::Tensor steps = at::arange(1, 1 + c10::multiply_integers(sizes), at::kDouble);
  return (steps * (0.37 + 0.1 * static_cast<double>(seed))).sin().mul(2).to(at::kFloat).view(sizes);
}

FusedNorm some_norm(std::int64_t channels) {
  return {noise({channels}, 1), noise({channels}, 2), noise({channels}, 3), noise({channels}, 4).abs() + 0.1, 1e-5};
}

at::Tensor by_libtorch(const FusedNorm& norm, const at::Tensor& x) {
  return at::batch_norm(x, norm.weight, norm.bias, norm.mean, norm.variance, false, 0, norm.epsilon, false);
}

struct ConvolutionCase {
  std::int64_t in, out, height, width, kernel, stride, padding, dilation, groups;
};

class FusedConvolution : public ::testing::TestWithParam<ConvolutionCase> {};

TEST_P(FusedConvolution, EqualsTheLayersOneByOne) {
  const ConvolutionCase& c = GetParam();
  c10::InferenceMode inference;
  LinearLayer layer;
  layer.weight = noise({c.out, c.in / c.groups, c.kernel, c.kernel}, 5);
  layer.stride = {c.stride, c.stride};
  layer.padding = {c.padding, c.padding};
  layer.dilation = {c.dilation, c.dilation};
  layer.groups = c.groups;
  at::Tensor bias = noise({c.out}, 6);
  at::Tensor x = noise({3, c.in, c.height, c.width}, 7);
  at::Tensor plain = at::conv2d(x, layer.weight, bias, layer.stride, layer.padding, layer.dilation, layer.groups);
  FusedNorm norm = some_norm(c.out);
  at::Tensor sum = noise(plain.sizes(), 8);
  at::Tensor row = noise({1, c.out, 1, 1}, 9);

  EXPECT_LT(fused_error(fused_convolution(layer, bias, std::nullopt, {}, false)->run(x, {}), plain), 2e-6);
  EXPECT_LT(
      fused_error(fused_convolution(layer, {}, std::nullopt, {}, false)->run(x, {}), plain - bias.view({1, -1, 1, 1})),
      2e-6);
  at::Tensor normed = by_libtorch(norm, plain);
  auto with_norm = fused_convolution(layer, bias, norm, {Kind::relu}, false);
  EXPECT_LT(fused_error(with_norm->run(x, {}), at::relu(normed)), 2e-6);
  EXPECT_LT(fused_error(with_norm->run(x, sum), at::relu(normed + sum)), 2e-6);
  EXPECT_LT(fused_error(with_norm->run(x, row), at::relu(normed + row)), 2e-6);
  auto most = (normed + sum).abs().max().item<double>();
  auto clipped = fused_convolution(layer, bias, norm, {Kind::clip, -0.2 * most, 0.6 * most}, true);
  at::Tensor onto = sum.contiguous(at::MemoryFormat::ChannelsLast).clone();
  at::Tensor result = clipped->run(x, onto);
  EXPECT_LT(fused_error(result, at::clamp(normed + sum, -0.2 * most, 0.6 * most)), 2e-6);
  EXPECT_EQ(result.data_ptr(), onto.data_ptr());
  auto leaky = fused_convolution(layer, bias, norm, {Kind::leaky_relu, 0.1}, false);
  EXPECT_LT(fused_error(leaky->run(x, {}), at::leaky_relu(normed, 0.1)), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, FusedConvolution,
    ::testing::Values(ConvolutionCase{1, 6, 28, 28, 5, 1, 2, 1, 1}, ConvolutionCase{1, 6, 27, 27, 5, 1, 2, 1, 1},
                      ConvolutionCase{6, 16, 14, 14, 5, 1, 0, 1, 1}, ConvolutionCase{3, 4, 9, 12, 3, 2, 1, 1, 1},
                      ConvolutionCase{3, 5, 10, 13, 4, 2, 1, 1, 1}, ConvolutionCase{2, 2, 8, 12, 2, 1, 0, 1, 1},
                      ConvolutionCase{16, 16, 8, 8, 3, 1, 1, 1, 1}, ConvolutionCase{16, 32, 9, 9, 3, 2, 1, 1, 1},
                      ConvolutionCase{8, 8, 9, 9, 3, 1, 2, 2, 1}, ConvolutionCase{12, 12, 7, 7, 3, 1, 1, 1, 12},
                      ConvolutionCase{8, 4, 7, 7, 3, 1, 1, 1, 2}, ConvolutionCase{24, 40, 6, 6, 1, 1, 0, 1, 1},
                      ConvolutionCase{3, 1, 6, 6, 6, 1, 0, 1, 1}));

TEST(FusedDense, TakesRowsAndImages) {
  c10::InferenceMode inference;
  LinearLayer layer;
  layer.dense = true;
  layer.weight = noise({7, 3 * 4 * 5}, 1);
  at::Tensor bias = noise({7}, 2);
  at::Tensor image = noise({2, 3, 4, 5}, 3);
  at::Tensor want = at::relu(at::linear(image.flatten(1), layer.weight, bias));
  auto flattens = fused_dense(layer, bias, {Kind::relu}, true);
  EXPECT_LT(fused_error(flattens->run(image, {}), want), 2e-6);
  EXPECT_LT(fused_error(flattens->run(image.contiguous(at::MemoryFormat::ChannelsLast), {}), want), 2e-6);
  at::Tensor tokens = noise({2, 6, 60}, 4);
  auto rows = fused_dense(layer, {}, {}, false);
  EXPECT_LT(fused_error(rows->run(tokens, {}), at::linear(tokens, layer.weight)), 2e-6);
  EXPECT_THROW(rows->run(noise({2, 59}, 5), {}), std::exception);
}

TEST(FusedNormTest, EqualsTheLayersOneByOneAndMayOverwrite) {
  c10::InferenceMode inference;
  FusedNorm norm = some_norm(5);
  at::Tensor x = noise({2, 5, 3, 4}, 1).contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor sum = noise({2, 5, 3, 4}, 2);
  at::Tensor want = by_libtorch(norm, x);
  EXPECT_LT(fused_error(fused_norm(norm, {}, false)->run(x, {}), want), 2e-6);
  EXPECT_LT(fused_error(fused_norm(norm, {Kind::leaky_relu, 0.2}, false)->run(x, sum), at::leaky_relu(want + sum, 0.2)),
            2e-6);
  EXPECT_LT(fused_error(fused_norm(norm, {Kind::clip, 0, 1}, false)->run(x, sum), at::clamp(want + sum, 0, 1)), 2e-6);
  auto relu = fused_norm(norm, {Kind::relu}, true);
  at::Tensor rows = noise({4, 5}, 3);
  EXPECT_LT(fused_error(relu->run(rows, {}), at::relu(by_libtorch(norm, rows))), 2e-6);
  at::Tensor result = relu->run(x, {});
  EXPECT_EQ(result.data_ptr(), x.data_ptr());
  EXPECT_LT(fused_error(result, at::relu(want)), 2e-6);
  x.fill_(NAN);
  EXPECT_TRUE(at::isnan(relu->run(x, {})).all().item<bool>());
}

TEST(FusedPoolingTest, EqualsLibTorch) {
  c10::InferenceMode inference;
  for (std::int64_t channels : {1, 6, 16}) {
    at::Tensor x = noise({2, channels, 9, 8}, channels);
    using PoolKind = FusedPooling::Kind;
    std::vector<std::int64_t> kernel = {3, 2}, stride = {2, 2}, padding = {1, 0};
    auto pooled = [&](PoolKind kind) { return fused_pooling({kind, kernel, stride, padding})->run(x, {}); };
    EXPECT_TRUE(at::equal(pooled(PoolKind::maximum), at::max_pool2d(x, kernel, stride, padding)));
    EXPECT_LT(fused_error(pooled(PoolKind::average), at::avg_pool2d(x, kernel, stride, padding, false, true)), 1e-6);
    EXPECT_LT(fused_error(pooled(PoolKind::average_without_padding),
                          at::avg_pool2d(x, kernel, stride, padding, false, false)),
              1e-6);
  }
}

}  // namespace
}  // namespace galvani
