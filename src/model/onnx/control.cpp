// If, Loop, Scan and SequenceMap: nodes with subgraphs, which read the names of the graphs around them.
#include <ATen/ATen.h>

#include <limits>

#include "model/onnx/importer.h"

namespace galvani::onnx {

using ::onnx::AttributeProto;

namespace {

// A loop of so few passes, known at import, is written out, so that its layers are like all others.
constexpr std::int64_t kMostPassesWritten = 32;
constexpr std::int64_t kMostNodesWritten = 4096;
constexpr int kMostAttempts = 3;

const GraphProto& subgraph(const Node& node, const char* name) {
  const AttributeProto* found = node.attribute(name, AttributeProto::GRAPH);
  if (!found) node.refuse("has no '{}'", name);
  return found->g();
}

std::shared_ptr<Value> computed(const std::string& variable, const Value& like, int rank) {
  auto value = std::make_shared<Value>();
  value->variable = variable;
  value->type = like.type;
  value->rank = rank;
  value->sequence = like.sequence;
  value->element = like.element;
  return value;
}

std::shared_ptr<Value> constant_value(const at::Tensor& known) {
  auto value = std::make_shared<Value>();
  value->known = known;
  value->type = value->stored = known.scalar_type();
  value->rank = static_cast<int>(known.dim());
  value->origin = Value::Origin::constant;
  return value;
}

void check_collected(const Node& node, const Value& value) {
  if (value.sequence || value.absent || value.element != 0)
    node.refuse("collects what is no plain tensor, which is not supported");
}

bool known_true(const Value& value) {
  return value.known && value.known->numel() == 1 && value.known->to(at::kBool).item<bool>();
}

// The sizes that a subgraph's output states, 0 where it leaves one open: what stacking nothing gives.
std::vector<std::int64_t> stated_sizes(const ::onnx::ValueInfoProto& output) {
  std::vector<std::int64_t> sizes;
  for (const auto& dim : output.type().tensor_type().shape().dim())
    sizes.push_back(std::clamp<std::int64_t>(dim.has_dim_value() ? dim.dim_value() : 0, 0, 1 << 20));
  return sizes;
}

}  // namespace

std::string Importer::text_of(Value& value) {
  return value.known ? constant(value) : value.variable;
}

bool Importer::emit_control(const Control& control) {
  const std::string& op = control.proto.op_type();
  if (op == "If") {
    emit_if(control);
  } else if (op == "Loop") {
    emit_loop(control);
  } else if (op == "Scan") {
    emit_scan(control);
  } else if (op == "SequenceMap") {
    emit_sequence_map(control);
  } else {
    return false;
  }
  return true;
}

void Importer::define_output(const Control& control, int i, std::shared_ptr<Value> value) {
  if (i < control.proto.output_size() && !control.proto.output(i).empty())
    define(control.scope, control.proto.output(i), std::move(value));
}

std::vector<std::shared_ptr<Value>> Importer::emit_subgraph(const Control& control, const GraphProto& graph,
                                                            Scope& scope) {
  const Context& context = control.context;
  if (context.depth >= kMaxCallDepth) control.node.refuse("is nested more than {} deep", kMaxCallDepth);
  if (graph.sparse_initializer_size() > 0) control.node.refuse("has sparse initialisers, which are not supported");
  for (const auto& proto : graph.initializer()) {
    if (!scope.defines(proto.name())) add_initializer(scope, proto, /*inner=*/true);
  }
  std::vector<std::string> outputs;
  for (const auto& output : graph.output()) outputs.push_back(output.name());
  emit_nodes(graph.node(), scope, outputs, {context.opset, context.passed, context.depth + 1});
  std::vector<std::shared_ptr<Value>> values;
  for (const std::string& name : outputs) {
    const Value* found = scope.find(name);
    if (found == nullptr) control.node.refuse("has a subgraph whose output '{}' nothing computes", printable(name));
    if (!found->problem.empty() && !found->absent)
      control.node.refuse("gives '{}', {}", printable(name), found->problem);
    values.push_back(scope.at(name));
  }
  return values;
}

void Importer::assign(const std::vector<std::string>& variables, const std::vector<std::shared_ptr<Value>>& values) {
  std::string left, right;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    left += (i ? ", " : "") + variables[i];
    right += (i ? ", " : "") + text_of(*values[i]);
  }
  if (!variables.empty()) line(left + " = " + right);
}

