#include "model/torchscript/code_check.h"

#include <torch/csrc/jit/frontend/lexer.h>
#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/script.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "galvani/base/error.h"
#include "galvani/base/limits.h"
#include "galvani/model/operators.h"
#include "model/random_layers.h"

namespace galvani::torchscript {
namespace {

namespace jit = torch::jit;
using jit::Node;
using jit::Value;

constexpr const char* kRemedy = "set GALVANI_TRUST_MODELS=1 if you made the file yourself";

constexpr const char* kLookUp = "galvani::look_up";
const jit::RegisterOperators look_up({jit::Operator(
    fmt::format("{}() -> ()", kLookUp), [](jit::Stack&) { check_step(); }, c10::AliasAnalysisKind::CONSERVATIVE)});

// --- source text

// A value that is what it says: no name is looked up and nothing is called but the constructors of plain values.
bool is_literal(const jit::TreeRef& tree) {
  switch (tree->kind()) {
    case jit::TK_CONST:
    case jit::TK_STRINGLITERAL:
    case jit::TK_TRUE:
    case jit::TK_FALSE:
    case jit::TK_NONE:
      return true;
    case jit::TK_UNARY_MINUS:
    case jit::TK_LIST_LITERAL:
    case jit::TK_TUPLE_LITERAL:
    case jit::TK_DICT_LITERAL:
    case jit::TK_LIST:
      return std::all_of(tree->trees().begin(), tree->trees().end(), is_literal);
    case jit::TK_APPLY: {
      jit::Apply call(tree);
      if (call.callee().kind() != jit::TK_VAR || !call.attributes().empty()) return false;
      std::string name = jit::Var(call.callee()).name().name();
      if (name == "annotate") return call.inputs().size() == 2 && is_literal(call.inputs()[1]);
      return name == "float" && call.inputs().size() == 1 && is_literal(call.inputs()[0]);
    }
    default:
      return false;
  }
}

class SourceCheck {
 public:
  SourceCheck(const std::string& code, const std::string& name, const std::string& label)
      : parser_(std::make_shared<jit::Source>(code, name, 1)), where_(label + ": its code " + printable(name)) {}

  void run() {
    jit::Lexer& lexer = parser_.lexer();
    while (lexer.cur().kind != jit::TK_EOF) {
      switch (lexer.cur().kind) {
        case jit::TK_CLASS_DEF:
          check_class(jit::ClassDef(parser_.parseClass()));
          break;
        case jit::TK_DEF:
          check_function(jit::Def(parser_.parseFunction(/*is_method=*/false)));
          break;
        case jit::TK_IMPORT:
        case jit::TK_IDENT:  // "op_version_set = 1", as older versions wrote it
          while (lexer.cur().kind != jit::TK_NEWLINE && lexer.cur().kind != jit::TK_EOF) lexer.next();
          lexer.nextIf(jit::TK_NEWLINE);
          break;
        default:
          bad_input("{} has something else than classes and functions", where_);
      }
    }
  }

 private:
  void check_class(const jit::ClassDef& type) const {
    for (const jit::Stmt& statement : type.body()) {
      if (statement.kind() == jit::TK_DEF) {
        check_function(jit::Def(statement));
      } else if (statement.kind() == jit::TK_ASSIGN) {
        jit::Assign assign(statement);
        // LibTorch takes it for a constant and reads the type that is not there.
        if (assign.rhs().present() && !assign.type().present() && !may_be_untyped(type, assign))
          bad_input("{} gives the class {} a constant without a type", where_, printable(type.name().name()));
        if (assign.rhs().present() && !is_literal(assign.rhs().get()) && assign.lhs().kind() != jit::TK_SUBSCRIPT)
          bad_input("{} computes a constant of the class {} while it is loaded; refused, {}", where_,
                    printable(type.name().name()), kRemedy);
      } else if (statement.kind() != jit::TK_PASS) {
        bad_input("{} has a class with something else than attributes and methods", where_);
      }
    }
  }

  static bool may_be_untyped(const jit::ClassDef& type, const jit::Assign& assign) {
    static const std::set<std::string> kKnown = {"__parameters__", "__buffers__", "__annotations__",
                                                 "__forward_hooks__", "__forward_pre_hooks__"};
    if (assign.lhs().kind() != jit::TK_VAR) return true;
    bool enumeration = type.superclass().present() && type.superclass().get().kind() == jit::TK_VAR &&
                       jit::Var(type.superclass().get()).name().name() == "Enum";
    return enumeration || kKnown.count(jit::Var(assign.lhs()).name().name()) != 0;
  }

