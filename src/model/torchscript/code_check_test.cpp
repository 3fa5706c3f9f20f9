#include "model/torchscript/code_check.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/script.h>

#include "galvani/base/error.h"
#include "galvani/model/operators.h"

namespace galvani::torchscript {
namespace {

std::string refusal_of(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_input);
    return e.what();
  }
  return "";
}

std::string refused_source(const std::string& code) {
  return refusal_of([&] { check_source(code, "code/__torch__.py", "m.pt"); });
}

std::string refused_operators(const std::string& body) {
  torch::jit::Module module("m");
  module.define("def forward(self, x: Tensor):\n" + body + "\n");
  return refusal_of([&] { check_operators(module, "m.pt"); });
}

TEST(CodeCheck, EveryListedOperatorExists) {
  std::set<std::string> known;
  for (const auto& op : torch::jit::getAllOperators()) known.insert(op->schema().name());
  for (const OperatorGroup& group : torchscript_operators()) {
    for (const std::string& name : group.names) {
      // Nodes of the graph itself have no entry among the operators.
      bool listed = name.rfind("aten::", 0) == 0;
      EXPECT_TRUE(!listed || known.count(name) == 1) << name;
    }
  }
}

TEST(CodeCheck, WhatTouchesTheWorldIsNotListed) {
  std::set<std::string> listed;
  for (const OperatorGroup& group : torchscript_operators()) listed.insert(group.names.begin(), group.names.end());
  for (const char* name :
       {"aten::save", "aten::from_file", "aten::as_strided", "aten::as_strided_", "aten::_reshape_alias", "aten::set_",
        "aten::resize_", "aten::empty_strided", "aten::manual_seed", "prim::Print", "prim::fork", "aten::wait",
        "prim::AddStatValue", "prim::PythonOp", "aten::embedding_bag", "aten::sorted", "aten::device"})
    EXPECT_EQ(listed.count(name), 0U) << name;
}

TEST(CodeCheck, LiteralsMayBeEvaluatedWhileLoading) {
  EXPECT_EQ(refused_source("op_version_set = 1\nimport __torch__.torch\n"
                           "class M(Module):\n  __parameters__ = [\"w\", ]\n  w : Tensor\n  a : Final[int] = -3\n"
                           "  b : Final[float] = float(\"inf\")\n  c : Final[Tuple[int, int]] = (1, [2, 3])\n"
                           "  d : Final[Optional[int]] = None\n  __annotations__[\"0\"] = Tensor\n"
                           "  def forward(self, x: Tensor, y: float=1e-5, z: bool=False) -> Tensor:\n    return x\n"
                           "def f(x: Tensor, y: List[int]=annotate(List[int], [])) -> Tensor:\n  return x\n"),
            "");
}

TEST(CodeCheck, NothingElseRunsWhileLoading) {
  EXPECT_NE(refused_source("class M(Module):\n  a : Final[int] = torch.size(1)\n"), "");
  EXPECT_NE(refused_source("class M(Module):\n  a = b\n"), "");
  EXPECT_NE(refused_source("class M(Module):\n  __constants__ = [\"a\"]\n"), "") << "LibTorch crashes";
  EXPECT_NE(refused_source("class M(Module):\n  def __setstate__(self, x: int) -> None:\n    pass\n"), "");
  EXPECT_NE(refused_source("def f(x: int=g(1)) -> int:\n  return x\n"), "");
  EXPECT_NE(refused_source("def f(x: int=[1, g(1)]) -> int:\n  return x\n"), "");
  EXPECT_NE(refused_source("def f(x: int=float(g(1))) -> int:\n  return x\n"), "");
  EXPECT_NE(refused_source("torch.save(1, \"x\")\nx\n"), "nothing runs, but it is no TorchScript either");
  EXPECT_NE(refused_source("def f(:"), "");
}

TEST(CodeCheck, OperatorsOffTheListAreRefusedByName) {
  EXPECT_EQ(refused_operators("  return torch.relu(x)"), "");
  EXPECT_NE(refused_operators("  f = torch.save\n  f(x, 'a')\n  return x").find("aten::save"), std::string::npos);
  EXPECT_NE(refused_operators("  if bool(x):\n    for i in range(3):\n      print(i)\n  return x").find("prim::Print"),
            std::string::npos);
  EXPECT_NE(refused_operators("  return torch.add(x, x, out=x)").find("out="), std::string::npos);
  EXPECT_NE(refused_operators("  l = [2.0, 1.0]\n  l.sort()\n  return x + l[0]").find("aten::sort"), std::string::npos);
  EXPECT_EQ(refused_operators("  return torch.sort(x)[0]"), "");
  EXPECT_NE(refused_operators("  return torch.zeros([2], dtype=12)"), "");
  EXPECT_NE(refused_operators("  return x.to('meta')").find("meta"), std::string::npos);
}

TEST(CodeCheck, AFunctionThatNobodyCallsIsChecked) {
  torch::jit::Module module("m");
  module.define(
      "def forward(self, x: Tensor):\n  return x\ndef other(self, x: Tensor):\n  torch.save(x, 'a')\n  return x\n");
  EXPECT_NE(refusal_of([&] { check_operators(module, "m.pt"); }).find("aten::save"), std::string::npos);
}

std::string refused_frozen(const std::string& body) {
  torch::jit::Module module("m");
  module.register_attribute("items", c10::ListType::ofInts(), c10::List<std::int64_t>({1}));
  module.register_attribute("count", c10::IntType::get(), std::int64_t{1});
  module.register_buffer("sums", at::zeros({1}));
  module.define("def forward(self, x: Tensor):\n" + body + "\n");
  std::shared_ptr<torch::jit::Graph> graph = module.get_method("forward").graph()->copy();
  return refusal_of([&] { check_frozen(*graph, "m.pt"); });
}

TEST(CodeCheck, AModelMayChangeOnlyWhatAPassMade) {
  EXPECT_EQ(refused_frozen("  l = [x]\n  for i in range(3):\n    l.append(x)\n  return torch.cat(l)"), "");
  EXPECT_EQ(
      refused_frozen("  if bool(x.sum() > 0):\n    l = [1]\n  else:\n    l = x.size()\n  l.append(1)\n  return x"), "");
  EXPECT_EQ(refused_frozen("  y = x + 1\n  y += 1\n  return y"), "");
  EXPECT_NE(refused_frozen("  self.items.append(1)\n  return x"), "");
  EXPECT_NE(refused_frozen("  l = self.items\n  for i in range(3):\n    l.append(i)\n  return x"), "");
  EXPECT_NE(refused_frozen("  if bool(x.sum() > 0):\n    l = [1]\n  else:\n    l = self.items\n  l[0] = 1\n  return x"),
            "");
  EXPECT_NE(refused_frozen("  l = [self.items]\n  l[0].append(1)\n  return x"), "");
  EXPECT_NE(refused_frozen("  self.count = 2\n  return x"), "");
  EXPECT_NE(refused_frozen("  self.sums += 1\n  return x"), "");
}

TEST(CodeCheck, WarningsOfAModelAreNotPrinted) {
  torch::jit::Module module("m");
  module.define("def forward(self, x: Tensor):\n  torch.warn('hello')\n  return x\n");
  auto graph = module.get_method("forward").graph()->copy();
  check_frozen(*graph, "m.pt");
  for (const torch::jit::Node* node : graph->nodes()) EXPECT_NE(node->kind(), c10::aten::warn);
}

}  // namespace
}  // namespace galvani::torchscript
