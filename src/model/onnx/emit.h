// What an operator's emit function works with: a node's inputs and attributes on one side, source lines on the other.
//
// Text that came from the file never reaches the source: emit functions write numbers and variables of ours only.
#pragma once

#include <ATen/core/Tensor.h>
#include <fmt/core.h>
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "galvani/base/error.h"

namespace galvani::onnx {

// A tensor of the graph, or a sequence of tensors, while it is being imported.
struct Value {
  enum class Origin { computed, constant, initializer };

  std::string name;      // as the file calls it
  std::string variable;  // of the source; empty for a constant no node has read at run time yet
  at::ScalarType type = at::ScalarType::Undefined;
  int rank = -1;                    // -1: not known before the model runs
  std::optional<at::Tensor> known;  // its value, where that is fixed by the file
  Origin origin = Origin::computed;
  at::ScalarType stored = at::ScalarType::Undefined;  // of a constant: as the file has it, before it was widened
  std::int64_t number = -1;                           // of a constant, in the order of the file
  bool named = false;     // the file can be updated by this name: an initialiser or a Constant node's output
  bool frozen = false;    // never trained: running statistics and arguments
  int element = 0;        // the file's element type, where that is none of LibTorch's and `type` only holds it
  bool sequence = false;  // of tensors of `type`
  bool absent = false;    // an optional that holds nothing
  std::string problem;    // why it cannot be read, such as an element type we have no tensors for
};

// Where lines go: the module's forward, or a throw-away function that folds constants.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void line(const std::string& text) = 0;
  virtual std::string fresh(const char* prefix) = 0;
  // The text that reads a constant.
  virtual std::string constant(Value& value) = 0;
  // The same of one that no value of the graph holds.
  virtual std::string constant(const at::Tensor& tensor) = 0;
};

class Node {
 public:
  using Attributes = std::vector<const ::onnx::AttributeProto*>;

  Node(const std::string& label, const ::onnx::NodeProto& proto, Attributes attributes, std::int64_t opset,
       std::vector<Value*> inputs, std::string variable, std::vector<bool> used, Sink& sink);

  const std::string& op() const { return proto_.op_type(); }
  std::int64_t opset() const { return opset_; }

  int input_count() const { return static_cast<int>(inputs_.size()); }
  bool has(int i) const;
  int output_count() const { return proto_.output_size(); }
  // Output i has a name and something reads it.
  bool wants(int i) const { return i < static_cast<int>(used_.size()) && used_[i]; }

  const Value& value(int i) const;
  // The same, where it may also be a sequence; and where it may be an optional that holds nothing.
  const Value& any_value(int i) const;
  const Value& any_input(int i) const { return *inputs_.at(i); }
  at::ScalarType type(int i) const { return value(i).type; }
  int rank(int i) const { return value(i).rank; }
  // The input's text; with `trainable` off it becomes a buffer even if it is a floating-point initialiser.
  std::string in(int i, bool trainable = true);
  std::string in_or_none(int i) { return has(i) ? in(i) : "None"; }
  std::vector<std::string> all_inputs();
  std::string sequence(int i);  // the text of a sequence of tensors

  // Arguments that ONNX passes as tensors: literals where the file fixes them, read from the tensor at run time else.
  std::optional<std::vector<std::int64_t>> known_integers(int i) const;
  std::optional<std::int64_t> known_integer(int i) const;
  std::optional<double> known_number(int i) const;
  std::string integers(int i);
  std::string reals(int i);
  std::string integer(int i);
  std::string real(int i);
  std::string number(int i);  // of the input's own kind: an int or a float

  bool given(const char* name) const;
  std::int64_t integer(const char* name, std::int64_t fallback) const;
  double real(const char* name, double fallback) const;
  std::string text(const char* name, const std::string& fallback) const;
  std::vector<std::int64_t> integers(const char* name, std::vector<std::int64_t> fallback = {}) const;
  std::vector<double> reals(const char* name) const;
  std::vector<std::string> texts(const char* name) const;
  const ::onnx::AttributeProto* attribute(const char* name, ::onnx::AttributeProto::AttributeType type) const;
  std::vector<std::string> unread_attributes() const;