  void check_function(const jit::Def& function) const {
    static const std::set<std::string> kRestoring = {"__setstate__", "__getstate__"};
    if (kRestoring.count(function.name().name()) != 0)
      bad_input("{} has a method {}, which runs while it is loaded or saved; refused, {}", where_,
                function.name().name(), kRemedy);
    for (const jit::Param& parameter : function.decl().params()) {
      if (parameter.defaultValue().present() && !is_literal(parameter.defaultValue().get()))
        bad_input("{} computes a default value of {} while it is loaded; refused, {}", where_,
                  printable(function.name().name()), kRemedy);
    }
  }

  jit::Parser parser_;
  std::string where_;
};

// --- compiled graphs

bool is_tensor(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::TensorType;
}

bool begins_with_tensors(const c10::FunctionSchema& schema) {
  if (schema.arguments().empty()) return false;
  const c10::TypePtr& first = schema.arguments()[0].type();
  if (is_tensor(first)) return true;
  bool list = first->kind() == c10::TypeKind::ListType && is_tensor(first->containedType(0));
  const c10::AliasInfo* alias = schema.arguments()[0].alias_info();
  return list && (alias == nullptr || !alias->isWrite());
}

bool writes_into_given(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(),
                     [](const c10::Argument& argument) { return argument.is_out(); });
}

// Types whose values hold more than data: classes written in C++, futures, storages, generators.
bool is_foreign(const c10::TypePtr& type, int depth = 0) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
    case c10::TypeKind::IntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::ComplexType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::NoneType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::DeviceObjType:
    case c10::TypeKind::ScalarTypeType:
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType:
    case c10::TypeKind::EnumType:
    case c10::TypeKind::FunctionType:
    case c10::TypeKind::InterfaceType:
    case c10::TypeKind::AnyType:
    case c10::TypeKind::AnyListType:
    case c10::TypeKind::AnyTupleType:
    case c10::TypeKind::AnyClassType:
    case c10::TypeKind::AnyEnumType:
    case c10::TypeKind::VarType:
      return false;
    case c10::TypeKind::ClassType: {
      auto name = type->expectRef<c10::ClassType>().name();
      return !name || name->qualifiedName().rfind("__torch__.torch.classes.", 0) == 0;
    }
    case c10::TypeKind::ListType:
    case c10::TypeKind::DictType:
    case c10::TypeKind::TupleType:
    case c10::TypeKind::OptionalType:
    case c10::TypeKind::UnionType: {
      constexpr int kMostDepth = 64;
      if (depth > kMostDepth) return true;
      auto parts = type->containedTypes();
      return std::any_of(parts.begin(), parts.end(),
                         [&](const c10::TypePtr& inner) { return is_foreign(inner, depth + 1); });
    }
    default:
      return true;
  }
}

class OperatorCheck {
 public:
  explicit OperatorCheck(const std::string& label) : label_(label) {
    for (const OperatorGroup& group : torchscript_operators()) {
      for (const std::string& name : group.names) {
        bool& any = allowed_.emplace(c10::Symbol::fromQualString(name), false).first->second;
        any = any || !group.tensors;
      }
    }
  }

  // Not a recursion over blocks: how deep they are nested is the file's choice.
  void check(const jit::Block* whole) const {
    std::vector<const jit::Block*> open{whole};
    while (!open.empty()) {
      const jit::Block* block = open.back();
      open.pop_back();
      check_types(block->inputs());
      for (const Node* node : block->nodes()) {
        check(node);
        open.insert(open.end(), node->blocks().begin(), node->blocks().end());
      }
    }
  }

 private:
  void check(const Node* node) const {
    auto found = allowed_.find(node->kind());
    if (found == allowed_.end()) refuse(node, "");
    if (const c10::FunctionSchema* schema = node->maybeSchema()) {
      if (!found->second && !begins_with_tensors(*schema)) refuse(node, " of something else than tensors");
      if (writes_into_given(*schema)) refuse(node, " with out=");
      check_arguments(node, *schema);
    }
    if (node->kind() == c10::prim::Constant) check_constant(node);
    if (node->kind() == c10::prim::unchecked_cast) check_cast(node);
    check_types(node->outputs());
  }

  [[noreturn]] void refuse(const Node* node, const char* how) const {
    bad_input(
        "{}: its code uses the operator {}{}, which is not on the list of those allowed (galvani inspect "
        "--operators); refused, {}",
        label_, printable(node->kind().toQualString()), how, kRemedy);
  }

  template <class Values>
  void check_types(const Values& values) const {
    for (const Value* value : values) {
      if (is_foreign(value->type()))
        bad_input("{}: its code has a value of type {}, which is not allowed; refused, {}", label_,
                  printable(value->type()->repr_str()), kRemedy);
    }
  }

