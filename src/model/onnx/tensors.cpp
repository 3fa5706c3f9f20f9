#include "model/onnx/tensors.h"

#include <ATen/ATen.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/runtime.h"
#include "model/onnx/narrow.h"

namespace galvani::onnx {

using ::onnx::TensorProto;

namespace {

struct TypeRow {
  int onnx;
  std::optional<at::ScalarType> type;
  const char* name;
};

const TypeRow kTypes[] = {
    {TensorProto::FLOAT, at::kFloat, "float"},
    {TensorProto::UINT8, at::kByte, "uint8"},
    {TensorProto::INT8, at::kChar, "int8"},
    {TensorProto::UINT16, std::nullopt, "uint16"},
    {TensorProto::INT16, at::kShort, "int16"},
    {TensorProto::INT32, at::kInt, "int32"},
    {TensorProto::INT64, at::kLong, "int64"},
    {TensorProto::STRING, std::nullopt, "string"},
    {TensorProto::BOOL, at::kBool, "bool"},
    {TensorProto::FLOAT16, at::kHalf, "float16"},
    {TensorProto::DOUBLE, at::kDouble, "double"},
    {TensorProto::UINT32, std::nullopt, "uint32"},
    {TensorProto::UINT64, std::nullopt, "uint64"},
    {TensorProto::COMPLEX64, std::nullopt, "complex64"},
    {TensorProto::COMPLEX128, std::nullopt, "complex128"},
    {TensorProto::BFLOAT16, at::kBFloat16, "bfloat16"},
    // Newer than the library's list.
    {17, std::nullopt, "float8e4m3fn"},
    {18, std::nullopt, "float8e4m3fnuz"},
    {19, std::nullopt, "float8e5m2"},
    {20, std::nullopt, "float8e5m2fnuz"},
    {21, std::nullopt, "uint4"},
    {22, std::nullopt, "int4"},
    {23, std::nullopt, "float4e2m1"},
    {24, std::nullopt, "float8e8m0"},
    {25, std::nullopt, "uint2"},
    {26, std::nullopt, "int2"},
};

template <class T, class Field>
std::string pack(const Field& field) {
  std::string bytes(field.size() * sizeof(T), '\0');
  for (int i = 0; i < field.size(); ++i) {
    T element = static_cast<T>(field.Get(i));
    std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
  }
  return bytes;
}

std::int64_t stored_bytes(const NarrowType& type, std::int64_t count) {
  return type.bits >= 8 ? count * (type.bits / 8) : count / (8 / type.bits) + (count % (8 / type.bits) != 0 ? 1 : 0);
}

// The typed repeated fields as raw bytes. Small types travel in int32_data, float16 as its bits.
std::string typed_bytes(const TensorProto& proto) {
  switch (proto.data_type()) {
    case TensorProto::FLOAT:
      return pack<float>(proto.float_data());
    case TensorProto::DOUBLE:
      return pack<double>(proto.double_data());
    case TensorProto::INT64:
      return pack<std::int64_t>(proto.int64_data());
    case TensorProto::INT32:
      return pack<std::int32_t>(proto.int32_data());
    case TensorProto::INT16:
      return pack<std::int16_t>(proto.int32_data());
    case TensorProto::UINT32:
      return pack<std::uint32_t>(proto.uint64_data());
    case TensorProto::UINT64:
      return pack<std::uint64_t>(proto.uint64_data());
    case TensorProto::UINT16:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      return pack<std::uint16_t>(proto.int32_data());
    default:
      return pack<std::uint8_t>(proto.int32_data());
  }
}

}  // namespace

std::optional<at::ScalarType> scalar_type(int onnx_type) {
  for (const TypeRow& row : kTypes) {
    if (row.onnx == onnx_type) return row.type;
  }
  return std::nullopt;
}

std::optional<at::ScalarType> held_type(int onnx_type) {
  if (std::optional<at::ScalarType> type = scalar_type(onnx_type)) return type;
  if (const NarrowType* narrow = narrow_type(onnx_type)) return narrow->held;
  return std::nullopt;
}

int onnx_type(at::ScalarType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.onnx;
  }
  fail(ErrorCode::internal, "no ONNX element type for {}", c10::toString(type));
}

