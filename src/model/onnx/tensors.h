// Tensors as ONNX files store them.
#pragma once

#include <ATen/core/Tensor.h>
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace galvani::onnx {

// The element type's tensor type; nothing for types LibTorch's CPU kernels do not have, or not usefully.
std::optional<at::ScalarType> scalar_type(int onnx_type);
// The same; of types narrower or otherwise than LibTorch's the one that holds their values: uint4 in uint8, int4 in
// int8, uint16 in int32, uint32 and uint64 in int64, floats of 8 and 4 bits in float32.
std::optional<at::ScalarType> held_type(int onnx_type);
int onnx_type(at::ScalarType type);
// "uint16", for messages.
std::string type_name(int onnx_type);

// Parses the file. REQUIRES nothing of the bytes; an Error says what is wrong.
::onnx::ModelProto parse_model(const std::string& bytes, const std::string& label);

// Reads tensors, those in files beside the model included.
class TensorReader {
 public:
  TensorReader(std::filesystem::path folder, std::string label);

  // Copies the values out; checks dims, sizes and, for external data, that the file lies inside the model's folder.
  at::Tensor read(const ::onnx::TensorProto& proto);
  // The bytes of such a tensor as the file has them, if its type is none of LibTorch's.
  std::string stored(const ::onnx::TensorProto& proto);
  // SHA-256 of everything that was read from other files so far; empty: nothing.
  const std::string& external_sha256() const { return external_sha256_; }

 private:
  // The bytes of its elements, as raw_data holds them; `expected` is how many there must be.
  std::string bytes_of(const ::onnx::TensorProto& proto, std::int64_t expected);
  void check_bytes(const std::string& name, std::size_t bytes, std::int64_t expected) const;
  std::string external_bytes(const ::onnx::TensorProto& proto, std::uint64_t expected);

  std::filesystem::path folder_;
  std::string label_;
  std::uint64_t external_total_ = 0;
  std::string external_sha256_;
};

// Little-endian bytes of a tensor's elements, as raw_data holds them.
std::string raw_bytes(const at::Tensor& tensor);

}  // namespace galvani::onnx
