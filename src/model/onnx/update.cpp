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

constexpr std::size_t kLargestFile = std::numeric_limits<int>::max();

void move_inside(::onnx::TensorProto& proto, std::string bytes) {
  proto.clear_external_data();
  proto.clear_data_location();
  proto.set_raw_data(std::move(bytes));
}

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
  move_inside(proto, std::move(bytes));
}

std::size_t external_bytes(const ::onnx::GraphProto& graph) {
  std::size_t total = 0;
  for (const auto& proto : graph.initializer()) {
    if (proto.data_location() != ::onnx::TensorProto::EXTERNAL) continue;
    std::size_t bytes = c10::elementSize(scalar_type(proto.data_type()).value_or(at::kDouble));
    for (std::int64_t size : proto.dims()) {
      if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes)) return kLargestFile;
    }
    if (__builtin_add_overflow(total, bytes, &total)) return kLargestFile;
  }
  return total;
}

// An Identity of an initialiser becomes an initialiser of its own, so that it can hold other values.
void split_shared(::onnx::GraphProto& graph, const std::map<std::string, at::Tensor>& updates) {
  std::map<std::string, const ::onnx::TensorProto*> present;
  for (const auto& proto : graph.initializer()) present[proto.name()] = &proto;
  std::vector<::onnx::TensorProto> added;
  auto* nodes = graph.mutable_node();
  for (int i = nodes->size() - 1; i >= 0; --i) {
    const ::onnx::NodeProto& node = nodes->Get(i);
    if (node.op_type() != "Identity" || node.input_size() != 1 || node.output_size() != 1) continue;
    auto source = present.find(node.input(0));
    if (source == present.end() || updates.count(node.output(0)) == 0) continue;
    added.emplace_back();
    added.back().set_name(node.output(0));
    added.back().set_data_type(source->second->data_type());
    *added.back().mutable_dims() = source->second->dims();
    nodes->DeleteSubrange(i, 1);
  }
  for (auto it = added.rbegin(); it != added.rend(); ++it) *graph.add_initializer() = std::move(*it);
}

}  // namespace

std::string update_onnx(const std::string& original, const std::filesystem::path& folder, const std::string& label,
                        const std::map<std::string, at::Tensor>& initializers,
                        const std::map<std::string, std::string>& metadata) {
  ::onnx::ModelProto model = parse_model(original, label);
  split_shared(*model.mutable_graph(), initializers);
  std::map<std::string, ::onnx::TensorProto*> targets;
  for (auto& proto : *model.mutable_graph()->mutable_initializer()) targets[proto.name()] = &proto;
  for (auto& node : *model.mutable_graph()->mutable_node()) {
    if (node.op_type() != "Constant" || node.output_size() != 1) continue;
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.name() == "value" && attribute.has_t()) targets.emplace(node.output(0), attribute.mutable_t());
    }
  }
  // The result may be stored in another folder: take external tensors along where a file can hold them.
  if (model.ByteSizeLong() + external_bytes(model.graph()) < kLargestFile) {
    TensorReader reader(folder, label);
    for (auto& proto : *model.mutable_graph()->mutable_initializer()) {
      bool replaced = initializers.count(proto.name()) > 0;
      if (proto.data_location() != ::onnx::TensorProto::EXTERNAL || replaced) continue;
      if (scalar_type(proto.data_type()))
        replace_values(proto, reader.read(proto), label);
      else
        move_inside(proto, reader.stored(proto));
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
  if (model.ByteSizeLong() > kLargestFile)
    bad_input("{}: with the new values inside, the file would be larger than the 2 GiB a protocol buffer can be",
              label);
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
