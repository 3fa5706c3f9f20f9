#include "model/torchscript/code_check.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/irparser.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/script.h>

#include "galvani/base/error.h"
#include "galvani/model/operators.h"
#include "model/freeze.h"
#include "model/torchscript/attribute_check.h"

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
  for (const char* name : {"aten::save", "aten::from_file", "aten::as_strided", "aten::as_strided_",
                           "aten::_reshape_alias", "aten::set_", "aten::resize_", "aten::empty_strided",
                           "aten::manual_seed", "prim::Print", "prim::fork", "aten::wait", "prim::AddStatValue",
                           "prim::PythonOp", "aten::embedding_bag", "aten::bincount", "aten::sorted", "aten::device"})
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

// Only archives can say it.
std::string refused_cast(const std::string& from, const std::string& to) {
  auto graph = std::make_shared<torch::jit::Graph>();
  torch::jit::parseIR("graph(%x : " + from + "):\n  %y : " + to + " = prim::unchecked_cast(%x)\n  return (%y)\n",
                      graph.get());
  torch::jit::Module module("m");
  module._ivalue()->compilation_unit()->create_function("f", graph);
  return refusal_of([&] { check_operators(module, "m.pt"); });
}

TEST(CodeCheck, AnOptionalValueIsNarrowedAndNothingElseIsCast) {
  EXPECT_EQ(refused_operators("  a: Optional[int] = None\n  if bool(x.sum() > 0):\n    a = 1\n"
                              "  b: Optional[Tensor] = x\n  assert b is not None\n"
                              "  if a is not None:\n    return b + a\n  return b"),
            "");
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"int?", "int"}, {"Tensor?", "Tensor"}, {"int[]?", "int[]"}, {"int", "int"}, {"int", "int?"}})
    EXPECT_EQ(refused_cast(from, to), "") << from << " " << to;
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"Tensor", "int"},
                                                                                 {"int", "Tensor"},
                                                                                 {"Tensor[]", "int[]"},
                                                                                 {"(int)", "(int, int)"},
                                                                                 {"float?", "int"},
                                                                                 {"int?", "Tensor?"},
                                                                                 {"Any", "int"}})
    EXPECT_NE(refused_cast(from, to).find("for one of type"), std::string::npos) << from << " " << to;
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

// As it is after loading: submodules inlined, in evaluation mode whatever the file says.
std::string refused_in_evaluation(const std::string& body) {
  torch::jit::Module inner("inner"), module("m");
  for (torch::jit::Module* part : {&inner, &module}) part->register_attribute("training", c10::BoolType::get(), true);
  inner.define(
      "def forward(self, x: Tensor):\n  if self.training:\n    x = x + torch.empty([1]).bernoulli_(0.5)\n"
      "  return torch.feature_dropout(x, 0.5, self.training)\n");
  module.register_module("inner", inner);
  module.define("def forward(self, x: Tensor):\n" + body + "\n");
  FrozenModule frozen = freeze_script(module);
  return refusal_of([&] { check_frozen(*frozen.graph, "m.pt"); });
}

TEST(CodeCheck, AScriptedModelsDropoutIsOffInEvaluation) {
  for (const char* body : {"  return self.inner.forward(x)", "  return torch.dropout(x, 0.5, self.training)",
                           "  return torch.dropout_(x + 1, 0.5, self.training)",
                           "  if self.training:\n    x = torch.dropout(x, 0.5, True)\n  return torch.relu(x)",
                           "  if self.training:\n    x = torch.rand_like(x)\n  return torch.relu(x)",
                           "  return torch.rrelu(x, 0.1, 0.3, self.training)", "  return torch.dropout(x, 0.0, True)"})
    EXPECT_EQ(refused_in_evaluation(body), "") << body;
}

