#include <ATen/ATen.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "model/limits.h"
#include "model/onnx/fold.h"
#include "model/onnx/importer.h"
#include "model/onnx/widen.h"

namespace galvani::onnx {

using ::onnx::AttributeProto;

namespace {

std::string display_name(const NodeProto& node) {
  if (!node.name().empty() || node.output_size() == 0) return node.name();
  return node.output(0);
}

// The names that a graph reads of those around it.
void add_free_names(const GraphProto& graph, std::set<std::string>& names) {
  std::set<std::string> own;
  for (const auto& input : graph.input()) own.insert(input.name());
  for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
  std::set<std::string> read;
  for (const NodeProto& node : graph.node()) {
    own.insert(node.output().begin(), node.output().end());
    read.insert(node.input().begin(), node.input().end());
    for (const AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) add_free_names(attribute.g(), read);
    }
  }
  for (const auto& output : graph.output()) read.insert(output.name());
  for (const std::string& name : read) {
    if (own.count(name) == 0) names.insert(name);
  }
}

// Of types that LibTorch has no tensors for, what only moves values keeps the type, and some operators read it; what
// calculates would overflow elsewhere than in the type itself. The type that the node's outputs have of it, 0: none.
int narrow_element(const Node& node, const std::vector<Value*>& inputs) {
  static const std::set<std::string> kMoving = {
      "Reshape", "Flatten",        "Transpose", "Squeeze",      "Unsqueeze",    "Concat", "Split", "Slice", "Expand",
      "Tile",    "GatherElements", "GatherND",  "DepthToSpace", "SpaceToDepth", "Gather", "Max",   "Min",   "Where"};
  static const std::set<std::string> kReading = {
      "Cast",           "CastLike", "DequantizeLinear", "QuantizeLinear", "Equal", "Greater",
      "GreaterOrEqual", "Less",     "LessOrEqual",      "Shape",          "Size"};
  int element = 0;
  for (const Value* value : inputs) {
    if (value == nullptr || value->element == 0) continue;
    if (kMoving.count(node.op()) == 0 && kReading.count(node.op()) == 0)
      node.refuse("reads '{}', which has the unsupported element type {}", printable(value->name),
                  type_name(value->element));
    if (kMoving.count(node.op()) != 0) element = value->element;
  }
  return element;
}

std::set<std::string> names_of_subgraphs(const NodeProto& node) {
  std::set<std::string> names;
  for (const AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) add_free_names(attribute.g(), names);
  }
  return names;
}

}  // namespace

Value* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    if (auto found = scope->own_.find(name); found != scope->own_.end()) return found->second.get();
  }
  return nullptr;
}

std::shared_ptr<Value> Scope::at(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    if (auto found = scope->own_.find(name); found != scope->own_.end()) return found->second;
  }
  fail(ErrorCode::internal, "no value is called '{}'", printable(name));
}

void Importer::line(const std::string& text) {
  if (++lines_ > kMostStatements) bad_input("{}: its nodes become more than {} statements", label_, kMostStatements);
  count_source(text.size());
  body_ += indent_ + text + "\n";
}

// Functions repeat their nodes' attributes at every call, so a small file can become much text.
void Importer::count_source(std::size_t bytes) {
  source_bytes_ += bytes;
  if (source_bytes_ > kMostSource) bad_input("{}: its statements take more than {} bytes", label_, kMostSource);
}

std::string Importer::constant(Value& value) {
  if (value.variable.empty()) {
    value.variable = fmt::format("self.p{}", value.number);
    materialised_[value.number] = &value;
    if (static_cast<std::int64_t>(materialised_.size()) > kMostTensors)
      bad_input("{}: reads more than {} weights and constants", label_, kMostTensors);
  }
  return value.variable;
}

std::string Importer::constant(const at::Tensor& tensor) {
  auto value = std::make_shared<Value>();
  value->known = tensor;
  value->type = value->stored = tensor.scalar_type();
  value->origin = Value::Origin::constant;
  value->number = next_constant_++;
  retained_.push_back(value);
  return constant(*value);
}

void Importer::define(Scope& scope, const std::string& name, std::shared_ptr<Value> value) {
  if (value->known && value->number < 0) value->number = next_constant_++;
  if (!scope.add(name, std::move(value))) bad_input("{}: two tensors are called '{}'", label_, printable(name));
}

std::int64_t Importer::opset_of(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports) const {
  std::int64_t version = 0;
  for (const auto& import : imports) {
    if (is_default_domain(import.domain())) version = std::max<std::int64_t>(version, import.version());
  }
  return version;
}