  // LibTorch believes it: what has another type is then read as if it had this one. The compiler writes it where code
  // has asked whether an optional value is None.
  void check_cast(const Node* node) const {
    c10::TypePtr from = node->input()->type();
    if (auto optional = from->cast<c10::OptionalType>()) from = optional->getElementType();
    if (!from->isSubtypeOf(*node->output()->type()))
      bad_input("{}: its code takes a value of type {} for one of type {}, which is not allowed; refused, {}", label_,
                printable(node->input()->type()->annotation_str()), printable(node->output()->type()->annotation_str()),
                kRemedy);
  }

  void check_constant(const Node* node) const {
    c10::optional<c10::IValue> value = jit::toIValue(node->output());
    if (!value) return;
    if (value->isDevice() && !value->toDevice().is_cpu())
      bad_input("{}: its code asks for the device '{}'; export it on the processor (model.cpu()) again", label_,
                value->toDevice().str());
    if (value->isTensor() && value->toTensor().defined() &&
        (value->toTensor().layout() != at::kStrided || !value->toTensor().device().is_cpu()))
      bad_input("{}: has a constant that is not an ordinary tensor", label_);
  }

  // Sparse and quantised tensors would lead into code that expects well-meant ones.
  void check_arguments(const Node* node, const c10::FunctionSchema& schema) const {
    for (const char* name : {"layout", "dtype"}) {
      if (!schema.argumentIndexWithName(name)) continue;
      c10::optional<c10::IValue> value = jit::toIValue(node->namedInput(name));
      if (!value || !value->isInt()) continue;
      bool layout = std::string(name) == "layout";
      auto number = value->toInt();
      bool plain = layout ? number == static_cast<std::int64_t>(at::kStrided) : is_plain(number);
      if (!plain)
        bad_input("{}: its code makes a tensor of an unusual {} ({}); refused", label_,
                  layout ? "layout" : "type of number", number);
    }
  }

  static bool is_plain(std::int64_t scalar_type) {
    if (scalar_type < 0 || scalar_type >= static_cast<std::int64_t>(at::ScalarType::NumOptions)) return false;
    auto type = static_cast<at::ScalarType>(scalar_type);
    return !at::isQIntType(type) && type != at::ScalarType::ComplexHalf && type != at::ScalarType::Undefined &&
           type <= at::ScalarType::BFloat16;
  }

  const std::string& label_;
  std::unordered_map<c10::Symbol, bool> allowed_;  // true: every overload; false: those that begin with a tensor
};

// --- the graph that runs

// Whether the container was made by this very pass: a list that is the model's own is shared by all threads.
bool is_fresh(const Value* value, std::set<const Value*>& seen) {
  if (!seen.insert(value).second) return true;
  const Node* node = value->node();
  std::size_t index = value->offset();
  switch (node->kind()) {
    case c10::prim::ListConstruct:
    case c10::prim::DictConstruct:
    case c10::prim::CreateObject:
      return true;
    case c10::prim::unchecked_cast:
    case c10::prim::unchecked_unwrap_optional:
      return is_fresh(node->input(0), seen);
    case c10::prim::If:
      return is_fresh(node->blocks()[0]->outputs()[index], seen) && is_fresh(node->blocks()[1]->outputs()[index], seen);
    case c10::prim::Loop:
      // Inputs and body outputs start with the trip count and the condition.
      return is_fresh(node->input(index + 2), seen) && is_fresh(node->blocks()[0]->outputs()[index + 1], seen);
    case c10::prim::Param: {
      const Node* owner = node->owningBlock()->owningNode();
      if (owner == nullptr || owner->kind() != c10::prim::Loop || index == 0) return false;
      return is_fresh(owner->input(index + 1), seen) && is_fresh(owner->blocks()[0]->outputs()[index], seen);
    }
    default: {
      const c10::FunctionSchema* schema = node->kind().is_aten() ? node->maybeSchema() : nullptr;
      return schema != nullptr && index < schema->returns().size() &&
             schema->returns()[index].alias_info() == nullptr &&
             schema->returns()[index].type()->kind() == c10::TypeKind::ListType;
    }
  }
}

// Constant parts of the model itself: reading them is all a pass may do.
bool is_models_own(const Value* value) {
  const Node* node = value->node();
  return node->kind() == c10::prim::GetAttr || node->kind() == c10::prim::Constant;
}