std::string type_name(int onnx_type) {
  for (const TypeRow& row : kTypes) {
    if (row.onnx == onnx_type) return row.name;
  }
  return fmt::format("number {}", onnx_type);
}

::onnx::ModelProto parse_model(const std::string& bytes, const std::string& label) {
  if (bytes.empty()) bad_input("{}: is not an ONNX model: the file is empty", label);
  if (bytes.size() > std::numeric_limits<int>::max())
    bad_input("{}: is larger than the 2 GiB a protocol buffer can be; store its weights as external data", label);
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(std::numeric_limits<int>::max());
  coded.SetRecursionLimit(64);
  ::onnx::ModelProto model;
  if (!model.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    bad_input("{}: is not an ONNX model: its bytes are no protocol buffer, or it is truncated", label);
  if (!model.has_graph()) bad_input("{}: is not an ONNX model: it has no graph", label);
  if (model.opset_import_size() == 0) bad_input("{}: is not an ONNX model: it states no opset version", label);
  return model;
}

TensorReader::TensorReader(std::filesystem::path folder, std::string label)
    : folder_(std::move(folder)), label_(std::move(label)) {}

at::Tensor TensorReader::read(const TensorProto& proto) {
  std::string name = printable(proto.name());
  std::optional<at::ScalarType> type = held_type(proto.data_type());
  const NarrowType* narrow = scalar_type(proto.data_type()) ? nullptr : narrow_type(proto.data_type());
  if (!type)
    bad_input("{}: tensor '{}' has the element type {}, which is not supported", label_, name,
              type_name(proto.data_type()));
  if (proto.has_segment()) bad_input("{}: tensor '{}' is stored in segments, which is not supported", label_, name);

  std::vector<std::int64_t> shape(proto.dims().begin(), proto.dims().end());
  std::int64_t count = 1;
  bool empty = false;
  for (std::int64_t size : shape) {
    if (size < 0) bad_input("{}: tensor '{}' has a dimension of {}", label_, name, size);
    empty |= size == 0;
  }
  if (shape.size() > 64) bad_input("{}: tensor '{}' has {} dimensions", label_, name, shape.size());
  for (std::int64_t size : shape) {
    if (!empty && __builtin_mul_overflow(count, size, &count))
      bad_input("{}: tensor '{}' has more elements than there are numbers", label_, name);
  }
  if (empty) {
    // Even without elements the sizes must multiply within 64 bits: strides are computed from them.
    for (std::int64_t size : shape) {
      if (size > std::numeric_limits<std::int32_t>::max())
        bad_input("{}: tensor '{}' has no elements but a dimension of {}", label_, name, size);
    }
    count = 0;
  }
  std::int64_t expected = 0;
  if (__builtin_mul_overflow(count, static_cast<std::int64_t>(c10::elementSize(*type)), &expected))
    bad_input("{}: tensor '{}' has more bytes than there are numbers", label_, name);
  if (narrow != nullptr) {
    at::Tensor tensor = unpack_narrow(*narrow, bytes_of(proto, stored_bytes(*narrow, count)), shape);
    if (narrow->bits == 64 && tensor.lt(0).any().item<bool>())
      bad_input("{}: tensor '{}' has a number above 2^63, which is not supported", label_, name);
    return tensor;
  }

  // Not copied where they need not be.
  std::string local;
  const std::string* bytes = &proto.raw_data();
  if (proto.data_location() == TensorProto::EXTERNAL || !proto.has_raw_data()) {
    local = bytes_of(proto, expected);
    bytes = &local;
  }
  check_bytes(name, bytes->size(), expected);
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(*type));
  if (expected > 0) std::memcpy(tensor.data_ptr(), bytes->data(), bytes->size());
  // A byte other than 0 or 1 in a C++ bool is undefined behaviour.
  if (*type == at::kBool) {
    auto* flags = static_cast<std::uint8_t*>(tensor.data_ptr());
    for (std::int64_t i = 0; i < count; ++i) flags[i] = flags[i] != 0;
  }
  return tensor;
}