void Importer::emit_if(const Control& control) {
  const Value& condition = control.node.value(0);
  const GraphProto* branches[] = {&subgraph(control.node, "then_branch"), &subgraph(control.node, "else_branch")};
  for (const GraphProto* branch : branches) {
    if (branch->output_size() != control.proto.output_size())
      control.node.refuse("has {} outputs and a branch of {}", control.proto.output_size(), branch->output_size());
  }
  if (condition.known) {
    if (condition.known->numel() != 1) control.node.refuse("needs one condition");
    Scope scope(&control.scope);
    auto values = emit_subgraph(control, *branches[known_true(condition) ? 0 : 1], scope);
    for (std::size_t i = 0; i < values.size(); ++i) define_output(control, static_cast<int>(i), values[i]);
    return retain(scope);
  }
  std::vector<std::string> variables;
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < control.used.size(); ++i) {
    if (!control.used[i]) continue;
    variables.push_back(variables.empty() ? control.variable : fresh("o"));
    wanted.push_back(i);
  }
  if (wanted.empty()) return;
  std::vector<std::shared_ptr<Value>> results;
  for (int side = 0; side < 2; ++side) {
    line(side == 0 ? fmt::format("if bool({}):", control.node.in(0)) : "else:");
    indent_ += "    ";
    Scope scope(&control.scope);
    auto values = emit_subgraph(control, *branches[side], scope);
    std::vector<std::shared_ptr<Value>> given;
    for (std::size_t i : wanted) {
      if (values[i]->absent) control.node.refuse("gives an optional without a value, which is not supported");
      given.push_back(values[i]);
    }
    assign(variables, given);
    indent_.resize(indent_.size() - 4);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Value& value = *given[i];
      if (side == 0) {
        results.push_back(computed(variables[i], value, value.rank));
        continue;
      }
      if (value.type != results[i]->type || value.element != results[i]->element ||
          value.sequence != results[i]->sequence)
        control.node.refuse("gives values of two types");
      if (value.rank != results[i]->rank) results[i]->rank = -1;
    }
    retain(scope);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) define_output(control, static_cast<int>(wanted[i]), results[i]);
}

// The list that a loop appends one of its body's outputs to.
std::string Importer::begin_list() {
  std::string list = fresh("s");
  line(list + " = annotate(List[Tensor], [])");
  return list;
}

