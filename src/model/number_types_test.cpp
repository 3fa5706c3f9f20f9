#include "model/number_types.h"

#include <gtest/gtest.h>
#include <torch/script.h>

#include <fstream>

#include "galvani/base/files.h"
#include "galvani/model/network.h"
#include "galvani/model/train.h"
#include "model/onnx/test_graph.h"
#include "model/testing.h"

namespace galvani {
namespace {

using onnx::TestGraph;
using testing::error_of;
using testing::random_images;

constexpr int kHalfType = ::onnx::TensorProto::FLOAT16;

std::unique_ptr<Network> load_onnx(const TestGraph& graph) {
  Network::Options options;
  options.execution = {4, false};
  return Network::from_onnx(graph.bytes(), "numbers.onnx", options);
}

// A convolution, a ReLU and a dense layer whose weights are exact in float16, in the type asked for.
TestGraph convolution_graph(at::ScalarType type, bool float_ports) {
  at::manual_seed(4);
  TestGraph graph;
  int onnx_number = type == at::kHalf ? kHalfType : ::onnx::TensorProto::FLOAT;
  graph.input("x", {-1, 3, 8, 8}, float_ports ? static_cast<int>(::onnx::TensorProto::FLOAT) : onnx_number);
  graph.weight("conv.weight", (at::randn({4, 3, 3, 3})).to(at::kHalf).to(type));
  graph.weight("conv.bias", (at::randn({4})).to(at::kHalf).to(type));
  graph.weight("fc.weight", (at::randn({4, 5})).to(at::kHalf).to(type));
  std::string x = "x";
  if (float_ports) {
    TestGraph::set(graph.node("Cast", {"x"}, {"cast"}), "to", static_cast<std::int64_t>(onnx_number));
    x = "cast";
  }
  graph.node("Conv", {x, "conv.weight", "conv.bias"}, {"c"}, "conv");
  graph.node("Relu", {"c"}, {"r"}, "relu");
  graph.node("GlobalAveragePool", {"r"}, {"g"});
  graph.node("Flatten", {"g"}, {"f"});
  graph.node("MatMul", {"f", "fc.weight"}, {"y"}, "fc");
  graph.output("y");
  return graph;
}

TEST(Float16, OnnxRunsAsItsFloat32Twin) {
  auto twin = load_onnx(convolution_graph(at::kFloat, false));
  EXPECT_EQ(twin->info().number, "float32");
  at::Tensor images = random_images(*twin, 6);
  for (bool float_ports : {false, true}) {
    auto network = load_onnx(convolution_graph(at::kHalf, float_ports));
    EXPECT_EQ(network->info().number, float_ports ? "float32" : "float16");
    Request request;
    request.taps = network->select_taps("all");
    request.objective = [](const Pass& pass) { return pass.logits.select(1, 1); };
    request.input_gradient = true;
    Outputs found = network->run(images, request);
    Outputs expected = twin->run(images, request);
    EXPECT_EQ(found.logits.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(found.logits, expected.logits)) << float_ports;
    EXPECT_TRUE(at::equal(found.taps[0], expected.taps[0]));
    EXPECT_TRUE(at::equal(found.input_gradient, expected.input_gradient));
    EXPECT_TRUE(found.input_gradient.ne(0).any().item<bool>());
  }
}

TEST(Float16, OnnxStaysFloat16WhenSaved) {
  auto network = load_onnx(convolution_graph(at::kHalf, false));
  at::Tensor images = random_images(*network, 6);
  network->set_parameter("conv.bias", at::full({4}, 0.1));  // not a float16 number: it is rounded at once
  at::Tensor logits = network->run(images).logits;
  EXPECT_EQ(network->parameter("conv.bias")[0].item<float>(), at::full({}, 0.1).to(at::kHalf).item<float>());
  TemporaryFolder folder;
  network->save(folder / "half.onnx");
  ::onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(read_file(folder / "half.onnx")));
  for (const auto& initializer : model.graph().initializer()) EXPECT_EQ(initializer.data_type(), kHalfType);
  EXPECT_EQ(model.graph().input(0).type().tensor_type().elem_type(), kHalfType);
  Network::Options options;
  options.execution = {4, false};
  EXPECT_TRUE(at::equal(Network::load(folder / "half.onnx", options)->run(images).logits, logits));
  EXPECT_TRUE(at::equal(network->clone()->run(images).logits, logits));
}

TEST(Float16, ConstantsOfTheGraphAreWidened) {
  TestGraph graph;
  graph.input("x", {-1, 3, 8, 8}, kHalfType);
  graph.node("Flatten", {"x"}, {"f"});
  graph.weight("w", at::ones({192, 2}, at::kHalf));
  graph.node("MatMul", {"f", "w"}, {"m"});
  auto* value = graph.node("Constant", {}, {"three"}).add_attribute();
  value->set_name("value");
  value->set_type(::onnx::AttributeProto::TENSOR);
  TestGraph::fill(*value->mutable_t(), "three", at::full({1}, 3, at::kHalf));
  graph.node("Add", {"m", "three"}, {"a"});
  graph.weight("size", at::full({1}, 2, at::kLong));
  auto* fill = graph.node("ConstantOfShape", {"size"}, {"halves"}).add_attribute();
  fill->set_name("value");
  fill->set_type(::onnx::AttributeProto::TENSOR);
  TestGraph::fill(*fill->mutable_t(), "fill", at::full({1}, 0.5, at::kHalf));
  graph.node("Mul", {"a", "halves"}, {"y"});
  graph.output("y");
  auto network = load_onnx(graph);
  at::Tensor images = random_images(*network, 3);
  at::Tensor expected = (images.flatten(1).to(at::kDouble).sum(1) / 255 + 3) / 2;
  EXPECT_TRUE(at::allclose(network->run(images).logits.select(1, 1).to(at::kDouble), expected, 1e-5));
}

TEST(Float16, TorchScriptRunsAndStaysFloat16) {
  at::manual_seed(4);
  at::Tensor weight = at::randn({5, 192}).to(at::kHalf);
  at::Tensor mean = at::rand({192}).to(at::kHalf);
  auto script = [&](at::ScalarType type) {
    torch::jit::Module module("half");
    module.register_attribute("training", c10::BoolType::get(), true);
    module.register_parameter("weight", weight.to(type), false);
    module.register_buffer("mean", mean.to(type));
    std::string number = type == at::kHalf ? "5" : "6";
    module.define("def forward(self, x):\n    y = torch.flatten(x, 1).to(" + number +
                  ") - self.mean\n    one = torch.ones([1], dtype=" + number +
                  ")\n    return torch.matmul(y, self.weight.t()) + one\n");
    TemporaryFolder folder;
    module.save((folder / "half.pt").string());
    Network::Options options;
    options.execution = {4, false};
    options.data_shape = {3, 8, 8};
    return Network::load(folder / "half.pt", options);
  };
  auto network = script(at::kHalf);
  auto twin = script(at::kFloat);
  EXPECT_EQ(network->info().number, "float16");
  at::Tensor images = random_images(*network, 5);
  at::Tensor logits = network->run(images).logits;
  EXPECT_TRUE(at::equal(logits, twin->run(images).logits));
  TemporaryFolder folder;
  network->save(folder / "saved.pt");
  EXPECT_EQ(torch::jit::load((folder / "saved.pt").string()).attr("weight").toTensor().scalar_type(), at::kHalf);
  Network::Options options;
  options.execution = {4, false};
  EXPECT_TRUE(at::equal(Network::load(folder / "saved.pt", options)->run(images).logits, logits));
  Dataset data;
  data.name = "few";
  data.images = images;
  data.labels = at::zeros({5}, at::kLong);
  EXPECT_NE(error_of([&] { train(*network, data, data, {}, [](const EpochReport&) {}); }).find("float16"),
            std::string::npos);
}

TEST(Uint8, OnnxTakesTheBytesThemselves) {
  TestGraph graph;
  graph.input("x", {-1, 3, 8, 8}, ::onnx::TensorProto::UINT8);
  TestGraph::set(graph.node("Transpose", {"x"}, {"t"}), "perm", std::vector<std::int64_t>{0, 1, 3, 2});
  TestGraph::set(graph.node("Cast", {"t"}, {"c"}), "to", std::int64_t{::onnx::TensorProto::FLOAT});
  graph.node("Flatten", {"c"}, {"f"});
  at::manual_seed(4);
  at::Tensor w = at::randn({192, 4});
  graph.weight("fc.weight", w);
  graph.node("MatMul", {"f", "fc.weight"}, {"y"}, "fc");
  graph.output("y");
  auto network = load_onnx(graph);
  EXPECT_EQ(network->info().number, "uint8");
  EXPECT_EQ(network->card().preprocess.high, 255);
  at::Tensor images = random_images(*network, 5);
  at::Tensor expected = at::matmul(images.transpose(2, 3).flatten(1).to(at::kFloat), w);
  EXPECT_TRUE(at::allclose(network->run(images).logits, expected, 1e-4, 1e-2));
  // Between two bytes the nearer one counts, and the gradient passes.
  Request request;
  request.objective = [](const Pass& pass) { return pass.logits.select(1, 2); };
  request.input_gradient = true;
  Outputs between = network->run(images.to(at::kFloat) + 0.25, request);
  EXPECT_TRUE(at::allclose(between.logits, expected, 1e-4, 1e-2));
  at::Tensor slope = w.select(1, 2).view({3, 8, 8}).transpose(1, 2);
  EXPECT_TRUE(at::allclose(between.input_gradient[0], slope, 1e-5, 1e-6));
}

TEST(Uint8, OperatorsOnBytesGetBytes) {
  TestGraph graph;
  graph.input("x", {-1, 3, 8, 8}, ::onnx::TensorProto::UINT8);
  graph.weight("seven", at::full({1}, 7, at::kByte));
  graph.node("Div", {"x", "seven"}, {"d"});  // of integers: the remainder is lost
  TestGraph::set(graph.node("Cast", {"d"}, {"c"}), "to", std::int64_t{::onnx::TensorProto::FLOAT});
  graph.node("GlobalAveragePool", {"c"}, {"g"});
  graph.node("Flatten", {"g"}, {"y"});
  graph.output("y");
  auto network = load_onnx(graph);
  at::Tensor images = random_images(*network, 5);
  at::Tensor expected = images.to(at::kLong).div(7, "floor").to(at::kDouble).mean({2, 3}).to(at::kFloat);
  EXPECT_TRUE(at::allclose(network->run(images).logits, expected, 1e-5));
}

TEST(Uint8, TorchScriptByStatementOrByTrial) {
  TemporaryFolder folder;
  auto save = [&](const char* file, const std::string& body) {
    torch::jit::Module module("bytes");
    module.register_parameter("weight", at::ones({2, 192}), false);
    module.define("def forward(self, x):\n" + body + "    return torch.linear(torch.flatten(y, 1), self.weight)\n");
    module.save((folder / file).string());
  };
  Network::Options options;
  options.execution = {4, false};
  options.data_shape = {3, 8, 8};
  // Runs on floats too, so it has to be said.
  save("stated.pt", "    y = x.to(6) / 255\n");
  EXPECT_EQ(Network::load(folder / "stated.pt", options)->info().number, "float32");
  write_file(folder / "stated.toml", "type = \"uint8\"\n");
  auto stated = Network::load(folder / "stated.pt", options);
  EXPECT_EQ(stated->info().number, "uint8");
  // Bits exist in integers only.
  save("found.pt", "    y = torch.bitwise_and(x, 15).to(6)\n");
  auto found = Network::load(folder / "found.pt", options);
  EXPECT_EQ(found->info().number, "uint8");
  at::Tensor images = random_images(*stated, 4);
  at::Tensor sums = images.to(at::kDouble).flatten(1).sum(1).to(at::kFloat) / 255;
  EXPECT_TRUE(at::allclose(stated->run(images).logits.select(1, 0), sums, 1e-4));
  at::Tensor low = images.to(at::kLong).remainder(16).flatten(1).sum(1).to(at::kFloat);
  EXPECT_TRUE(at::allclose(found->run(images).logits.select(1, 0), low, 1e-5));
  found->save(folder / "again.pt");
  EXPECT_EQ(Network::load(folder / "again.pt", options)->info().number, "uint8");
}

TEST(Uint8, OtherTypesAreRefused) {
  TestGraph graph;
  graph.input("x", {-1, 3, 8, 8}, ::onnx::TensorProto::INT64);
  TestGraph::set(graph.node("Cast", {"x"}, {"c"}), "to", std::int64_t{::onnx::TensorProto::FLOAT});
  graph.node("GlobalAveragePool", {"c"}, {"g"});
  graph.node("Flatten", {"g"}, {"y"});
  graph.output("y");
  EXPECT_NE(error_of([&] { load_onnx(graph); }).find("uint8"), std::string::npos);
}

}  // namespace
}  // namespace galvani
