#include <gtest/gtest.h>
#include <torch/script.h>

#include <filesystem>
#include <fstream>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "model/onnx/program.h"
#include "model/onnx/test_graph.h"

namespace galvani::onnx {
namespace {

namespace fs = std::filesystem;

TestGraph linear_graph() {
  TestGraph graph;
  graph.input("x", {-1, 3});
  graph.weight("w", at::arange(6, at::kFloat).reshape({3, 2}));
  graph.weight("b", at::ones({2}));
  graph.node("MatMul", {"x", "w"}, {"h"});
  graph.node("Add", {"h", "b"}, {"y"});
  graph.output("y");
  return graph;
}

std::map<std::string, at::Tensor> values_of(const std::string& bytes, const fs::path& folder) {
  std::map<std::string, at::Tensor> result;
  for (const auto& parameter : import_onnx(bytes, folder, "m.onnx").parameters)
    result[parameter.initializer] = parameter.value;
  return result;
}

// The tensor's bytes in a file beside the model.
void make_external(::onnx::TensorProto& proto, const std::string& location, const std::string& offset = "") {
  proto.clear_raw_data();
  proto.set_data_location(::onnx::TensorProto::EXTERNAL);
  auto* entry = proto.add_external_data();
  entry->set_key("location");
  entry->set_value(location);
  if (offset.empty()) return;
  entry = proto.add_external_data();
  entry->set_key("offset");
  entry->set_value(offset);
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(OnnxUpdate, RoundTripsBitForBit) {
  TestGraph graph = linear_graph();
  graph.model.set_producer_name("someone");
  auto* entry = graph.model.add_metadata_props();
  entry->set_key("kept");
  entry->set_value("1");
  std::string original = graph.bytes();
  at::Tensor w = at::randn({3, 2});
  std::string updated = update_onnx(original, ".", "m.onnx", {{"w", w}}, {{"added", "2"}});
  EXPECT_EQ(updated, update_onnx(original, ".", "m.onnx", {{"w", w}}, {{"added", "2"}}));
  Program program = import_onnx(updated, ".", "m.onnx");
  EXPECT_EQ(program.metadata, (std::map<std::string, std::string>{{"kept", "1"}, {"added", "2"}}));
  EXPECT_EQ(program.producer, "someone");
  EXPECT_EQ(raw_bytes(values_of(updated, ".").at("w")), raw_bytes(w));
  EXPECT_TRUE(values_of(updated, ".").at("b").equal(at::ones({2})));
  // Writing the old values gives the old file.
  EXPECT_EQ(update_onnx(original, ".", "m.onnx", values_of(original, "."), {}), original);
}

TEST(OnnxUpdate, WritesConstantsAndTypedFields) {
  TestGraph graph;
  graph.input("x", {-1, 2});
  auto& proto = graph.weight("w", at::zeros({2}));
  proto.clear_raw_data();
  proto.add_float_data(1);
  proto.add_float_data(2);
  auto& constant = graph.node("Constant", {}, {"c"});
  auto* attribute = constant.add_attribute();
  attribute->set_name("value");
  attribute->set_type(::onnx::AttributeProto::TENSOR);
  TestGraph::fill(*attribute->mutable_t(), "", at::ones({2}));
  graph.node("Mul", {"x", "w"}, {"h"});
  graph.node("Add", {"h", "c"}, {"y"});
  graph.output("y");
  at::Tensor w = at::tensor({5.0F, 6.0F}), c = at::tensor({7.0F, 8.0F});
  auto values = values_of(update_onnx(graph.bytes(), ".", "m.onnx", {{"w", w}, {"c", c}}, {}), ".");
  EXPECT_TRUE(values.at("w").equal(w));
  EXPECT_TRUE(values.at("c").equal(c));
}

TEST(OnnxUpdate, RefusesWhatDoesNotFit) {
  std::string bytes = linear_graph().bytes();
  EXPECT_THROW(update_onnx(bytes, ".", "m.onnx", {{"nothing", at::ones({1})}}, {}), Error);
  EXPECT_THROW(update_onnx(bytes, ".", "m.onnx", {{"w", at::ones({2, 3})}}, {}), Error);
  EXPECT_THROW(update_onnx("junk", ".", "m.onnx", {}, {}), Error);
}

TEST(OnnxUpdate, SharedWeightsComeApart) {
  TestGraph graph;
  graph.input("x", {-1, 2});
  graph.weight("a", at::zeros({2}));
  graph.node("Identity", {"a"}, {"b"});
  graph.node("Add", {"x", "a"}, {"h"});
  graph.node("Mul", {"h", "b"}, {"y"});
  graph.output("y");
  auto values = values_of(graph.bytes(), ".");
  ASSERT_EQ(values.size(), 2U);
  values.at("b") = at::full({2}, 3.0F);
  std::string updated = update_onnx(graph.bytes(), ".", "m.onnx", values, {});
  EXPECT_TRUE(values_of(updated, ".").at("a").equal(at::zeros({2})));
  EXPECT_TRUE(values_of(updated, ".").at("b").equal(at::full({2}, 3.0F)));
  torch::jit::Module module("model");
  build_module(import_onnx(updated, ".", "m.onnx"), "m.onnx", module);
  EXPECT_TRUE(module.forward({at::ones({1, 2})}).toTensor().equal(at::full({1, 2}, 3.0F)));
}

TEST(OnnxExternal, IsReadFromTheModelsFolderAndTakenAlong) {
  TemporaryFolder folder;
  at::Tensor w = at::randn({3, 2});
  fs::create_directory(folder / "data");
  write(folder / "data" / "w.bin", "pad!" + raw_bytes(w));
  TestGraph graph = linear_graph();
  make_external(*graph.graph().mutable_initializer(0), "data/w.bin", "4");
  EXPECT_TRUE(values_of(graph.bytes(), folder.path()).at("w").equal(w));
  std::string updated = update_onnx(graph.bytes(), folder.path(), "m.onnx", {{"b", at::zeros({2})}}, {});
  EXPECT_TRUE(values_of(updated, "/nowhere").at("w").equal(w));
  // What lies beside the model is part of what it is.
  std::string before = import_onnx(graph.bytes(), folder.path(), "m.onnx").external_sha256;
  EXPECT_EQ(before.size(), 64U);
  write(folder / "data" / "w.bin", "pad?" + raw_bytes(w));
  EXPECT_EQ(import_onnx(graph.bytes(), folder.path(), "m.onnx").external_sha256, before);
  write(folder / "data" / "w.bin", "pad!" + raw_bytes(w + 1));
  EXPECT_NE(import_onnx(graph.bytes(), folder.path(), "m.onnx").external_sha256, before);
  EXPECT_EQ(import_onnx(linear_graph().bytes(), folder.path(), "m.onnx").external_sha256, "");
}

TEST(OnnxExternal, CannotEscapeTheFolder) {
  TemporaryFolder outer;
  fs::path folder = outer / "model";
  fs::create_directory(folder);
  write(outer / "secret.bin", std::string(24, 's'));
  write(folder / "short.bin", std::string(8, 's'));
  fs::create_symlink(outer / "secret.bin", folder / "link.bin");
  fs::create_directory_symlink(outer.path(), folder / "up");
  fs::create_directory(folder / "dir");
  struct Row {
    std::string location;
    std::string offset;
    const char* message;
  };
  const Row rows[] = {
      {"../secret.bin", "", "not inside"},
      {"dir/../../secret.bin", "", "not inside"},
      {(outer / "secret.bin").string(), "", "not inside"},
      {"link.bin", "", "not inside"},
      {"up/secret.bin", "", "not inside"},
      {"", "", "not inside"},
      {std::string("link.bin\0x", 10), "", "not inside"},
      {"missing.bin", "", "missing"},
      {"dir", "", "not a file"},
      {"short.bin", "", "does not hold"},
      {"short.bin", "9999999999999999999", "does not hold"},
      {"short.bin", "-1", "position"},
      {"short.bin", "99999999999999999999999", "position"},
  };
  for (const Row& row : rows) {
    TestGraph graph = linear_graph();
    make_external(*graph.graph().mutable_initializer(0), row.location, row.offset);
    try {
      import_onnx(graph.bytes(), folder, "m.onnx");
      ADD_FAILURE() << row.location;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(row.message), std::string::npos) << row.location << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace galvani::onnx
