#include "model/input_arithmetic.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "model/onnx/test_graph.h"

namespace galvani {
namespace {

// A classifier of the mean behind what `before` makes of "x".
std::optional<InputArithmetic> of_graph(const std::function<void(onnx::TestGraph&)>& before) {
  onnx::TestGraph g;
  g.input("x", {-1, 1, 4, 4});
  before(g);
  onnx::TestGraph::set(g.node("Flatten", {"h"}, {"flat"}), "axis", 1);
  g.weight("w", at::linspace(-1, 1, 32).view({16, 2}));
  g.weight("b", at::tensor({0.0F, 0.5F}));
  g.node("Gemm", {"flat", "w", "b"}, {"y"}, "dense");
  g.output("y");
  Network::Options options;
  options.execution = {4, false};
  return input_arithmetic(*Network::from_onnx(g.bytes(), "small", options));
}

TEST(InputArithmetic, IsReadFromTheGraph) {
  auto divided = of_graph([](auto& g) {
    g.weight("full", at::tensor({255.0F}));
    g.node("Div", {"x", "full"}, {"h"});
  });
  ASSERT_TRUE(divided);
  EXPECT_NEAR(divided->scale, 1.0 / 255, 1e-9);
  EXPECT_TRUE(takes_bytes_as_they_are(*divided));
  // (x / 255 - 0.5) / 0.25, by a product and a sum with the input as the second operand.
  auto normalised = of_graph([](auto& g) {
    g.weight("a", at::full({1, 1, 1, 1}, 1 / 63.75F));
    g.weight("b0", at::tensor({-2.0F}));
    g.node("Mul", {"a", "x"}, {"s"});
    g.node("Identity", {"s"}, {"t"});
    g.node("Add", {"b0", "t"}, {"h"});
  });
  ASSERT_TRUE(normalised);
  EXPECT_NEAR(normalised->scale, 1 / 63.75, 1e-7);
  EXPECT_NEAR(normalised->shift, -2, 1e-6);
  EXPECT_TRUE(takes_bytes_as_they_are(*normalised));
  auto of_unit = of_graph([](auto& g) {
    g.weight("mean", at::tensor({0.45F}));
    g.weight("std", at::tensor({0.225F}));
    g.node("Sub", {"x", "mean"}, {"s"});
    g.node("Div", {"s", "std"}, {"h"});
  });
  ASSERT_TRUE(of_unit);
  EXPECT_NEAR(of_unit->scale, 1 / 0.225, 1e-5);
  EXPECT_NEAR(of_unit->shift, -2, 1e-5);
  EXPECT_FALSE(takes_bytes_as_they_are(*of_unit)) << "it takes 0..1";
  auto caffe = of_graph([](auto& g) {
    g.weight("mean", at::tensor({117.0F}));
    g.node("Sub", {"x", "mean"}, {"h"});
  });
  ASSERT_TRUE(caffe);
  EXPECT_TRUE(takes_bytes_as_they_are(*caffe));
  auto norm = of_graph([](auto& g) {
    for (auto [name, value] : {std::pair{"g", 2.0F}, {"o", 1.0F}, {"m", 128.0F}, {"v", 4096.0F}})
      g.weight(name, at::tensor({value}));
    g.node("BatchNormalization", {"x", "g", "o", "m", "v"}, {"h"});
  });
  ASSERT_TRUE(norm);
  EXPECT_NEAR(norm->scale, 2.0 / 64, 1e-6);
  EXPECT_NEAR(norm->shift, 1 - 128 * 2.0 / 64, 1e-5);
  EXPECT_TRUE(takes_bytes_as_they_are(*norm));
}

TEST(InputArithmetic, IsNothingWhereTheFirstLayerTakesTheInput) {
  EXPECT_FALSE(of_graph([](auto& g) { g.node("Identity", {"x"}, {"h"}); }));
  EXPECT_FALSE(of_graph([](auto& g) {
    g.weight("full", at::tensor({255.0F}));
    g.node("Div", {"full", "x"}, {"h"});
  })) << "a number divided by the input";
  EXPECT_FALSE(of_graph([](auto& g) { g.node("Mul", {"x", "x"}, {"h"}); }));
}

}  // namespace
}  // namespace galvani