  // The text that reads a tensor made at import, such as a list of the node's attributes.
  std::string constant(const at::Tensor& tensor) { return sink_.constant(tensor); }

  // A temporary of the expression's value.
  std::string temporary(const std::string& expression, const char* prefix = "v");
  // Output 0, of the type of input 0 unless said otherwise.
  void out(const std::string& expression, int rank = -1);
  void out(const std::string& expression, at::ScalarType type, int rank = -1);
  // Several outputs from an expression whose value is a tuple.
  void outs(const std::string& expression, const std::vector<at::ScalarType>& types,
            const std::vector<int>& ranks = {});
  // Output 0 is a sequence of tensors of the type.
  void out_sequence(const std::string& expression, at::ScalarType type);
  // Output 0 is input i itself.
  void same_as(int i);

  // Floating-point arithmetic that kernels lack for float16 runs in float32: inputs are widened, outputs narrowed.
  void widen_half() { widen_half_ = true; }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    refuse_text(fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void refuse_text(const std::string& reason) const;

  std::vector<Value>& results() { return results_; }

 private:
  Value& reach(int i) const;
  Value& reach_any(int i) const;
  std::string narrow(const std::string& expression, at::ScalarType type) const;
  void set_result(int i, const std::string& variable, at::ScalarType type, int rank);

  const std::string& label_;
  const ::onnx::NodeProto& proto_;
  Attributes attributes_;
  std::int64_t opset_;
  std::vector<Value*> inputs_;
  std::string variable_;
  std::vector<bool> used_;
  Sink& sink_;
  bool widen_half_ = false;
  std::vector<Value> results_;
  mutable std::set<std::string> read_attributes_;
};

using Emit = std::function<void(Node&)>;

// One row of an operator table: the opset versions [first, last] for which `emit` is right.
struct Operator {
  const char* name;
  int first;
  int last;
  Emit emit;
  // A node of constants only is computed at import. The result is no larger than the product of its inputs' sizes, or
  // emit itself checks it.
  bool foldable = false;
  bool runs_half = false;  // its kernels take float16
};

// The newest whose changes to the operators below are known; of a newer one they are taken to have none.
constexpr int kNewestOpset = 28;
constexpr std::int64_t kMaxFoldedBytes = std::int64_t{1} << 30;

std::vector<Operator> math_operators();
std::vector<Operator> logic_operators();
std::vector<Operator> nn_operators();
std::vector<Operator> norm_operators();
std::vector<Operator> tensor_operators();
std::vector<Operator> index_operators();
std::vector<Operator> reduce_operators();
std::vector<Operator> quant_operators();
std::vector<Operator> image_operators();
std::vector<Operator> recurrent_operators();
std::vector<Operator> signal_operators();
std::vector<Operator> loss_operators();
std::vector<Operator> sequence_operators();
std::vector<Operator> attention_operators();
// Of the domain com.microsoft.
std::vector<Operator> microsoft_operators();
// Of the domain ai.onnx.ml.
std::vector<Operator> ml_operators();

// The row for an operator at an opset version; null when there is none. `known` says whether any version is known.
const Operator* find_operator(const std::string& name, std::int64_t opset, bool& known);
// The same in any domain; the versions of other domains than the default one make no difference.
const Operator* find_operator(const std::string& domain, const std::string& name, std::int64_t opset, bool& known);
bool is_default_domain(const std::string& domain);
bool is_known_domain(const std::string& domain);

// An emit function from an expression with the inputs' texts for {0}, {1}, ...
Emit expression(const char* format);

// Literals.
std::string number_text(double value);  // always a float literal
std::string float_text(float value);    // the shortest float literal that is this float
std::string int_text(std::int64_t value);
std::string ints_text(const std::vector<std::int64_t>& values);
std::string reals_text(const std::vector<double>& values);
std::string bool_text(bool value);
std::string type_text(at::ScalarType type);
std::string list_text(const std::vector<std::string>& items);  // [a, b]

// Refuses a shape whose tensor would be larger than what may be folded.
void check_size(const Node& node, const std::vector<std::int64_t>& shape, at::ScalarType type);

}  // namespace galvani::onnx
