// Small ONNX models for tests.
#pragma once

#include <ATen/core/Tensor.h>
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "model/onnx/tensors.h"

namespace galvani::onnx {

struct TestGraph {
  ::onnx::ModelProto model;

  explicit TestGraph(std::int64_t opset = 13) {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(opset);
    model.mutable_graph()->set_name("test");
  }
  ::onnx::GraphProto& graph() { return *model.mutable_graph(); }

  // A size of -1 leaves a dimension open.
  void input(const std::string& name, const std::vector<std::int64_t>& shape, int type = ::onnx::TensorProto::FLOAT) {
    auto* port = graph().add_input();
    port->set_name(name);
    auto* tensor = port->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (std::int64_t size : shape) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (size >= 0)
        dim->set_dim_value(size);
      else
        dim->set_dim_param("n");
    }
  }
  void output(const std::string& name) {
    graph().add_output()->set_name(name);
    graph().mutable_output(graph().output_size() - 1)->mutable_type()->mutable_tensor_type()->set_elem_type(1);
  }
  static void fill(::onnx::TensorProto& proto, const std::string& name, const at::Tensor& value) {
    proto.set_name(name);
    proto.set_data_type(onnx_type(value.scalar_type()));
    for (std::int64_t size : value.sizes()) proto.add_dims(size);
    proto.set_raw_data(raw_bytes(value));
  }
  ::onnx::TensorProto& weight(const std::string& name, const at::Tensor& value) {
    auto* proto = graph().add_initializer();
    fill(*proto, name, value);
    return *proto;
  }
  ::onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::string& name = "") {
    auto* proto = graph().add_node();
    proto->set_op_type(op);
    proto->set_name(name);
    for (const auto& input : inputs) proto->add_input(input);
    for (const auto& output : outputs) proto->add_output(output);
    return *proto;
  }
  static void set(::onnx::NodeProto& node, const std::string& name, std::int64_t value) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(::onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  static void set(::onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(::onnx::AttributeProto::INTS);
    for (std::int64_t value : values) attribute->add_ints(value);
  }
  static void set(::onnx::NodeProto& node, const std::string& name, const std::string& value) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(::onnx::AttributeProto::STRING);
    attribute->set_s(value);
  }
  static void set(::onnx::NodeProto& node, const std::string& name, const TestGraph& subgraph) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(::onnx::AttributeProto::GRAPH);
    *attribute->mutable_g() = subgraph.model.graph();
  }
  std::string bytes() const { return model.SerializeAsString(); }
};

}  // namespace galvani::onnx
