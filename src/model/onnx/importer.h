// Walks an ONNX graph and writes TorchScript.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include "model/onnx/emit.h"
#include "model/onnx/program.h"
#include "model/onnx/tensors.h"

namespace galvani::onnx {

// Functions and subgraphs inside each other.
constexpr int kMaxCallDepth = 32;

// The names in sight: a graph's own, then those of the graphs around it.
class Scope {
 public:
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}

  // Null if nothing is called so.
  Value* find(const std::string& name) const;
  std::shared_ptr<Value> at(const std::string& name) const;
  bool defines(const std::string& name) const { return own_.count(name) > 0; }
  bool add(const std::string& name, std::shared_ptr<Value> value) {
    return own_.emplace(name, std::move(value)).second;
  }
  std::unordered_map<std::string, std::shared_ptr<Value>>& own() { return own_; }

 private:
  const Scope* outer_;
  std::unordered_map<std::string, std::shared_ptr<Value>> own_;
};

using ::onnx::FunctionProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using Nodes = google::protobuf::RepeatedPtrField<NodeProto>;

class Importer : public Sink {
 public:
  Importer(const ModelProto& model, const std::filesystem::path& folder, const std::string& label, bool widen,
           Ports ports)
      : model_(model), label_(label), widen_(widen), ports_(ports), reader_(folder, label) {
    for (const FunctionProto& function : model.functions())
      functions_.emplace(std::pair(function.domain(), function.name()), &function);
  }

  Program run();

  void line(const std::string& text) override;
  std::string fresh(const char* prefix) override { return fmt::format("{}{}", prefix, next_temporary_++); }
  std::string constant(Value& value) override;
  std::string constant(const at::Tensor& tensor) override;

 private:
  // Attributes a function's caller passed, by the function's name for them.
  using Passed = std::map<std::string, const ::onnx::AttributeProto*>;
  // Where a node stands.
  struct Context {
    std::int64_t opset;
    const Passed& passed;
    int depth;  // of functions and subgraphs around it
  };
  // A node that has subgraphs.
  struct Control {
    Node& node;
    const NodeProto& proto;
    Scope& scope;
    const Context& context;
    std::string variable;    // for its first output
    std::vector<bool> used;  // by output
  };
  // A loop on its way into the source. Its body takes the number of the pass and the condition if they are `counted`,
  // then what is carried from pass to pass, then elements; it gives the condition, what is carried and what is
  // collected.
  struct LoopPlan {
    struct Element {
      std::string before, after;  // of the pass's number
      Value like;
      int rank;
    };

    explicit LoopPlan(const GraphProto& graph) : body(graph) {}

    const GraphProto& body;
    int counted = 0;    // 1 of a Loop
    std::string trips;  // how many passes at most
    std::vector<std::shared_ptr<Value>> initial;
    std::vector<std::string> variables;
    std::vector<int> ranks;       // what the body may take those of the carried values to be
    std::string condition;        // its variable; empty: it is always true
    std::string first_condition;  // its text
    std::vector<Element> elements;
    std::vector<std::string> lists;  // of what is collected
    std::vector<std::pair<at::ScalarType, int>> collected;
  };

  void count_source(std::size_t bytes);
  void read_header();
  void add_initializers();
  void add_inputs();
  void add_outputs();
  std::vector<const NodeProto*> sorted(const Nodes& nodes, const Scope& scope) const;
  void emit_nodes(const Nodes& nodes, Scope& scope, const std::vector<std::string>& outputs, const Context& context);
  void emit_node(const NodeProto& proto, Scope& scope, const std::set<std::string>& read, const Context& context);
  void call(const FunctionProto& function, const NodeProto& proto, Scope& scope, const Node::Attributes& attributes,
            const Context& context);
  void retain(Scope& scope);

  // control.cpp
  bool emit_control(const Control& control);
  void emit_if(const Control& control);
  void emit_loop(const Control& control);
  void emit_scan(const Control& control);
  void emit_sequence_map(const Control& control);
  void plan_carried(const Control& control, LoopPlan& plan, int from, int count);
  bool unroll(const Control& control, const LoopPlan& plan, std::int64_t trips);
  bool write_loop(const Control& control, LoopPlan& plan);
  void finish_loop(const Control& control, LoopPlan& plan);
  // What the subgraph gives, after its statements; `scope` holds its inputs.
  std::vector<std::shared_ptr<Value>> emit_subgraph(const Control& control, const GraphProto& graph, Scope& scope);
  std::string text_of(Value& value);
  void assign(const std::vector<std::string>& variables, const std::vector<std::shared_ptr<Value>>& values);
  std::string begin_list();
  void define_output(const Control& control, int i, std::shared_ptr<Value> value);

  Node::Attributes attributes_of(const NodeProto& proto, const Passed& passed) const;
  std::shared_ptr<Value> constant_node(const Node& node);
  void set_constant(Value& value, const at::Tensor& read) const;
  const FunctionProto* find_function(const NodeProto& proto) const;
  std::int64_t opset_of(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports) const;
  void define(Scope& scope, const std::string& name, std::shared_ptr<Value> value);
  void add_initializer(Scope& scope, const ::onnx::TensorProto& proto, bool inner);
  void finish_parameters();

  const ModelProto& model_;
  const std::string& label_;
  bool widen_;
  Ports ports_;
  TensorReader reader_;
  std::map<std::pair<std::string, std::string>, const FunctionProto*> functions_;  // by domain and name
  Program program_;
  Scope graph_;
  std::string body_;
  std::string indent_ = "    ";
  bool loops_ = false;
  bool classic_ = false;                               // has nodes of ai.onnx.ml
  std::map<std::int64_t, const Value*> materialised_;  // constants that the source reads, by number
  std::vector<std::shared_ptr<Value>> retained_;       // values of inner scopes, which materialised_ may point to
  std::int64_t next_temporary_ = 0;
  std::int64_t next_constant_ = 0;
  std::int64_t next_node_ = 0;
  std::int64_t lines_ = 0;
  std::size_t source_bytes_ = 0;
  std::int64_t folded_bytes_ = 0;
  std::set<std::string> warned_;
};

}  // namespace galvani::onnx