// One attempt to write the loop. The body may turn out to change what was taken for granted, such as the rank of a
// value: then that is noted in the plan, and nothing is written.
bool Importer::write_loop(const Control& control, LoopPlan& plan) {
  const Node& node = control.node;
  std::size_t start = body_.size();
  std::size_t carried = plan.initial.size();
  loops_ = true;
  std::string pass = fresh("i"), held = fresh("b");
  plan.lists.clear();
  for (std::size_t i = plan.counted + carried; i < static_cast<std::size_t>(plan.body.output_size()); ++i)
    plan.lists.push_back(begin_list());
  line(held + " = 0");
  assign(plan.variables, plan.initial);
  if (plan.condition.empty()) {
    line(fmt::format("for {} in range({}):", pass, plan.trips));
  } else {
    line(fmt::format("{} = {}", plan.condition, plan.first_condition));
    line(pass + " = 0");
    line(fmt::format("while bool({}) and {} < {}:", plan.condition, pass, plan.trips));
  }
  indent_ += "    ";
  line("steps = galvani_onnx.step(steps)");

  Scope scope(&control.scope);
  int input = 0;
  auto next_input = [&](std::shared_ptr<Value> value) {
    const std::string& name = plan.body.input(input++).name();
    value->name = name;
    define(scope, name, std::move(value));
  };
  Value number, flag;
  number.type = at::kLong;
  flag.type = at::kBool;
  if (plan.counted) {
    std::string variable = fresh("i");
    line(fmt::format("{} = torch.tensor({})", variable, pass));
    next_input(computed(variable, number, 0));
    next_input(plan.condition.empty() ? constant_value(at::scalar_tensor(true, at::kBool))
                                      : computed(plan.condition, flag, -1));
  }
  for (std::size_t i = 0; i < carried; ++i) next_input(computed(plan.variables[i], *plan.initial[i], plan.ranks[i]));
  for (const LoopPlan::Element& element : plan.elements) {
    std::string variable = fresh("e");
    line(fmt::format("{} = {}{}{}", variable, element.before, pass, element.after));
    next_input(computed(variable, element.like, element.rank));
  }
  auto values = emit_subgraph(control, plan.body, scope);

  bool as_assumed = true;
  if (plan.counted && plan.condition.empty() && !known_true(*values[0])) {
    plan.condition = fresh("c");
    as_assumed = false;
  }
  std::vector<std::shared_ptr<Value>> next;
  for (std::size_t i = 0; i < carried; ++i) {
    next.push_back(values[plan.counted + i]);
    const Value& first = *plan.initial[i];
    if (next[i]->absent || next[i]->type != first.type || next[i]->element != first.element ||
        next[i]->sequence != first.sequence)
      node.refuse("carries a value that changes its type");
    if (plan.ranks[i] >= 0 && next[i]->rank != plan.ranks[i]) {
      plan.ranks[i] = -1;
      as_assumed = false;
    }
  }
  plan.collected.clear();
  for (std::size_t i = 0; i < plan.lists.size(); ++i) {
    Value& value = *values[plan.counted + carried + i];
    check_collected(node, value);
    std::string text = text_of(value);
    line(fmt::format("{} = galvani_onnx.held({}, {})", held, held, text));
    line(fmt::format("{}.append({})", plan.lists[i], text));
    plan.collected.emplace_back(value.type, value.rank);
  }
  std::vector<std::string> variables = plan.variables;
  if (!plan.condition.empty() && as_assumed) {
    variables.push_back(plan.condition);
    next.push_back(values[0]);
    line(fmt::format("{} = {} + 1", pass, pass));
  }
  assign(variables, next);
  indent_.resize(indent_.size() - 4);
  retain(scope);
  if (!as_assumed) body_.resize(start);
  return as_assumed;
}

void Importer::finish_loop(const Control& control, LoopPlan& plan) {
  for (int attempt = 1; !write_loop(control, plan); ++attempt) {
    // What is left to assume may still be wrong because of what was: the last attempt assumes nothing.
    if (attempt + 1 < kMostAttempts) continue;
    std::fill(plan.ranks.begin(), plan.ranks.end(), -1);
    if (plan.counted && plan.condition.empty()) plan.condition = fresh("c");
  }
  for (std::size_t i = 0; i < plan.initial.size(); ++i)
    define_output(control, static_cast<int>(i), computed(plan.variables[i], *plan.initial[i], plan.ranks[i]));
}

void Importer::plan_carried(const Control& control, LoopPlan& plan, int from, int count) {
  for (int i = from; i < from + count; ++i) {
    const Value& value = control.node.any_value(i);
    if (value.absent) control.node.refuse("carries an optional without a value, which is not supported");
    plan.initial.push_back(control.scope.at(control.proto.input(i)));
    plan.variables.push_back(fresh("v"));
    plan.ranks.push_back(value.rank);
  }
}

