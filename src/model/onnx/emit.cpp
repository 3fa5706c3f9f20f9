#include "model/onnx/emit.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

namespace galvani::onnx {

using ::onnx::AttributeProto;

namespace {

// 0.1f means 0.1 to whoever wrote it, not 0.10000000149011612; as a float it is the same number.
double shortest(float value) {
  return std::isfinite(value) ? std::stod(fmt::format("{}", value)) : value;
}

}  // namespace

Node::Node(const std::string& label, const ::onnx::NodeProto& proto, Attributes attributes, std::int64_t opset,
           std::vector<Value*> inputs, std::string variable, std::vector<bool> used, Sink& sink)
    : label_(label),
      proto_(proto),
      attributes_(std::move(attributes)),
      opset_(opset),
      inputs_(std::move(inputs)),
      variable_(std::move(variable)),
      used_(std::move(used)),
      sink_(sink),
      results_(proto.output_size()) {}

void Node::refuse_text(const std::string& reason) const {
  std::string name = proto_.name();
  if (name.empty() && proto_.output_size() > 0) name = proto_.output(0);
  bad_input("{}: operator '{}' of node '{}' {}", label_, printable(op()), printable(name), reason);
}

bool Node::has(int i) const {
  return i >= 0 && i < input_count() && inputs_[i] != nullptr;
}

Value& Node::reach_any(int i) const {
  if (!has(i)) refuse("lacks its input {}", i);
  Value& value = *inputs_[i];
  if (!value.problem.empty()) refuse("reads '{}', {}", printable(value.name), value.problem);
  return value;
}

Value& Node::reach(int i) const {
  Value& value = reach_any(i);
  if (value.sequence) refuse("reads '{}', which is a sequence of tensors", printable(value.name));
  return value;
}

const Value& Node::value(int i) const {
  return reach(i);
}

const Value& Node::any_value(int i) const {
  return reach_any(i);
}

std::string Node::sequence(int i) {
  Value& value = reach_any(i);
  if (!value.sequence) refuse("reads '{}', which is not a sequence of tensors", printable(value.name));
  return value.variable;
}

std::string Node::in(int i, bool trainable) {
  Value& value = reach(i);
  if (!trainable) value.frozen = true;
  std::string text = value.known ? sink_.constant(value) : value.variable;
  if (widen_half_ && value.type == at::kHalf)
    return temporary(fmt::format("torch.to({}, {})", text, type_text(at::kFloat)));
  return text;
}

std::vector<std::string> Node::all_inputs() {
  std::vector<std::string> result;
  for (int i = 0; i < input_count(); ++i) result.push_back(in(i));
  return result;
}

std::optional<std::vector<std::int64_t>> Node::known_integers(int i) const {
  Value& value = reach(i);
  if (!at::isIntegralType(value.type, /*includeBool=*/true)) refuse("needs integers as its input {}", i);
  constexpr std::int64_t kMostLiterals = 4096;
  if (!value.known || value.known->numel() > kMostLiterals) return std::nullopt;
  value.frozen = true;
  at::Tensor flat = value.known->to(at::kLong).reshape({-1}).contiguous();
  const std::int64_t* data = flat.data_ptr<std::int64_t>();
  return std::vector<std::int64_t>(data, data + flat.numel());
}

std::optional<double> Node::known_number(int i) const {
  Value& value = reach(i);
  if (!value.known) return std::nullopt;
  if (value.known->numel() != 1) refuse("needs one number as its input {} and has {}", i, value.known->numel());
  value.frozen = true;
  auto number = value.known->to(at::kDouble).reshape({-1})[0].item<double>();
  return value.type == at::kFloat ? shortest(static_cast<float>(number)) : number;
}

// As a double the largest numbers would not be themselves.
std::optional<std::int64_t> Node::known_integer(int i) const {
  auto literal = known_integers(i);
  if (!literal) return std::nullopt;
  if (literal->size() != 1) refuse("needs one number as its input {} and has {}", i, literal->size());
  return literal->front();
}

std::string Node::integers(int i) {
  if (auto literal = known_integers(i)) return ints_text(*literal);
  return temporary(fmt::format("galvani_onnx.integers({})", in(i, false)));
}

std::string Node::reals(int i) {
  Value& value = reach(i);
  if (!at::isFloatingType(value.type)) refuse("needs floating-point numbers as its input {}", i);
  return temporary(fmt::format("galvani_onnx.reals({})", in(i, false)));
}

std::string Node::integer(int i) {
  if (!at::isIntegralType(type(i), /*includeBool=*/true)) refuse("needs an integer as its input {}", i);
  if (auto literal = known_integer(i)) return int_text(*literal);
  return temporary(fmt::format("galvani_onnx.integer({})", in(i, false)));
}

std::string Node::real(int i) {
  if (!at::isFloatingType(type(i))) refuse("needs a floating-point number as its input {}", i);
  if (auto literal = known_number(i)) return number_text(*literal);
  return temporary(fmt::format("galvani_onnx.real({})", in(i, false)));
}

std::string Node::number(int i) {
  return at::isFloatingType(type(i)) ? real(i) : integer(i);
}

bool Node::given(const char* name) const {
  bool found = std::any_of(attributes_.begin(), attributes_.end(),
                           [&](const AttributeProto* attribute) { return attribute->name() == name; });
  if (found) read_attributes_.insert(name);
  return found;
}

const AttributeProto* Node::attribute(const char* name, AttributeProto::AttributeType type) const {
  for (const AttributeProto* attribute : attributes_) {
    if (attribute->name() != name) continue;
    read_attributes_.insert(name);
    if (attribute->type() != type) refuse("has an attribute '{}' of the wrong type", name);
    return attribute;
  }
  return nullptr;
}

std::vector<std::string> Node::unread_attributes() const {
  std::vector<std::string> result;
  for (const AttributeProto* attribute : attributes_) {
    if (read_attributes_.count(attribute->name()) == 0) result.push_back(attribute->name());
  }
  return result;
}

std::int64_t Node::integer(const char* name, std::int64_t fallback) const {
  const AttributeProto* found = attribute(name, AttributeProto::INT);
  return found ? found->i() : fallback;
}

double Node::real(const char* name, double fallback) const {
  const AttributeProto* found = attribute(name, AttributeProto::FLOAT);
  if (!found) return fallback;
  return shortest(found->f());
}

std::string Node::text(const char* name, const std::string& fallback) const {
  const AttributeProto* found = attribute(name, AttributeProto::STRING);
  return found ? found->s() : fallback;
}

std::vector<std::int64_t> Node::integers(const char* name, std::vector<std::int64_t> fallback) const {
  const AttributeProto* found = attribute(name, AttributeProto::INTS);
  return found ? std::vector<std::int64_t>(found->ints().begin(), found->ints().end()) : std::move(fallback);
}

std::vector<double> Node::reals(const char* name) const {
  const AttributeProto* found = attribute(name, AttributeProto::FLOATS);
  return found ? std::vector<double>(found->floats().begin(), found->floats().end()) : std::vector<double>();
}

std::vector<std::string> Node::texts(const char* name) const {
  const AttributeProto* found = attribute(name, AttributeProto::STRINGS);
  return found ? std::vector<std::string>(found->strings().begin(), found->strings().end())
               : std::vector<std::string>();
}

std::string Node::temporary(const std::string& expression, const char* prefix) {
  std::string variable = sink_.fresh(prefix);
  sink_.line(variable + " = " + expression);
  return variable;
}

void Node::set_result(int i, const std::string& variable, at::ScalarType type, int rank) {
  results_[i].variable = variable;
  results_[i].type = type;
  results_[i].rank = rank;
}

std::string Node::narrow(const std::string& expression, at::ScalarType type) const {
  if (!widen_half_ || type != at::kHalf) return expression;
  return fmt::format("torch.to({}, {})", expression, type_text(at::kHalf));
}

void Node::out(const std::string& expression, int rank) {
  out(expression, type(0), rank);
}

void Node::out(const std::string& expression, at::ScalarType type, int rank) {
  if (results_.empty()) refuse("has no output");
  std::string value = expression;
  if (widen_half_ && type == at::kHalf) value = temporary(expression);
  sink_.line(variable_ + " = " + narrow(value, type));
  set_result(0, variable_, type, rank);
}

void Node::outs(const std::string& expression, const std::vector<at::ScalarType>& types,
                const std::vector<int>& ranks) {
  if (output_count() > static_cast<int>(types.size()))
    refuse("has {} outputs instead of {}", output_count(), types.size());
  if (output_count() < 1) refuse("has no output");
  std::string targets;
  std::vector<std::string> variables;
  bool narrowing = false;
  for (at::ScalarType type : types) narrowing |= widen_half_ && type == at::kHalf;
  for (std::size_t i = 0; i < types.size(); ++i) {
    std::string variable = i == 0 && !narrowing ? variable_ : sink_.fresh("o");
    targets += (i == 0 ? "" : ", ") + variable;
    variables.push_back(variable);
  }
  sink_.line(targets + " = " + expression);
  for (int i = 0; i < output_count(); ++i) {
    std::string variable = variables[i];
    if (narrowing) {
      std::string narrowed = i == 0 ? variable_ : sink_.fresh("o");
      sink_.line(narrowed + " = " + narrow(variable, types[i]));
      variable = narrowed;
    }
    set_result(i, variable, types[i], i < static_cast<int>(ranks.size()) ? ranks[i] : -1);
  }
}

void Node::out_sequence(const std::string& expression, at::ScalarType type) {
  if (results_.empty()) refuse("has no output");
  sink_.line(variable_ + " = " + expression);
  set_result(0, variable_, type, -1);
  results_[0].sequence = true;
}

void Node::same_as(int i) {
  if (results_.empty()) refuse("has no output");
  Value& value = reach_any(i);
  std::string name = results_[0].name;
  results_[0] = value;
  results_[0].name = name;
  if (value.known) results_[0].variable = sink_.constant(value);
  results_[0].known.reset();
  results_[0].origin = Value::Origin::computed;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "float('nan')";
  if (std::isinf(value)) return value > 0 ? "float('inf')" : "float('-inf')";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string float_text(float value) {
  return number_text(shortest(value));
}

std::string int_text(std::int64_t value) {
  // The parser reads the digits before the sign, and this one's digits alone overflow.
  if (value == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807 - 1)";
  return fmt::format("{}", value);
}

std::string list_text(const std::vector<std::string>& items) {
  std::string text = "[";
  for (std::size_t i = 0; i < items.size(); ++i) text += (i ? ", " : "") + items[i];
  return text + "]";
}

std::string ints_text(const std::vector<std::int64_t>& values) {
  if (values.empty()) return "annotate(List[int], [])";
  std::vector<std::string> items;
  for (std::int64_t value : values) items.push_back(int_text(value));
  return list_text(items);
}

std::string reals_text(const std::vector<double>& values) {
  if (values.empty()) return "annotate(List[float], [])";
  std::vector<std::string> items;
  for (double value : values) items.push_back(number_text(value));
  return list_text(items);
}

std::string bool_text(bool value) {
  return value ? "True" : "False";
}

std::string type_text(at::ScalarType type) {
  return fmt::format("{}", static_cast<int>(type));
}

void check_size(const Node& node, const std::vector<std::int64_t>& shape, at::ScalarType type) {
  auto bytes = static_cast<std::int64_t>(c10::elementSize(type));
  for (std::int64_t size : shape) {
    if (size < 0) node.refuse("makes a tensor with a dimension of {}", size);
    // An empty tensor takes no memory, but its strides are products of its sizes all the same.
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes) || bytes > kMaxFoldedBytes)
      node.refuse("makes a tensor larger than {} bytes", kMaxFoldedBytes);
  }
}

