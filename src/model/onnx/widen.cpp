#include "model/onnx/widen.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <string>

#include "model/onnx/tensors.h"

namespace galvani::onnx {

using ::onnx::TensorProto;

namespace {

bool is_half_type(std::int64_t type) {
  return type == TensorProto::FLOAT16 || type == TensorProto::BFLOAT16;
}

bool widen_port(::onnx::ValueInfoProto& port) {
  if (!port.type().has_tensor_type() || !is_half_type(port.type().tensor_type().elem_type())) return false;
  port.mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::FLOAT);
  return true;
}

// Attributes that name an element type, and the value that ConstantOfShape repeats.
bool widen_attribute(::onnx::AttributeProto& attribute, const std::string& op) {
  static const std::set<std::string> kNamingTypes = {"to", "dtype", "output_datatype", "output_dtype", "precision"};
  if (kNamingTypes.count(attribute.name()) != 0 && is_half_type(attribute.i())) {
    attribute.set_i(TensorProto::FLOAT);
    return true;
  }
  if (!attribute.has_t() || !is_half_type(attribute.t().data_type())) return false;
  if (op != "ConstantOfShape") return true;
  at::Tensor value = widened(TensorReader({}, "value").read(attribute.t()));
  attribute.mutable_t()->Clear();
  attribute.mutable_t()->set_data_type(TensorProto::FLOAT);
  for (std::int64_t size : value.sizes()) attribute.mutable_t()->add_dims(size);
  attribute.mutable_t()->set_raw_data(raw_bytes(value));
  return true;
}

bool widen_graph(::onnx::GraphProto& graph);

template <class Nodes>
bool widen_nodes(Nodes& nodes) {
  bool found = false;
  for (auto& node : nodes) {
    for (auto& attribute : *node.mutable_attribute()) {
      found |= widen_attribute(attribute, node.op_type());
      if (attribute.has_g()) found |= widen_graph(*attribute.mutable_g());
    }
  }
  return found;
}

bool widen_graph(::onnx::GraphProto& graph) {
  bool found = false;
  for (const auto& initializer : graph.initializer()) found |= is_half_type(initializer.data_type());
  for (auto* ports : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()}) {
    for (auto& port : *ports) found |= widen_port(port);
  }
  return found | widen_nodes(*graph.mutable_node());
}

}  // namespace

bool widen_types(::onnx::ModelProto& model) {
  bool found = widen_graph(*model.mutable_graph());
  for (auto& function : *model.mutable_functions()) found |= widen_nodes(*function.mutable_node());
  return found;
}

bool has_half_input(const ::onnx::ModelProto& model) {
  const auto& inputs = model.graph().input();
  return std::any_of(inputs.begin(), inputs.end(), [](const ::onnx::ValueInfoProto& port) {
    return port.type().has_tensor_type() && is_half_type(port.type().tensor_type().elem_type());
  });
}

at::Tensor widened(const at::Tensor& value) {
  bool half = value.scalar_type() == at::kHalf || value.scalar_type() == at::kBFloat16;
  return half ? value.to(at::kFloat) : value;
}

}  // namespace galvani::onnx
