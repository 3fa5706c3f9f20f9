#include <ATen/ATen.h>

#include <string>

#include "galvani/base/rng.h"
#include "galvani/model/zoo.h"
#include "quality/testing.h"

namespace galvani::testing {
namespace {

// An ONNX file is a protocol buffer: fields of numbers and of bytes.
std::string varint(std::uint64_t n) {
  std::string bytes;
  for (; n >= 128; n >>= 7) bytes += static_cast<char>((n & 127) | 128);
  return bytes + static_cast<char>(n);
}

std::string number_field(std::uint64_t field, std::int64_t value) {
  return varint(field << 3) + varint(static_cast<std::uint64_t>(value));
}

std::string bytes_field(std::uint64_t field, const std::string& bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}

std::string onnx_tensor(const std::string& name, const at::Tensor& values) {
  at::Tensor floats = values.to(at::kFloat).contiguous();
  std::string bytes;
  for (std::int64_t n : floats.sizes()) bytes += number_field(1, n);
  std::string raw(static_cast<const char*>(floats.data_ptr()), floats.nbytes());
  return bytes + number_field(2, 1) + bytes_field(8, name) + bytes_field(9, raw);
}

std::string onnx_node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output) {
  std::string bytes;
  for (const std::string& input : inputs) bytes += bytes_field(1, input);
  return bytes + bytes_field(2, output) + bytes_field(4, op);
}

std::string onnx_value(const std::string& name, const std::vector<std::int64_t>& shape) {
  std::string sizes = bytes_field(1, bytes_field(2, "n"));
  for (std::int64_t n : shape) sizes += bytes_field(1, number_field(1, n));
  return bytes_field(1, name) + bytes_field(2, bytes_field(1, number_field(1, 1) + bytes_field(2, sizes)));
}

}  // namespace

std::unique_ptr<Network> linear_network(const std::vector<std::int64_t>& shape, const at::Tensor& weight,
                                        const at::Tensor& bias) {
  std::string graph = bytes_field(1, onnx_node("Flatten", {"x"}, "flat")) +
                      bytes_field(1, onnx_node("MatMul", {"flat", "weight"}, "product")) +
                      bytes_field(1, onnx_node("Add", {"product", "bias"}, "y")) + bytes_field(2, "linear") +
                      bytes_field(5, onnx_tensor("weight", weight)) + bytes_field(5, onnx_tensor("bias", bias)) +
                      bytes_field(11, onnx_value("x", shape)) + bytes_field(12, onnx_value("y", {bias.size(0)}));
  Network::Options options;
  options.execution = {16, false};
  return Network::from_onnx(number_field(1, 8) + bytes_field(8, number_field(2, 13)) + bytes_field(7, graph), "linear",
                            options);
}

std::unique_ptr<Network> small_network() {
  Rng rng(1);
  Network::Options options;
  options.execution = {16, false};
  std::string bytes = architectures().create(Spec::parse("lenet1"), ArchitectureShape{1, 28, 28, 10}, rng);
  return Network::from_onnx(std::move(bytes), "lenet1", options);
}

at::Tensor noise_images(const Network& network, std::int64_t n) {
  const auto& in = network.info().input;
  at::Tensor images = at::empty({n, in[0], in[1], in[2]}, at::kByte);
  Rng rng(5);
  auto* pixels = images.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < images.numel(); ++i) pixels[i] = static_cast<std::uint8_t>(rng.below(256));
  return images;
}

}  // namespace galvani::testing