TEST(CodeCheck, WhatDrawsInEvaluationIsRefusedWithTheRemedy) {
  // A model that was traced in training mode has the flag as a constant.
  for (const char* body :
       {"  return torch.dropout(x, 0.5, True)", "  return torch.dropout_(x + 1, 0.5, True)",
        "  return torch.feature_dropout(x, 0.5, True)", "  return torch.alpha_dropout(x, 0.5, True)",
        "  if bool(x.sum() > 0):\n    x = torch.dropout(x, 0.5, True)\n  return x",
        "  return torch.dropout(x, 0.5, bool(x.sum() > 0))", "  return torch.dropout(self.inner.forward(x), 0.5, True)",
        "  return torch.rrelu(x, 0.1, 0.3, True)"}) {
    std::string said = refused_in_evaluation(body);
    EXPECT_NE(said.find("left in training mode"), std::string::npos) << body << said;
    EXPECT_NE(said.find("call model.eval() before torch.jit.trace or torch.jit.script"), std::string::npos) << said;
  }
  EXPECT_NE(
      refused_in_evaluation("  m = torch.zeros([3])\n  return torch.batch_norm(x, None, None, m, m + 1, True, 0.1, "
                            "1e-5, False)")
          .find("batch normalisation left in training mode"),
      std::string::npos);
  EXPECT_EQ(refused_in_evaluation("  return torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)"), "")
      << "statistics of the batch are what the model was made with";
  for (const char* value :
       {"torch.rand_like(x)", "torch.randn([2])", "torch.rand([2])", "torch.bernoulli(x)", "torch.bernoulli(x, 0.5)",
        "torch.randint(0, 5, [2])", "torch.randint_like(x, 5)", "torch.randperm(5)", "torch.multinomial(x, 1)",
        "torch.normal(x, 1.0)", "torch.zeros([2]).uniform_()", "torch.zeros([2]).normal_()"}) {
    std::string said = refused_in_evaluation(std::string("  return x + ") + value);
    EXPECT_NE(said.find("draws random numbers"), std::string::npos) << value << said;
  }
}

TEST(AttributeCheck, ValuesHaveTheTypesThatTheirClassDeclares) {
  auto refused = [](const c10::TypePtr& declared, const c10::IValue& value) {
    torch::jit::Module module("m"), part("part");
    part.register_attribute("a", c10::OptionalType::create(declared), c10::IValue());
    module.register_module("part", part);
    part._ivalue()->setSlot(0, value);
    return refusal_of([&] { check_attributes(module, "m.pt"); });
  };
  auto integer = c10::IntType::get();
  auto list = c10::ListType::ofInts();
  auto pair = c10::TupleType::create({integer, c10::TensorType::get()});
  auto dict = c10::DictType::create(c10::StringType::get(), list);
  auto one = c10::ivalue::Tuple::create({1, at::zeros({1})});
  c10::impl::GenericList texts(c10::StringType::get());
  texts.push_back("a");
  c10::impl::GenericDict lists(c10::StringType::get(), list);
  lists.insert("a", c10::List<std::int64_t>({1}));
  c10::impl::GenericDict wrong(c10::StringType::get(), list);
  wrong.insert("a", texts);
  for (const auto& [declared, value] :
       std::vector<std::pair<c10::TypePtr, c10::IValue>>{{integer, 1},
                                                         {integer, c10::IValue()},
                                                         {list, c10::List<std::int64_t>({1, 2})},
                                                         {pair, one},
                                                         {dict, lists},
                                                         {c10::TensorType::get(), at::zeros({1})}})
    EXPECT_EQ(refused(declared, value), "") << declared->repr_str();
  for (const auto& [declared, value] :
       std::vector<std::pair<c10::TypePtr, c10::IValue>>{{integer, 1.5},
                                                         {integer, true},
                                                         {integer, "1"},
                                                         {integer, at::zeros({1})},
                                                         {c10::TensorType::get(), 1},
                                                         {list, texts},
                                                         {list, 1},
                                                         {pair, c10::ivalue::Tuple::create({1})},
                                                         {pair, c10::ivalue::Tuple::create({1, 2})},
                                                         {dict, wrong},
                                                         {dict, 1}})
    EXPECT_NE(refused(declared, value).find("attribute 'a' of type"), std::string::npos) << declared->repr_str();
  // An object of another class has other attributes in the same places.
  torch::jit::Module module("m"), part("part"), other("other");
  part.register_attribute("a", integer, 1);
  module.register_module("part", part);
  EXPECT_EQ(refusal_of([&] { check_attributes(module, "m.pt"); }), "");
  module._ivalue()->setSlot(0, other._ivalue());
  EXPECT_NE(refusal_of([&] { check_attributes(module, "m.pt"); }).find("attribute 'part'"), std::string::npos);
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