void Importer::read_header() {
  program_.opset = opset_of(model_.opset_import());
  program_.ir_version = model_.ir_version();
  program_.producer = model_.producer_name();
  if (!model_.producer_version().empty()) program_.producer += " " + model_.producer_version();
  for (const auto& entry : model_.metadata_props()) program_.metadata[entry.key()] = entry.value();
  // The opset is 0 where only other domains are imported; then it is their operators that are refused, by name.
  if (program_.opset < 0) bad_input("{}: uses opset {}", label_, program_.opset);
  if (program_.opset > kNewestOpset)
    program_.warnings.push_back(
        fmt::format("uses opset {}, which is newer than any that is known ({}): its operators are run as those of "
                    "opset {} are",
                    program_.opset, kNewestOpset, kNewestOpset));
}

void Importer::add_initializer(Scope& scope, const ::onnx::TensorProto& proto, bool inner) {
  auto value = std::make_shared<Value>();
  value->name = proto.name();
  // update_onnx reaches the weights of the graph itself only, so those of subgraphs are constants.
  value->origin = inner ? Value::Origin::constant : Value::Origin::initializer;
  value->named = !inner;
  if (std::optional<at::ScalarType> type = held_type(proto.data_type())) {
    set_constant(*value, reader_.read(proto));
    if (!scalar_type(proto.data_type())) {
      // What holds the values cannot be written back as it is.
      value->element = proto.data_type();
      value->origin = Value::Origin::constant;
      value->named = false;
    }
    if (at::isFloatingType(*type) && !at::isfinite(*value->known).all().item<bool>())
      program_.warnings.push_back(
          fmt::format("{}: initialiser '{}' holds NaN or infinity", label_, printable(proto.name())));
  } else {
    value->problem = fmt::format("which has the unsupported element type {}", type_name(proto.data_type()));
  }
  define(scope, proto.name(), value);
}

void Importer::add_initializers() {
  if (model_.graph().sparse_initializer_size() > 0) bad_input("{}: sparse initialisers are not supported", label_);
  for (const auto& proto : model_.graph().initializer()) add_initializer(graph_, proto, /*inner=*/false);
}

void Importer::add_inputs() {
  for (const auto& proto : model_.graph().input()) {
    // Before IR version 4 every initialiser was listed as an input too.
    const Value* present = graph_.find(proto.name());
    if (present != nullptr && present->origin == Value::Origin::initializer) continue;
    auto value = std::make_shared<Value>();
    value->name = proto.name();
    Program::Port port;
    port.name = proto.name();
    port.type = at::ScalarType::Undefined;
    bool sequence = ports_ == Ports::any && proto.type().has_sequence_type();
    const auto& held = sequence ? proto.type().sequence_type().elem_type() : proto.type();
    if (!held.has_tensor_type()) {
      value->problem = "which is not a tensor";
    } else {
      const auto& tensor = held.tensor_type();
      if (std::optional<at::ScalarType> type =
              ports_ == Ports::any ? held_type(tensor.elem_type()) : scalar_type(tensor.elem_type())) {
        port.type = *type;
        if (!scalar_type(tensor.elem_type())) value->element = tensor.elem_type();
      } else {
        value->problem = fmt::format("which has the unsupported element type {}", type_name(tensor.elem_type()));
      }
      port.sequence = sequence;
      value->sequence = sequence;
      if (tensor.has_shape() && !sequence) {
        port.shaped = true;
        for (const auto& dim : tensor.shape().dim()) {
          if (dim.has_dim_value() && dim.dim_value() < 0)
            bad_input("{}: input '{}' has a dimension of {}", label_, printable(proto.name()), dim.dim_value());
          port.shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
        }
        value->rank = static_cast<int>(port.shape.size());
      }
    }
    value->type = port.type;
    value->variable = fmt::format("x{}", program_.inputs.size());
    program_.inputs.push_back(port);
    define(graph_, proto.name(), value);
  }
}

