#include "model/onnx/narrow.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "galvani/base/error.h"
#include "model/onnx/program.h"
#include "model/onnx/test_graph.h"

namespace galvani::onnx {
namespace {

constexpr int kUint16 = 4, kE4m3 = 17, kE4m3Uz = 18, kE5m2 = 19, kUint4 = 21, kInt4 = 22, kE2m1 = 23, kE8m0 = 24,
              kInt2 = 26;

using Doubles = std::vector<double>;
using Floats = std::vector<float>;

std::vector<double> unpacked(int type, const std::vector<int>& bytes, std::int64_t count) {
  at::Tensor tensor = unpack_narrow(*narrow_type(type), std::string(bytes.begin(), bytes.end()), {count});
  at::Tensor values = tensor.to(at::kDouble);
  return {values.data_ptr<double>(), values.data_ptr<double>() + count};
}

std::vector<float> rounded(int type, const std::vector<float>& values, bool saturate = true) {
  at::Tensor result = round_narrow(*narrow_type(type), at::tensor(values), saturate).to(at::kFloat);
  return {result.data_ptr<float>(), result.data_ptr<float>() + result.numel()};
}

// Codes and values of the tables in the ONNX standard's pages on its 4-bit and 8-bit types.
TEST(Narrow, ReadsCodes) {
  EXPECT_EQ(unpacked(kInt4, {0x8F, 0x70}, 3), Doubles({-1, -8, 0}));
  EXPECT_EQ(unpacked(kUint4, {0x8F, 0x70}, 4), Doubles({15, 8, 0, 7}));
  EXPECT_EQ(unpacked(kInt2, {0xE4}, 4), Doubles({0, 1, -2, -1}));
  EXPECT_EQ(unpacked(kUint16, {0x01, 0x80}, 1), Doubles({32769}));
  EXPECT_EQ(unpacked(kE2m1, {0x21, 0xF6}, 4), Doubles({0.5, 1, 4, -6}));
  EXPECT_EQ(unpacked(kE4m3, {0x7E, 0x01, 0x38, 0xB8, 0x08}, 5), Doubles({448, 1.0 / 512, 1, -1, 1.0 / 64}));
  EXPECT_EQ(unpacked(kE5m2, {0x7B, 0x01, 0x3C, 0x7C, 0xFC}, 5), Doubles({57344, 1.0 / 65536, 1, INFINITY, -INFINITY}));
  EXPECT_EQ(unpacked(kE4m3Uz, {0x7F, 0x40}, 2), Doubles({240, 1}));
  EXPECT_EQ(unpacked(kE8m0, {127, 0, 130}, 3), Doubles({1, std::ldexp(1.0, -127), 8}));
  EXPECT_TRUE(std::isnan(unpacked(kE4m3, {0x7F}, 1)[0]));
  EXPECT_TRUE(std::isnan(unpacked(kE4m3Uz, {0x80}, 1)[0]));
  EXPECT_TRUE(std::isnan(unpacked(kE5m2, {0x7D}, 1)[0]));
}

TEST(Narrow, RoundsToTheNearestEven) {
  // Between 1 and 1.125 lies 1.0625, between 1.125 and 1.25 1.1875.
  EXPECT_EQ(rounded(kE4m3, {1.0625F, 1.1875F, 1.07F, 449, 1e9F, -1e9F, INFINITY}),
            Floats({1, 1.25F, 1.125F, 448, 448, -448, 448}));
  EXPECT_TRUE(std::isnan(rounded(kE4m3, {465}, false)[0]));
  EXPECT_EQ(rounded(kE4m3, {463}, false), Floats({448}));
  EXPECT_EQ(rounded(kE5m2, {1e9F, -INFINITY}, false), Floats({INFINITY, -INFINITY}));
  EXPECT_EQ(rounded(kE2m1, {2.5F, 3.5F, -100}), Floats({2, 4, -6}));
  EXPECT_EQ(rounded(kInt4, {7, 8, -9}), Floats({7, -8, 7}));
  EXPECT_EQ(rounded(kUint4, {15, 17, -1}), Floats({15, 1, 15}));
}

::onnx::TensorProto& weight(TestGraph& graph, int type, std::int64_t count, const std::string& bytes) {
  auto& proto = *graph.graph().add_initializer();
  proto.set_name("w");
  proto.set_data_type(type);
  proto.add_dims(count);
  proto.set_raw_data(bytes);
  return proto;
}

std::string refusal_of(const TestGraph& graph) {
  try {
    import_onnx(graph.bytes(), ".", "m.onnx");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// What calculates would overflow where the type itself does not.
TEST(Narrow, OnlyWhatMovesValuesReadsThem) {
  TestGraph graph(21);
  graph.input("x", {-1});
  weight(graph, kUint16, 2, "1234");
  graph.node("Add", {"w", "w"}, {"sum"}, "add");
  TestGraph::set(graph.node("Cast", {"sum"}, {"y"}), "to", std::int64_t{1});
  graph.output("y");
  EXPECT_NE(refusal_of(graph).find("operator 'Add' of node 'add' reads 'w', which has the unsupported element "
                                   "type uint16"),
            std::string::npos);
  graph.graph().mutable_node(0)->set_op_type("Max");
  EXPECT_EQ(refusal_of(graph), "");
}

TEST(Narrow, NeedsItsBytes) {
  TestGraph graph(21);
  graph.input("x", {-1});
  weight(graph, kInt4, 3, "1");
  graph.output("x");
  EXPECT_NE(refusal_of(graph).find("'w' has 1 bytes of data where its shape asks for 2"), std::string::npos);
}

// Such weights are no parameters, and saving leaves their bytes alone.
TEST(Narrow, IsKeptAsItIs) {
  TestGraph graph(21);
  graph.input("x", {-1});
  std::string bytes = weight(graph, kE4m3, 2, std::string{0x38, 0x7E}).raw_data();
  graph.weight("s", at::scalar_tensor(2.0F));
  graph.node("DequantizeLinear", {"w", "s"}, {"d"});
  graph.node("Add", {"x", "d"}, {"y"});
  graph.output("y");
  Program program = import_onnx(graph.bytes(), ".", "m.onnx");
  for (const Program::Parameter& parameter : program.parameters) EXPECT_FALSE(parameter.trainable);
  std::map<std::string, at::Tensor> values;
  for (const Program::Parameter& parameter : program.parameters) {
    if (!parameter.initializer.empty()) values[parameter.initializer] = parameter.value;
  }
  ::onnx::ModelProto saved;
  ASSERT_TRUE(saved.ParseFromString(update_onnx(graph.bytes(), ".", "m.onnx", values, {})));
  EXPECT_EQ(saved.graph().initializer(0).raw_data(), bytes);
  EXPECT_EQ(saved.graph().initializer(0).data_type(), kE4m3);
}

}  // namespace
}  // namespace galvani::onnx
