#include "galvani/model/evaluate.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/onnx/test_graph.h"

namespace galvani {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<std::int64_t> numbers(const at::Tensor& t) {
  return {t.data_ptr<std::int64_t>(), t.data_ptr<std::int64_t>() + t.numel()};
}

TEST(Verdicts, ScoresThatAreNotFiniteAreNoClass) {
  at::Tensor scores = at::tensor({1.F, 3.F, 2.F,      //
                                  1.F, kNaN, 2.F,     //
                                  kInf, 0.F, 1.F,     //
                                  1.F, -kInf, 2.F,    //
                                  -3.F, -2.F, -1.F},  //
                                 at::kFloat)
                          .view({5, 3});
  at::Tensor found = verdicts(scores);
  EXPECT_EQ(numbers(found), (std::vector<std::int64_t>{1, kNotANumber, kNotANumber, kNotANumber, 2}));
  at::Tensor sure = confidences(scores.softmax(1), found);
  // e³ / (e + e² + e³)
  EXPECT_NEAR(sure[0].item<float>(), 0.66524096, 1e-6);
  for (int row : {1, 2, 3}) EXPECT_EQ(sure[row].item<float>(), 0);
  EXPECT_NEAR(sure[4].item<float>(), 0.66524096, 1e-6);
  EXPECT_EQ(verdicts(at::empty({0, 3})).numel(), 0);
}

// Scores (log(2 - mean), mean): the first is no number where the mean of the 0..4 input is above 2, -inf where it is 2.
std::unique_ptr<Network> logarithm() {
  onnx::TestGraph g;
  g.input("x", {-1, 1, 2, 2});
  onnx::TestGraph::set(g.node("Flatten", {"x"}, {"flat"}), "axis", 1);
  g.weight("w", at::tensor({-0.25F, 0.25F}, at::kFloat).repeat({4, 1}));
  g.weight("two", at::tensor({2.F, 0.F}, at::kFloat));
  g.node("Gemm", {"flat", "w", "two"}, {"sums"}, "sums");
  g.weight("one_each", at::tensor({1, 1}, at::kLong));
  onnx::TestGraph::set(g.node("Split", {"sums", "one_each"}, {"a", "b"}), "axis", 1);
  g.node("Log", {"a"}, {"log"});
  onnx::TestGraph::set(g.node("Concat", {"log", "b"}, {"y"}), "axis", 1);
  g.output("y");
  Network::Options options;
  options.flags.range = "0..4";
  options.execution = {2, false};
  return Network::from_onnx(g.bytes(), "logarithm", options);
}

TEST(Verdicts, PredictionsAndAccuracyCountThemAsWrong) {
  std::unique_ptr<Network> network = logarithm();
  Dataset data;
  data.name = "grey";
  // Means of 0, 1, 2 and 4: scores (log 2, 0), (0, 1), (-inf, 2), (NaN, 4).
  at::Tensor levels = at::tensor({0.F, 63.75F, 127.5F, 255.F}, at::kFloat);
  data.images = levels.view({4, 1, 1, 1}).expand({4, 1, 2, 2}).contiguous();
  data.labels = at::tensor({0, 0, 1, 1}, at::kLong);
  Predictions said = predict(*network, data.images);
  EXPECT_EQ(numbers(said.labels), (std::vector<std::int64_t>{0, 1, kNotANumber, kNotANumber}));
  EXPECT_EQ(said.confidence[3].item<float>(), 0);
  EXPECT_NEAR(said.confidence[0].item<float>(), 2.0 / 3, 1e-5);
  EXPECT_EQ(said.reexamined, 2) << "such verdicts are taken in canonical form, too";
  Scoring scoring(*network, data);
  scoring.add(said, 0);
  Evaluation found = scoring.result();
  EXPECT_EQ(found.correct, 1);
  EXPECT_EQ(numbers(found.confusion.flatten()), (std::vector<std::int64_t>{1, 1, 0, 0}));
  EXPECT_EQ(numbers(found.not_a_number), (std::vector<std::int64_t>{0, 2}));
  data.class_names = {"dark", "bright"};
  EXPECT_EQ(verdict_name(*network, data, kNotANumber), "not a number");
  EXPECT_EQ(verdict_name(*network, data, 1), "bright");
  data.class_names.clear();
  EXPECT_EQ(verdict_name(*network, data, 1), "1");
}

}  // namespace
}  // namespace galvani
