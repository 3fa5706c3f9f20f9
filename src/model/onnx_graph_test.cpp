#include "galvani/model/onnx_graph.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/onnx/test_graph.h"
#include "model/testing.h"

namespace galvani {
namespace {

// sum = table[ids] · factor, and the ids themselves, twice.
std::string lookup_model() {
  onnx::TestGraph test;
  test.input("ids", {-1}, ::onnx::TensorProto::INT64);
  test.input("factor", {});
  test.weight("table", at::arange(6, at::kFloat).view({3, 2}));
  test.node("Gather", {"table", "ids"}, {"rows"});
  test.node("Mul", {"rows", "factor"}, {"scaled"});
  test.node("Add", {"ids", "ids"}, {"twice"});
  test.output("scaled");
  test.output("twice");
  return test.model.SerializeAsString();
}

TEST(OnnxGraph, RunsWhatTakesNoImage) {
  auto graph = OnnxGraph::from_bytes(lookup_model(), "m");
  ASSERT_EQ(graph->inputs().size(), 2U);
  EXPECT_EQ(graph->inputs()[0].name, "ids");
  EXPECT_EQ(graph->inputs()[0].type, at::kLong);
  EXPECT_EQ(graph->inputs()[0].shape, (std::vector<std::int64_t>{-1}));
  EXPECT_EQ(graph->outputs()[1].name, "twice");
  for (std::int64_t n : {1, 3, 2}) {  // of any length, in any order
    at::Tensor ids = at::arange(n, at::kLong);
    auto found = graph->run({ids, at::tensor(0.5F)});
    ASSERT_EQ(found.size(), 2U);
    EXPECT_TRUE(found[0].equal(at::arange(2 * n, at::kFloat).view({n, 2}) * 0.5));
    EXPECT_TRUE(found[1].equal(ids * 2));
  }
}

TEST(OnnxGraph, SaysWhatIsWrong) {
  auto graph = OnnxGraph::from_bytes(lookup_model(), "m");
  std::string outside = testing::error_of([&] { graph->run({at::full({1}, 7, at::kLong), at::tensor(1.0F)}); });
  EXPECT_NE(outside.find("m: fails while running"), std::string::npos) << outside;
  EXPECT_NE(testing::error_of([] { OnnxGraph::from_bytes("no model", "m"); }).find("m: "), std::string::npos);
  EXPECT_NE(testing::error_of([] { OnnxGraph::load("no/such.onnx"); }).find("no/such.onnx"), std::string::npos);
}

}  // namespace
}  // namespace galvani
