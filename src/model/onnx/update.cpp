// Writing values back into the file they came from.
#include <ATen/ATen.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>

#include "galvani/base/error.h"
#include "model/onnx/program.h"
#include "model/onnx/tensors.h"

namespace galvani::onnx {

namespace {

void replace_values(::onnx::TensorProto& proto, const at::Tensor& tensor, const std::string& label) {
  std::string name = printable(proto.name());
  std::optional<at::ScalarType> type = scalar_type(proto.data_type());
  std::vector<std::int64_t> shape(proto.dims().begin(), proto.dims().end());
  if (!type || tensor.sizes() != at::IntArrayRef(shape))
    bad_input("{}: initialiser '{}' cannot take a tensor of another shape or type", label, name);
  std::string bytes = raw_bytes(tensor.detach().to(*type));
  proto.clear_float_data();
  proto.clear_double_data();
  proto.clear_int32_data();
  proto.clear_int64_data();
  proto.clear_uint64_data();
  proto.clear_external_data();
  proto.clear_data_location();
  proto.set_raw_data(std::move(bytes));
}

}  // namespace

std::string update_onnx(const std::string& original, const std::filesystem::path& folder, const std::string& label,
                        const std::map<std::string, at::Tensor>& initializers,
                        const std::map<std::string, std::string>& metadata) {
  ::onnx::ModelProto model = parse_model(original, label);
  std::map<std::string, ::onnx::TensorProto*> targets;
  for (auto& proto : *model.mutable_graph()->mutable_initializer()) targets[proto.name()] = &proto;
  for (auto& node : *model.mutable_graph()->mutable_node()) {
    if (node.op_type() != "Constant" || node.output_size() != 1) continue;
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.name() == "value" && attribute.has_t()) targets.emplace(node.output(0), attribute.mutable_t());
    }
  }
  for (const auto& [name, tensor] : initializers) {
    auto found = targets.find(name);
    if (found == targets.end()) bad_input("{}: there is no initialiser '{}' to update", label, printable(name));
    replace_values(*found->second, tensor, label);
  }
  for (const auto& [key, text] : metadata) {
    ::onnx::StringStringEntryProto* entry = nullptr;
    for (auto& present : *model.mutable_metadata_props()) {
      if (present.key() == key) entry = &present;
    }
    if (!entry) entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(text);
  }
  if (model.ByteSizeLong() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    bad_input("{}: with the new values inside, the file would be larger than the 2 GiB a protocol buffer can be", label);
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    model.SerializeToCodedStream(&coded);
  }
  return bytes;
}

}  // namespace galvani::onnx