void Importer::add_outputs() {
  std::vector<std::string> texts;
  for (const auto& proto : model_.graph().output()) {
    Value* found = graph_.find(proto.name());
    if (found == nullptr) bad_input("{}: nothing computes the graph's output '{}'", label_, printable(proto.name()));
    Value& value = *found;
    if (!value.problem.empty())
      bad_input("{}: output '{}' is a value {}", label_, printable(proto.name()), value.problem);
    if (value.sequence && ports_ != Ports::any)
      bad_input("{}: output '{}' is a sequence of tensors, which is not supported", label_, printable(proto.name()));
    Program::Port port{proto.name(), value.type, false, {}, value.sequence};
    if (proto.type().has_tensor_type() && proto.type().tensor_type().has_shape()) {
      port.shaped = true;
      for (const auto& dim : proto.type().tensor_type().shape().dim())
        port.shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1);
    }
    program_.outputs.push_back(port);
    texts.push_back(text_of(value));
  }
  // Classifiers of ai.onnx.ml give labels first; what a network is read for are the scores.
  if (classic_ && ports_ == Ports::tensors) {
    auto scores = std::find_if(program_.outputs.begin(), program_.outputs.end(),
                               [](const Program::Port& port) { return at::isFloatingType(port.type); });
    auto place = scores - program_.outputs.begin();
    if (scores != program_.outputs.end()) {
      std::rotate(program_.outputs.begin(), scores, scores + 1);
      std::rotate(texts.begin(), texts.begin() + place, texts.begin() + place + 1);
    }
  }
  if (texts.empty()) bad_input("{}: the graph has no outputs", label_);
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  line(texts.size() == 1 ? "return " + all : "return (" + all + ")");
}

// Node order of the file where that works, otherwise the nearest order in which every name is defined before it is
// read.
std::vector<const NodeProto*> Importer::sorted(const Nodes& nodes, const Scope& scope) const {
  std::unordered_map<std::string, int> producer;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].output()) {
      if (name.empty()) continue;
      if (scope.defines(name) || !producer.emplace(name, i).second)
        bad_input("{}: two tensors are called '{}'", label_, printable(name));
    }
  }
  std::vector<std::vector<int>> readers(nodes.size());
  std::vector<int> missing(nodes.size(), 0);
  auto follow = [&](const std::string& name, int reader) {
    auto found = producer.find(name);
    if (found == producer.end()) return false;
    readers[found->second].push_back(reader);
    ++missing[reader];
    return true;
  };
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].input()) {
      if (name.empty() || follow(name, i) || scope.find(name) != nullptr) continue;
      bad_input("{}: node '{}' reads '{}', which nothing computes", label_, printable(display_name(nodes[i])),
                printable(name));
    }
    for (const std::string& name : names_of_subgraphs(nodes[i])) follow(name, i);
  }
  std::set<int> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    if (missing[i] == 0) ready.insert(i);
  }
  std::vector<const NodeProto*> order;
  while (!ready.empty()) {
    int i = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(&nodes[i]);
    for (int reader : readers[i]) {
      if (--missing[reader] == 0) ready.insert(reader);
    }
  }
  for (int i = 0; i < nodes.size(); ++i) {
    if (missing[i] > 0)
      bad_input("{}: node '{}' is part of a cycle or depends on one", label_, printable(display_name(nodes[i])));
  }
  return order;
}

void Importer::emit_nodes(const Nodes& nodes, Scope& scope, const std::vector<std::string>& outputs,
                          const Context& context) {
  std::set<std::string> read(outputs.begin(), outputs.end());
  for (const NodeProto& node : nodes) {
    read.insert(node.input().begin(), node.input().end());
    read.merge(names_of_subgraphs(node));
  }
  for (const NodeProto* node : sorted(nodes, scope)) emit_node(*node, scope, read, context);
}

Node::Attributes Importer::attributes_of(const NodeProto& proto, const Passed& passed) const {
  Node::Attributes result;
  std::set<std::string> names;
  for (const AttributeProto& attribute : proto.attribute()) {
    if (!names.insert(attribute.name()).second)
      bad_input("{}: node '{}' has two attributes '{}'", label_, printable(display_name(proto)),
                printable(attribute.name()));
    if (attribute.ref_attr_name().empty()) {
      result.push_back(&attribute);
      continue;
    }
    // Inside a function an attribute may stand for one of the caller's; emit functions ask for it by its own name.
    auto found = passed.find(attribute.ref_attr_name());
    if (found == passed.end()) continue;
    if (found->second->name() != attribute.name())
      bad_input("{}: node '{}' renames the attribute '{}' of its function, which is not supported", label_,
                printable(display_name(proto)), printable(attribute.ref_attr_name()));
    result.push_back(found->second);
  }
  return result;
}

const FunctionProto* Importer::find_function(const NodeProto& proto) const {
  auto found = functions_.find({proto.domain(), proto.op_type()});
  return found == functions_.end() ? nullptr : found->second;
}

