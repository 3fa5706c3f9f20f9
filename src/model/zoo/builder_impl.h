// What a GraphBuilder writes to.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/onnx/writer.h"
#include "model/zoo/builder.h"

namespace galvani::zoo {

inline void set_shape(::onnx::ValueInfoProto& info, const Value& value) {
  info.set_name(value.name);
  ::onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(::onnx::TensorProto::FLOAT);
  tensor.mutable_shape()->add_dim()->set_dim_param("N");
  for (std::int64_t dim : value.shape) tensor.mutable_shape()->add_dim()->set_dim_value(dim);
}

struct GraphBuilder::Impl {
  explicit Impl(const std::string& name) : writer(name) {}

  onnx::GraphWriter writer;

  ::onnx::GraphProto& graph() { return writer.graph(); }
  ::onnx::NodeProto& add_node(const std::string& type, const std::string& name,
                              const std::vector<std::string>& inputs) {
    return writer.node(type, name, inputs);
  }

  Value give(const std::string& name, std::vector<std::int64_t> shape) {
    Value value{writer.value_of(name), std::move(shape)};
    set_shape(*graph().add_value_info(), value);
    return value;
  }
};

}  // namespace galvani::zoo
