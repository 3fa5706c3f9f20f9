#include "model/onnx/writer.h"

#include <ATen/ATen.h>

#include "galvani/base/error.h"
#include "model/onnx/tensors.h"

namespace galvani::onnx {
namespace {

constexpr std::int64_t kOpset = 13;
constexpr std::int64_t kIrVersion = 8;

::onnx::AttributeProto& add_attribute(::onnx::NodeProto& node, const std::string& name,
                                      ::onnx::AttributeProto::AttributeType type) {
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

void describe(::onnx::ValueInfoProto& info, const std::string& name, at::ScalarType type,
              const std::vector<std::int64_t>& shape, const std::vector<std::string>& open) {
  info.set_name(name);
  ::onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx_type(type));
  std::size_t next = 0;
  for (std::int64_t size : shape) {
    auto* dim = tensor.mutable_shape()->add_dim();
    if (size >= 0)
      dim->set_dim_value(size);
    else
      dim->set_dim_param(open.at(next++));
  }
}

}  // namespace

void set_int(::onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  add_attribute(node, name, ::onnx::AttributeProto::INT).set_i(value);
}

void set_float(::onnx::NodeProto& node, const std::string& name, float value) {
  add_attribute(node, name, ::onnx::AttributeProto::FLOAT).set_f(value);
}

void set_text(::onnx::NodeProto& node, const std::string& name, const std::string& value) {
  add_attribute(node, name, ::onnx::AttributeProto::STRING).set_s(value);
}

void set_ints(::onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values) {
  ::onnx::AttributeProto& attribute = add_attribute(node, name, ::onnx::AttributeProto::INTS);
  for (std::int64_t value : values) attribute.add_ints(value);
}

GraphWriter::GraphWriter(const std::string& name) {
  model_.set_ir_version(kIrVersion);
  model_.set_producer_name("galvani");
  model_.set_producer_version(GALVANI_VERSION);
  ::onnx::OperatorSetIdProto& opset = *model_.add_opset_import();
  opset.set_domain("");
  opset.set_version(kOpset);
  graph().set_name(name);
}

void GraphWriter::claim(const std::string& name) {
  if (!names_.insert(name).second) fail(ErrorCode::internal, "two values of a network are called '{}'", name);
}

void GraphWriter::input(const std::string& name, at::ScalarType type, const std::vector<std::int64_t>& shape,
                        const std::vector<std::string>& open) {
  claim(name);
  describe(*graph().add_input(), name, type, shape, open);
}

void GraphWriter::output(const std::string& value, at::ScalarType type, const std::vector<std::int64_t>& shape,
                         const std::vector<std::string>& open) {
  describe(*graph().add_output(), value, type, shape, open);
}

bool GraphWriter::claim_weight(const std::string& name) {
  if (!suffix_.empty() && weights_.count(name) != 0) return false;
  claim(name);
  weights_.insert(name);
  return true;
}

::onnx::NodeProto& GraphWriter::node(const std::string& type, const std::string& layer,
                                     const std::vector<std::string>& inputs) {
  std::string name = value_of(layer);
  claim(name);
  ::onnx::NodeProto& node = *graph().add_node();
  node.set_op_type(type);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(name);
  return node;
}

std::string GraphWriter::weight(const std::string& name, const at::Tensor& value) {
  if (!claim_weight(name)) return name;
  ::onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx_type(value.scalar_type()));
  for (std::int64_t size : value.sizes()) tensor.add_dims(size);
  tensor.set_raw_data(raw_bytes(value));
  return name;
}

std::string GraphWriter::weight(const std::string& name, const std::vector<std::int64_t>& dims,
                                const std::vector<float>& values) {
  if (!claim_weight(name)) return name;
  ::onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  for (std::int64_t dim : dims) tensor.add_dims(dim);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return name;
}

::onnx::TensorProto& GraphWriter::add_constant(const std::string& name, ::onnx::TensorProto::DataType type) {
  ::onnx::NodeProto& made = node("Constant", name, {});
  ::onnx::TensorProto& tensor = *add_attribute(made, "value", ::onnx::AttributeProto::TENSOR).mutable_t();
  tensor.set_data_type(type);
  return tensor;
}

std::string GraphWriter::constant(const std::string& name, float value) {
  add_constant(name, ::onnx::TensorProto::FLOAT).add_float_data(value);
  return value_of(name);
}

std::string GraphWriter::constant(const std::string& name, const std::vector<std::int64_t>& dims,
                                  const std::vector<float>& values) {
  ::onnx::TensorProto& tensor = add_constant(name, ::onnx::TensorProto::FLOAT);
  for (std::int64_t dim : dims) tensor.add_dims(dim);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return value_of(name);
}

std::string GraphWriter::constant(const std::string& name, const std::vector<std::int64_t>& values) {
  ::onnx::TensorProto& tensor = add_constant(name, ::onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (std::int64_t value : values) tensor.add_int64_data(value);
  return value_of(name);
}

std::string GraphWriter::real_constant(const std::string& name, const std::vector<float>& values) {
  ::onnx::TensorProto& tensor = add_constant(name, ::onnx::TensorProto::FLOAT);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (float value : values) tensor.add_float_data(value);
  return value_of(name);
}

void GraphWriter::metadata(const std::string& key, const std::string& value) {
  ::onnx::StringStringEntryProto& record = *model_.add_metadata_props();
  record.set_key(key);
  record.set_value(value);
}

std::string GraphWriter::bytes() const {
  std::string bytes;
  if (!model_.SerializeToString(&bytes))
    fail(ErrorCode::internal, "{} cannot be written as ONNX", model_.graph().name());
  return bytes;
}

}  // namespace galvani::onnx