void Importer::call(const FunctionProto& function, const NodeProto& proto, Scope& scope,
                    const Node::Attributes& attributes, const Context& context) {
  if (context.depth >= kMaxCallDepth)
    bad_input("{}: function '{}' is nested more than {} deep", label_, printable(function.name()), kMaxCallDepth);
  if (proto.input_size() > function.input_size() || proto.output_size() > function.output_size())
    bad_input("{}: node '{}' passes more tensors than its function '{}' has", label_, printable(display_name(proto)),
              printable(function.name()));
  Scope inner;
  for (int i = 0; i < function.input_size(); ++i) {
    if (i < proto.input_size() && !proto.input(i).empty()) define(inner, function.input(i), scope.at(proto.input(i)));
  }
  Passed passed;
  for (const AttributeProto* attribute : attributes) passed[attribute->name()] = attribute;
  std::vector<std::string> outputs(function.output().begin(), function.output().end());
  emit_nodes(function.node(), inner, outputs, {opset_of(function.opset_import()), passed, context.depth + 1});
  for (int i = 0; i < proto.output_size(); ++i) {
    if (proto.output(i).empty()) continue;
    if (inner.find(function.output(i)) == nullptr)
      bad_input("{}: nothing computes the output '{}' of function '{}'", label_, printable(function.output(i)),
                printable(function.name()));
    define(scope, proto.output(i), inner.at(function.output(i)));
  }
  retain(inner);
}

void Importer::retain(Scope& scope) {
  for (auto& entry : scope.own()) retained_.push_back(std::move(entry.second));
}

void Importer::set_constant(Value& value, const at::Tensor& read) const {
  value.stored = read.scalar_type();
  value.known = widen_ ? widened(read) : read;
  value.type = value.known->scalar_type();
  value.rank = static_cast<int>(value.known->dim());
}

std::shared_ptr<Value> Importer::constant_node(const Node& node) {
  auto value = std::make_shared<Value>();
  value->origin = Value::Origin::constant;
  if (const auto* found = node.attribute("value", AttributeProto::TENSOR)) {
    int type = found->t().data_type();
    if (!held_type(type)) node.refuse("has the unsupported element type {}", type_name(type));
    if (!scalar_type(type)) value->element = type;
    value->known = reader_.read(found->t());
  } else if (node.given("value_float")) {
    value->known = at::tensor(static_cast<float>(node.real("value_float", 0)), at::kFloat);
  } else if (node.given("value_floats")) {
    value->known = at::tensor(node.reals("value_floats"), at::kDouble).to(at::kFloat);
  } else if (node.given("value_int")) {
    value->known = at::tensor(node.integer("value_int", 0), at::kLong);
  } else if (node.given("value_ints")) {
    value->known = at::tensor(node.integers("value_ints"), at::kLong);
  } else {
    node.refuse("holds no dense tensor of numbers");
  }
  set_constant(*value, *value->known);
  return value;
}