void Importer::emit_loop(const Control& control) {
  const Node& node = control.node;
  LoopPlan plan(subgraph(node, "body"));
  plan.counted = 1;
  int carried = std::max(control.proto.input_size() - 2, 0);
  int scans = plan.body.output_size() - 1 - carried;
  if (plan.body.input_size() != carried + 2 || scans < 0 || control.proto.output_size() > carried + scans)
    node.refuse("carries {} values and has a body of {} inputs and {} outputs", carried, plan.body.input_size(),
                plan.body.output_size());
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::optional<std::int64_t> known;
  if (node.has(0)) known = node.known_integer(0);
  bool endless = !node.has(1) || known_true(node.value(1));
  plan_carried(control, plan, 2, carried);
  if (known && *known <= kMostPassesWritten && endless && unroll(control, plan, *known)) return;
  plan.trips = node.has(0) ? control.node.integer(0) : int_text(most);
  plan.first_condition = node.has(1) ? control.node.in(1) : "torch.tensor(True)";
  if (!endless) plan.condition = fresh("c");
  finish_loop(control, plan);
  for (int i = 0; i < scans; ++i) {
    const auto& [type, rank] = plan.collected[i];
    std::string variable = fresh("o");
    line(fmt::format("{} = galvani_onnx.stack({}, 0, False, {}, {})", variable, plan.lists[i], type_text(type),
                     ints_text(stated_sizes(plan.body.output(1 + carried + i)))));
    Value like;
    like.type = type;
    define_output(control, carried + i, computed(variable, like, rank < 0 ? -1 : rank + 1));
  }
}

// Writes each pass of a loop out. Nothing is written if the condition turns out to depend on values, or it is too much.
bool Importer::unroll(const Control& control, const LoopPlan& plan, std::int64_t trips) {
  std::size_t start = body_.size();
  std::int64_t first_node = next_node_;
  std::vector<std::shared_ptr<Value>> carried = plan.initial;
  std::size_t scans = plan.body.output_size() - 1 - carried.size();
  std::vector<std::string> parts(scans);
  std::vector<std::pair<at::ScalarType, int>> kinds(scans, {at::kFloat, -1});
  for (std::int64_t pass = 0; pass < trips; ++pass) {
    Scope scope(&control.scope);
    define(scope, plan.body.input(0).name(), constant_value(at::scalar_tensor(pass, at::kLong)));
    define(scope, plan.body.input(1).name(), constant_value(at::scalar_tensor(true, at::kBool)));
    for (std::size_t i = 0; i < carried.size(); ++i)
      define(scope, plan.body.input(static_cast<int>(i) + 2).name(), carried[i]);
    auto values = emit_subgraph(control, plan.body, scope);
    bool known = values[0]->known && values[0]->known->numel() == 1;
    if (!known || next_node_ - first_node > kMostNodesWritten) {
      retain(scope);
      body_.resize(start);
      return false;
    }
    for (std::size_t i = 0; i < scans; ++i) {
      Value& value = *values[1 + carried.size() + i];
      check_collected(control.node, value);
      parts[i] += (pass ? ", " : "") + text_of(value);
      kinds[i] = {value.type, value.rank};
    }
    for (std::size_t i = 0; i < carried.size(); ++i) carried[i] = values[1 + i];
    retain(scope);
    if (!known_true(*values[0])) break;
  }
  for (std::size_t i = 0; i < carried.size(); ++i) define_output(control, static_cast<int>(i), carried[i]);
  for (std::size_t i = 0; i < scans; ++i) {
    auto [type, rank] = kinds[i];
    const auto& output = plan.body.output(static_cast<int>(1 + carried.size() + i));
    if (parts[i].empty()) type = scalar_type(output.type().tensor_type().elem_type()).value_or(at::kFloat);
    std::string variable = fresh("o");
    line(fmt::format("{} = galvani_onnx.stack(annotate(List[Tensor], [{}]), 0, False, {}, {})", variable, parts[i],
                     type_text(type), ints_text(stated_sizes(output))));
    Value like;
    like.type = type;
    define_output(control, static_cast<int>(carried.size() + i), computed(variable, like, rank < 0 ? -1 : rank + 1));
  }
  return true;
}

