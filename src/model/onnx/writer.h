// Writes an ONNX graph node by node: what the zoo and the converters of other formats share.
#pragma once

#include <ATen/core/Tensor.h>
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace galvani::onnx {

void set_int(::onnx::NodeProto& node, const std::string& name, std::int64_t value);
void set_float(::onnx::NodeProto& node, const std::string& name, float value);
void set_text(::onnx::NodeProto& node, const std::string& name, const std::string& value);
void set_ints(::onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values);

class GraphWriter {
 public:
  explicit GraphWriter(const std::string& name);  // opset 13, made by us

  ::onnx::ModelProto& model() { return model_; }
  ::onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  // Error(internal) if a value has that name already.
  void claim(const std::string& name);
  // From here on the names of nodes end in it, and a weight that exists is shared: layers laid out once more.
  void share_weights(const std::string& suffix) { suffix_ = suffix; }
  // The name of the value that a node called so gives.
  std::string value_of(const std::string& node) const { return node + suffix_; }
  // A port of the graph; sizes of -1 are open and have the names of `open`, in order.
  void input(const std::string& name, at::ScalarType type, const std::vector<std::int64_t>& shape,
             const std::vector<std::string>& open);
  // `value` must exist.
  void output(const std::string& value, at::ScalarType type, const std::vector<std::int64_t>& shape,
              const std::vector<std::string>& open);
  // A node of a layer, whose one output has its name: value_of(layer).
  ::onnx::NodeProto& node(const std::string& type, const std::string& layer, const std::vector<std::string>& inputs);
  // Initialisers are the weights and nothing else; settings that ONNX wants as tensors are Constant nodes. All give
  // back their name.
  std::string weight(const std::string& name, const at::Tensor& value);
  std::string weight(const std::string& name, const std::vector<std::int64_t>& dims, const std::vector<float>& values);
  std::string constant(const std::string& name, float value);
  std::string constant(const std::string& name, const std::vector<std::int64_t>& dims,
                       const std::vector<float>& values);
  std::string constant(const std::string& name, const std::vector<std::int64_t>& values);
  std::string real_constant(const std::string& name, const std::vector<float>& values);

  void metadata(const std::string& key, const std::string& value);
  std::string bytes() const;

 private:
  ::onnx::TensorProto& add_constant(const std::string& name, ::onnx::TensorProto::DataType type);

  // False if layers that share their weights have it already.
  bool claim_weight(const std::string& name);

  ::onnx::ModelProto model_;
  std::set<std::string> names_;
  std::set<std::string> weights_;
  std::string suffix_;
};

}  // namespace galvani::onnx