void Importer::emit_node(const NodeProto& proto, Scope& scope, const std::set<std::string>& read,
                         const Context& context) {
  if (++next_node_ > kMostStatements) bad_input("{}: has more than {} nodes", label_, kMostStatements);
  std::vector<Value*> inputs;
  bool foldable = proto.input_size() > 0;
  for (const std::string& name : proto.input()) {
    Value* value = name.empty() ? nullptr : scope.find(name);
    inputs.push_back(value);
    if (!value) continue;
    // Weights stay in the graph, so that they can be trained.
    bool weight = value->origin == Value::Origin::initializer && at::isFloatingType(value->type);
    foldable &= value->known.has_value() && !weight;
  }
  std::vector<bool> used;
  for (const std::string& name : proto.output()) used.push_back(!name.empty() && read.count(name) > 0);
  Node::Attributes attributes = attributes_of(proto, context.passed);
  std::string variable = fmt::format("t{}", next_node_ - 1);

  if (const FunctionProto* function = find_function(proto)) return call(*function, proto, scope, attributes, context);
  Node node(label_, proto, attributes, context.opset, inputs, variable, used, *this);
  classic_ = classic_ || proto.domain() == "ai.onnx.ml";
  if (!is_known_domain(proto.domain()))
    node.refuse("is of the domain '{}', which is not supported", printable(proto.domain()));

  if (is_default_domain(proto.domain()) && emit_control({node, proto, scope, context, variable, used})) return;
  if (proto.op_type() == "Identity" && proto.output_size() == 1) {
    const Value& source = node.any_value(0);
    if (context.depth > 0 || source.origin != Value::Origin::initializer)
      return define(scope, proto.output(0), scope.at(proto.input(0)));
    // Exporters store equal tensors once, even a bias and a running mean that both start at 0, and give the others as
    // Identity. They are weights of their own all the same; update_onnx knows.
    auto copy = std::make_shared<Value>(source);
    copy->name = proto.output(0);
    copy->variable.clear();
    copy->number = -1;
    copy->frozen = false;
    return define(scope, proto.output(0), copy);
  }
  if (proto.op_type() == "Constant" && proto.output_size() == 1) {
    auto value = constant_node(node);
    value->named = context.depth == 0 && value->element == 0;
    value->name = proto.output(0);
    return define(scope, proto.output(0), value);
  }

  bool known = false;
  const Operator* row = find_operator(proto.domain(), proto.op_type(), context.opset, known);
  if (!row) {
    if (known) node.refuse("is not supported in opset {}", context.opset);
    node.refuse("is not supported");
  }
  int element = narrow_element(node, inputs);
  if (!row->runs_half) node.widen_half();
  foldable &= row->foldable;
  std::vector<Value> results;
  if (foldable && fold_bound(inputs) <= kMaxFoldedBytes) {
    FoldSink sink;
    Node folded(label_, proto, attributes, context.opset, inputs, variable, used, sink);
    if (!row->runs_half) folded.widen_half();
    row->emit(folded);
    count_source(sink.size());
    results = sink.run(folded, label_);
    for (const Value& result : results) folded_bytes_ += static_cast<std::int64_t>(result.known->nbytes());
    if (folded_bytes_ > kMaxFoldedBytes)
      bad_input("{}: its constants need more than {} bytes", label_, kMaxFoldedBytes);
  } else {
    row->emit(node);
    results = node.results();
    for (const std::string& name : node.unread_attributes()) {
      if (warned_.insert(proto.op_type() + " " + name).second)
        program_.warnings.push_back(fmt::format("{}: attribute '{}' of operator '{}' is ignored", label_,
                                                printable(name), printable(proto.op_type())));
    }
    if (!results.empty() && results[0].variable == variable) program_.node_of_variable[variable] = display_name(proto);
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    if (proto.output(i).empty()) continue;
    if (element != 0 && results[i].type == *held_type(element)) results[i].element = element;
    if (results[i].variable.empty() && !results[i].known && results[i].problem.empty())
      results[i].problem = fmt::format("an output of '{}' that is not supported", printable(proto.op_type()));
    results[i].name = proto.output(i);
    define(scope, proto.output(i), std::make_shared<Value>(results[i]));
  }
}

void Importer::finish_parameters() {
  for (const auto& [number, value] : materialised_) {
    bool trainable = value->origin == Value::Origin::initializer && at::isFloatingType(value->type) && !value->frozen;
    program_.parameters.push_back({fmt::format("p{}", number), value->named ? value->name : "", *value->known,
                                   trainable, value->named ? value->stored : value->type});
  }
}

Program Importer::run() {
  read_header();
  add_initializers();
  add_inputs();
  std::vector<std::string> outputs;
  for (const auto& output : model_.graph().output()) outputs.push_back(output.name());
  emit_nodes(model_.graph().node(), graph_, outputs, {program_.opset, {}, 0});
  add_outputs();
  finish_parameters();
  for (const Program::Port& port : program_.inputs) {
    if (port.type == at::ScalarType::Undefined)
      bad_input("{}: input '{}' is a value {}", label_, printable(port.name), graph_.at(port.name)->problem);
  }
  std::string arguments = "self";
  for (std::size_t i = 0; i < program_.inputs.size(); ++i)
    arguments += fmt::format(", x{}{}", i, program_.inputs[i].sequence ? ": List[Tensor]" : "");
  program_.external_sha256 = reader_.external_sha256();
  program_.source = fmt::format("def forward({}):\n{}{}", arguments, loops_ ? "    steps = 0\n" : "", body_);
  return std::move(program_);
}

Program import_onnx(const std::string& bytes, const std::filesystem::path& folder, const std::string& label,
                    HalfTypes halves, Ports ports) {
  ModelProto model = parse_model(bytes, label);
  try {
    bool half_input = has_half_input(model);
    bool widen = halves == HalfTypes::widened && widen_types(model);
    Program program = Importer(model, folder, label, widen, ports).run();
    program.half_input = half_input;
    return program;
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    bad_input("{}: the graph cannot be imported: {}", label, printable(error.what_without_backtrace(), 400));
  } catch (const std::exception& error) {
    bad_input("{}: the graph cannot be imported: {}", label, printable(error.what(), 400));
  }
}

}  // namespace galvani::onnx