std::string TensorReader::stored(const TensorProto& proto) {
  return bytes_of(proto, stored_bytes(*narrow_type(proto.data_type()), read(proto).numel()));
}

void TensorReader::check_bytes(const std::string& name, std::size_t bytes, std::int64_t expected) const {
  if (static_cast<std::int64_t>(bytes) != expected)
    bad_input("{}: tensor '{}' has {} bytes of data where its shape asks for {}", label_, name, bytes, expected);
}

std::string TensorReader::bytes_of(const TensorProto& proto, std::int64_t expected) {
  if (proto.data_location() == TensorProto::EXTERNAL)
    return external_bytes(proto, static_cast<std::uint64_t>(expected));
  std::string bytes = proto.has_raw_data() ? proto.raw_data() : typed_bytes(proto);
  check_bytes(printable(proto.name()), bytes.size(), expected);
  return bytes;
}

std::string TensorReader::external_bytes(const TensorProto& proto, std::uint64_t expected) {
  std::string name = printable(proto.name());
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
  auto parse = [&](const std::string& text) {
    std::uint64_t value = 0;
    if (text.empty() || text.size() > 19 || text.find_first_not_of("0123456789") != std::string::npos)
      bad_input("{}: tensor '{}' states '{}' for a position in its external file", label_, name, printable(text));
    for (char digit : text) value = value * 10 + static_cast<std::uint64_t>(digit - '0');
    return value;
  };
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = parse(entry.value());
    if (entry.key() == "length") length = parse(entry.value());
  }
  namespace fs = std::filesystem;
  fs::path relative(location);
  bool outside = location.empty() || location.find('\0') != std::string::npos || relative.is_absolute();
  for (const fs::path& part : relative) outside |= part == "..";
  std::error_code error;
  fs::path root = fs::canonical(folder_.empty() ? fs::path(".") : folder_, error);
  if (error) bad_input("{}: tensor '{}' is external and the model's folder cannot be read", label_, name);
  fs::path path;
  if (!outside) {
    path = fs::canonical(root / relative, error);
    if (error) bad_input("{}: tensor '{}' is in the file '{}', which is missing", label_, name, printable(location));
    // Symbolic links are resolved by now: the file itself must be below the model's folder.
    outside = std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first != root.end();
  }
  if (outside)
    bad_input("{}: tensor '{}' is in the file '{}', which is not inside the model's folder", label_, name,
              printable(location));
  if (!fs::is_regular_file(path, error))
    bad_input("{}: tensor '{}' is in '{}', which is not a file", label_, name, printable(location));
  std::uint64_t size = fs::file_size(path, error);
  if (error || offset > size || length.value_or(expected) > size - offset || length.value_or(expected) != expected)
    bad_input("{}: tensor '{}' needs {} bytes at offset {} of '{}', which does not hold them", label_, name, expected,
              offset, printable(location));
  // Many tensors may name the same bytes of one file, so its size is no bound on what they need together.
  external_total_ += expected;
  if (external_total_ > available_memory())
    bad_input("{}: its external tensors need more memory than there is", label_);
  std::string bytes(expected, '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(expected));
  if (!file) bad_input("{}: '{}' could not be read", label_, printable(location));
  external_sha256_ = sha256(external_sha256_ + sha256(bytes));
  return bytes;
}

std::string raw_bytes(const at::Tensor& tensor) {
  at::Tensor dense = tensor.detach().cpu().contiguous();
  return std::string(static_cast<const char*>(dense.data_ptr()), dense.nbytes());
}

}  // namespace galvani::onnx