void Importer::emit_scan(const Control& control) {
  Node& node = control.node;
  if (node.opset() < 9) node.refuse("is not supported in opset {}", node.opset());
  LoopPlan plan(subgraph(node, "body"));
  std::int64_t scanned = node.integer("num_scan_inputs", 0);
  if (scanned < 1 || scanned > node.input_count()) node.refuse("scans {} inputs", scanned);
  int count = static_cast<int>(scanned);
  int carried = node.input_count() - count;
  int scans = plan.body.output_size() - carried;
  if (plan.body.input_size() != node.input_count() || scans < 0 || control.proto.output_size() > carried + scans)
    node.refuse("has {} inputs and a body of {} inputs and {} outputs", node.input_count(), plan.body.input_size(),
                plan.body.output_size());
  auto list = [&](const char* name, int length) {
    std::vector<std::int64_t> values = node.integers(name, std::vector<std::int64_t>(length, 0));
    if (static_cast<int>(values.size()) != length) node.refuse("has {} numbers in '{}'", values.size(), name);
    return values;
  };
  std::vector<std::int64_t> axes = list("scan_input_axes", count), backward = list("scan_input_directions", count);
  std::vector<std::int64_t> made_axes = list("scan_output_axes", scans);
  std::vector<std::int64_t> made_backward = list("scan_output_directions", scans);
  plan_carried(control, plan, 0, carried);
  std::vector<std::string> inputs;
  for (int i = 0; i < count; ++i) {
    const Value& value = node.value(carried + i);
    inputs.push_back(node.in(carried + i));
    Value like;
    like.type = value.type;
    plan.elements.push_back(
        {fmt::format("torch.select({}, {}, {}", inputs.back(), int_text(axes[i]), backward[i] != 0 ? "-1 - " : ""), ")",
         like, value.rank > 0 ? value.rank - 1 : -1});
  }
  plan.trips = node.temporary(fmt::format("galvani_onnx.scan_length({}, {})", list_text(inputs), ints_text(axes)));
  finish_loop(control, plan);
  for (int i = 0; i < scans; ++i) {
    const auto& [type, rank] = plan.collected[i];
    std::string variable = fresh("o");
    line(fmt::format("{} = galvani_onnx.stack({}, {}, {}, {}, {})", variable, plan.lists[i], int_text(made_axes[i]),
                     bool_text(made_backward[i] != 0), type_text(type),
                     ints_text(stated_sizes(plan.body.output(carried + i)))));
    Value like;
    like.type = type;
    define_output(control, carried + i, computed(variable, like, rank < 0 ? -1 : rank + 1));
  }
}

void Importer::emit_sequence_map(const Control& control) {
  Node& node = control.node;
  LoopPlan plan(subgraph(node, "body"));
  if (plan.body.input_size() != node.input_count() || control.proto.output_size() > plan.body.output_size())
    node.refuse("has {} inputs and a body of {}", node.input_count(), plan.body.input_size());
  std::string first = node.sequence(0);
  for (int i = 0; i < node.input_count(); ++i) {
    const Value& value = node.any_value(i);
    Value like;
    like.type = value.type;
    if (value.sequence)
      plan.elements.push_back({node.sequence(i) + "[", "]", like, -1});
    else
      plan.elements.push_back({fmt::format("galvani_onnx.same({}, ", node.in(i)), ")", like, value.rank});
  }
  plan.trips = node.temporary(fmt::format("len({})", first));
  finish_loop(control, plan);
  for (std::size_t i = 0; i < plan.lists.size(); ++i) {
    Value like;
    like.type = plan.collected[i].first;
    like.sequence = true;
    define_output(control, static_cast<int>(i), computed(plan.lists[i], like, -1));
  }
}

}  // namespace galvani::onnx