void check_writes(const Node* node, const std::string& label) {
  auto refuse = [&](const char* what) {
    bad_input("{}: its code changes {} while it runs ({}), so results would depend on what ran before; refused", label,
              what, printable(node->kind().toQualString()));
  };
  std::set<const Value*> seen;
  if (node->kind() == c10::prim::SetAttr && !is_fresh(node->input(0), seen)) refuse("an attribute of the model");
  const c10::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr) return;
  for (std::size_t i = 0; i < schema->arguments().size() && i < node->inputs().size(); ++i) {
    const c10::AliasInfo* alias = schema->arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    const Value* target = node->input(i);
    if (is_tensor(target->type())) {
      if (is_models_own(target)) refuse("a tensor of the model");
    } else if (seen.clear(); !is_fresh(target, seen)) {
      refuse("a list or dictionary that may be the model's own");
    }
  }
}

// The constant argument of this name; nothing: there is none, or it is not known before the graph runs.
c10::optional<c10::IValue> known_argument(const Node* node, const c10::FunctionSchema& schema, const char* name) {
  c10::optional<int> index = schema.argumentIndexWithName(name);
  if (!index || static_cast<std::size_t>(*index) >= node->inputs().size()) return c10::nullopt;
  return jit::toIValue(node->input(static_cast<std::size_t>(*index)));
}

bool may_be_in_training(const Node* node, const c10::FunctionSchema& schema) {
  for (const char* name : {"train", "training"}) {
    if (!schema.argumentIndexWithName(name)) continue;
    c10::optional<c10::IValue> flag = known_argument(node, schema, name);
    return !flag || !flag->isBool() || flag->toBool();
  }
  return false;
}

// The same input has to give the same result, alone or beside others.
void check_repeatable(const Node* node, const std::string& label) {
  constexpr const char* kEvaluate = "call model.eval() before torch.jit.trace or torch.jit.script, and export it again";
  const c10::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr || !node->kind().is_aten()) return;
  if (may_be_in_training(node, *schema)) {
    if (node->kind() == c10::aten::batch_norm) {
      if (node->namedInput("running_mean")->type()->kind() == c10::TypeKind::NoneType) return;
      bad_input("{}: has batch normalisation left in training mode, so results would depend on the batch; {}", label,
                kEvaluate);
    }
    for (const char* share : {"p", "dropout"}) {
      c10::optional<c10::IValue> dropped = known_argument(node, *schema, share);
      if (dropped && dropped->isDouble() && dropped->toDouble() == 0) return;
    }
    bad_input("{}: has {} left in training mode ({}), so every run would give other results; {}", label,
              node->kind() == c10::aten::rrelu ? "a random activation" : "dropout",
              printable(node->kind().toQualString()), kEvaluate);
  }
  if (draws_noise(node))
    bad_input("{}: its code draws random numbers ({}), so every run would give other results; refused", label,
              printable(node->kind().toQualString()));
}

}  // namespace

void check_source(const std::string& code, const std::string& name, const std::string& label) {
  try {
    SourceCheck(code, name, label).run();
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    bad_input("{}: its code {} is not TorchScript", label, printable(name));
  }
}

void check_operators(const jit::Module& module, const std::string& label) {
  OperatorCheck check(label);
  for (jit::Function* function : module._ivalue()->compilation_unit()->get_functions()) {
    function->ensure_defined();
    if (!function->isGraphFunction())
      bad_input("{}: its code has the function {}, which is not TorchScript; refused", label,
                printable(function->qualname().qualifiedName()));
    check.check(jit::toGraphFunction(*function).graph()->block());
  }
}

void check_frozen(jit::Graph& graph, const std::string& label) {
  // First, for it has the remedy: layers in training mode also change what is the model's own.
  std::vector<jit::Block*> all{graph.block()};
  while (!all.empty()) {
    jit::Block* block = all.back();
    all.pop_back();
    for (Node* node : block->nodes()) {
      check_repeatable(node, label);
      all.insert(all.end(), node->blocks().begin(), node->blocks().end());
    }
  }
  std::vector<jit::Block*> open{graph.block()};
  while (!open.empty()) {
    jit::Block* block = open.back();
    open.pop_back();
    for (auto it = block->nodes().begin(); it != block->nodes().end();) {
      Node* node = *it++;
      if (node->kind() == c10::aten::warn) {
        node->destroy();
        continue;
      }
      check_writes(node, label);
      if (node->kind() == c10::prim::Loop) {
        // So that a loop without end can be ended.
        Node* look = graph.create(c10::Symbol::fromQualString(kLookUp), /*num_outputs=*/0);
        node->blocks()[0]->prependNode(look);
      }
      open.insert(open.end(), node->blocks().begin(), node->blocks().end());
    }
  }
}

}  // namespace galvani::torchscript
