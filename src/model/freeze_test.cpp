#include "model/freeze.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>

#include <limits>

#include "galvani/base/rng.h"
#include "galvani/model/zoo.h"
#include "model/graph_tools.h"
#include "model/onnx/program.h"
#include "model/onnx/test_graph.h"

namespace galvani {
namespace {

using onnx::TestGraph;
using torch::jit::Node;

torch::jit::Module imported(const std::string& bytes) {
  torch::jit::Module module("model");
  onnx::build_module(onnx::import_onnx(bytes, ".", "m.onnx"), "m.onnx", module);
  return module;
}

// Every operator with the operators or attributes that its inputs come from.
std::vector<std::string> operators(const FrozenModule& frozen) {
  torch::jit::EliminateDeadCode(frozen.graph);
  std::vector<std::string> result;
  for (const Node* node : frozen.graph->nodes()) {
    if (node->kind() == c10::prim::Constant || node->kind() == c10::prim::GetAttr) continue;
    std::string text = operator_name(node);
    for (const torch::jit::Value* input : node->inputs())
      text += " " + operator_name(input->node()) + ":" + attribute_path(input);
    result.push_back(text);
  }
  return result;
}

void expect_same_graph(const std::string& bytes) {
  torch::jit::Module one = imported(bytes);
  torch::jit::Module other = imported(bytes);
  EXPECT_EQ(operators(freeze_import(one)), operators(freeze_script(other)));
}

TEST(Freeze, ImportedGraphsBecomeWhatLibTorchMakesOfThem) {
  Rng rng(1);
  for (const char* name : {"lenet5", "resnet20", "mobilenet_v2"}) {
    ArchitectureShape shape =
        std::string(name) == "lenet5" ? ArchitectureShape{1, 28, 28, 10} : ArchitectureShape{3, 32, 32, 10};
    expect_same_graph(architectures().create(Spec::parse(name), shape, rng));
  }
}

TEST(Freeze, WeightsReadTwiceEqualNodesAndBranches) {
  TestGraph graph(18);
  graph.input("x", {-1, 3, 2, 2});
  graph.weight("w", at::ones({3, 3, 1, 1}));
  graph.weight("axes", at::tensor({std::int64_t{2}}, at::kLong));
  graph.node("Conv", {"x", "w"}, {"a"});
  graph.node("Conv", {"x", "w"}, {"b"});  // the same once more
  graph.node("Conv", {"a", "w"}, {"c"});
  graph.node("Dropout", {"b"}, {"d"});
  graph.node("Add", {"c", "d"}, {"e"});
  // Axes that only the run tells make a branch.
  graph.node("Shape", {"x"}, {"shape"});
  graph.node("Mul", {"shape", "axes"}, {"some"});
  TestGraph::set(graph.node("ReduceSum", {"e", "some"}, {"y"}), "noop_with_empty_axes", 1);
  graph.output("y");
  expect_same_graph(graph.bytes());
  torch::jit::Module module = imported(graph.bytes());
  std::vector<std::string> found = operators(freeze_import(module));
  EXPECT_EQ(std::count(found.begin(), found.end(), found.at(0)), 1);
}

TEST(Freeze, SharesTheWeightsOfTheModule) {
  TestGraph graph;
  graph.input("x", {-1, 3});
  graph.weight("w", at::ones({3, 2}));
  graph.node("MatMul", {"x", "w"}, {"y"});
  graph.output("y");
  torch::jit::Module module = imported(graph.bytes());
  FrozenModule frozen = freeze_import(module);
  EXPECT_TRUE(attribute_at(module, "p0").is_alias_of(attribute_at(frozen.module, "p0")));
  EXPECT_FALSE(attribute_at(frozen.module, "p0").requires_grad());
}

std::vector<c10::IValue> divided(std::int64_t a, std::int64_t b) {
  torch::jit::Module module("m");
  module.define("def forward(self, a: int, b: int):\n  return [a // b, a % b]\n");
  FrozenModule frozen = freeze_script(module);
  torch::jit::Code code(frozen.graph, "forward");
  torch::jit::Stack stack{frozen.module._ivalue(), a, b};
  torch::jit::InterpreterState(code).run(stack);
  return {stack.back().toIntList().get(0), stack.back().toIntList().get(1)};
}

TEST(Freeze, WholeNumbersAreDividedAsPythonDoesAndNeverEndTheProcess) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const std::int64_t table[][4] = {{7, 2, 3, 1}, {-7, 2, -4, 1}, {7, -2, -4, -1},        {-7, -2, 3, -1},
                                   {6, 3, 2, 0}, {-6, 3, -2, 0}, {kLeast, 1, kLeast, 0}, {5, -1, -5, 0}};
  for (const auto& row : table) {
    std::vector<c10::IValue> found = divided(row[0], row[1]);
    EXPECT_EQ(found[0].toInt(), row[2]) << row[0] << " // " << row[1];
    EXPECT_EQ(found[1].toInt(), row[3]) << row[0] << " % " << row[1];
  }
  EXPECT_THROW(divided(7, 0), std::exception);
  EXPECT_THROW(divided(kLeast, -1), std::exception);
  // What is saved again later does not know our operators.
  torch::jit::Module module("m");
  module.define("def forward(self, a: int, b: int):\n  return a % b\n");
  freeze_script(module);
  EXPECT_EQ(module.get_method("forward").graph()->toString().find("galvani"), std::string::npos);
}

}  // namespace
}  // namespace galvani