Emit expression(const char* format) {
  std::string pattern = format;
  return [pattern](Node& node) {
    std::string text;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] == '{') {
        text += node.in(pattern[i + 1] - '0');
        i += 2;
      } else {
        text += pattern[i];
      }
    }
    node.out(text, node.rank(0));
  };
}

bool is_default_domain(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx";
}

bool is_known_domain(const std::string& domain) {
  return is_default_domain(domain) || domain == "com.microsoft" || domain == "ai.onnx.ml";
}

const Operator* find_operator(const std::string& domain, const std::string& name, std::int64_t opset, bool& known) {
  if (is_default_domain(domain)) return find_operator(name, opset, known);
  static const std::vector<Operator> microsoft = microsoft_operators(), ml = ml_operators();
  const std::vector<Operator>& table = domain == "ai.onnx.ml" ? ml : microsoft;
  auto row = std::find_if(table.begin(), table.end(), [&](const Operator& it) { return name == it.name; });
  known = row != table.end() && is_known_domain(domain);
  return known ? &*row : nullptr;
}

const Operator* find_operator(const std::string& name, std::int64_t opset, bool& known) {
  static const std::vector<Operator> table = [] {
    std::vector<Operator> rows;
    for (auto part : {math_operators, logic_operators, nn_operators, norm_operators, tensor_operators, index_operators,
                      reduce_operators, quant_operators, image_operators, recurrent_operators, signal_operators,
                      loss_operators, sequence_operators, attention_operators}) {
      for (Operator& row : part()) rows.push_back(std::move(row));
    }
    return rows;
  }();
  known = false;
  for (const Operator& row : table) {
    if (name != row.name) continue;
    known = true;
    bool newest = opset > kNewestOpset && row.last == kNewestOpset;
    if (opset >= row.first && (opset <= row.last || newest)) return &row;
  }
  return nullptr;
}

}  // namespace galvani::onnx
