#include <gtest/gtest.h>
#include <torch/script.h>

#include <functional>
#include <limits>

#include "galvani/base/error.h"
#include "model/onnx/program.h"
#include "model/onnx/test_graph.h"

namespace galvani::onnx {
namespace {

at::Tensor ints(const std::vector<std::int64_t>& values) {
  return at::tensor(values, at::kLong);
}

torch::jit::Module module_of(const TestGraph& graph) {
  torch::jit::Module module("model");
  build_module(import_onnx(graph.bytes(), ".", "m.onnx"), "m.onnx", module);
  return module;
}

std::string error_of(const std::string& bytes) {
  try {
    Program program = import_onnx(bytes, ".", "m.onnx");
    torch::jit::Module module("model");
    build_module(program, "m.onnx", module);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return "";
}

TestGraph relu_graph() {
  TestGraph graph;
  graph.input("x", {-1, 3});
  graph.node("Relu", {"x"}, {"y"}, "relu");
  graph.output("y");
  return graph;
}

struct Hostile {
  const char* what;
  std::function<void(TestGraph&)> spoil;
  const char* message;  // part of what the error says
};

// Every row takes a good model and spoils one thing.
const Hostile kHostile[] = {
    {"unknown operator", [](TestGraph& g) { g.graph().mutable_node(0)->set_op_type("StringConcat"); },
     "m.onnx: operator 'StringConcat' of node 'relu' is not supported"},
    {"unknown domain", [](TestGraph& g) { g.graph().mutable_node(0)->set_domain("evil.org"); },
     "of the domain 'evil.org'"},
    {"undefined input", [](TestGraph& g) { g.graph().mutable_node(0)->set_input(0, "z"); },
     "reads 'z', which nothing computes"},
    {"no input", [](TestGraph& g) { g.graph().mutable_node(0)->clear_input(); }, "lacks its input 0"},
    {"no output", [](TestGraph& g) { g.graph().mutable_node(0)->clear_output(); }, ""},
    {"cycle", [](TestGraph& g) { g.graph().mutable_node(0)->set_input(0, "y"); }, "cycle"},
    {"undefined graph output", [](TestGraph& g) { g.graph().mutable_output(0)->set_name("q"); },
     "nothing computes the graph's output 'q'"},
    {"no outputs", [](TestGraph& g) { g.graph().clear_output(); }, "no outputs"},
    {"two nodes of one name", [](TestGraph& g) { g.node("Abs", {"x"}, {"y"}); }, "two tensors are called 'y'"},
    {"two inputs of one name", [](TestGraph& g) { g.input("x", {1}); }, "two tensors are called 'x'"},
    {"no opset", [](TestGraph& g) { g.model.clear_opset_import(); }, "opset"},
    {"no graph", [](TestGraph& g) { g.model.clear_graph(); }, "no graph"},
    {"negative input size",
     [](TestGraph& g) {
       g.input("w", {1});
       g.graph()
           .mutable_input(1)
           ->mutable_type()
           ->mutable_tensor_type()
           ->mutable_shape()
           ->mutable_dim(0)
           ->set_dim_value(-5);
     },
     "dimension of -5"},
    {"unsupported type",
     [](TestGraph& g) { g.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(12); },
     "operator 'Relu' of node 'relu' reads 'x', which has the unsupported element type uint32"},
    {"sequence input", [](TestGraph& g) { g.graph().mutable_input(0)->mutable_type()->mutable_sequence_type(); },
     "not a tensor"},
    {"negative weight size", [](TestGraph& g) { g.weight("w", at::zeros({2})).set_dims(0, -2); }, "dimension of -2"},
    {"overflowing weight",
     [](TestGraph& g) {
       auto& w = g.weight("w", at::zeros({2, 2}));
       w.set_dims(0, INT64_MAX);
       w.set_dims(1, INT64_MAX);
     },
     "more elements"},
    {"empty but huge",
     [](TestGraph& g) {
       auto& w = g.weight("w", at::zeros({0, 2}));
       w.set_dims(1, INT64_MAX);
     },
     "dimension of"},
    {"short data", [](TestGraph& g) { g.weight("w", at::zeros({2})).set_raw_data("1234"); },
     "'w' has 4 bytes of data where its shape asks for 8"},
    {"long data", [](TestGraph& g) { g.weight("w", at::zeros({2})).set_dims(0, 1); },
     "8 bytes of data where its shape asks for 4"},
    {"large constant",
     [](TestGraph& g) {
       g.weight("s", ints({1000000, 1000000}));
       g.node("ConstantOfShape", {"s"}, {"c"});
     },
     "operator 'ConstantOfShape'"},
    {"large range",
     [](TestGraph& g) {
       g.weight("a", ints({0}));
       g.weight("b", ints({INT64_MAX}));
       g.weight("d", ints({1}));
       g.node("Range", {"a", "b", "d"}, {"c"});
     },
     "operator 'Range'"},
    {"endless range",
     [](TestGraph& g) {
       g.weight("a", ints({0}));
       g.weight("b", ints({1}));
       g.weight("d", ints({0}));
       g.node("Range", {"a", "b", "d"}, {"c"});
     },
     "operator 'Range'"},
    {"large expand",
     [](TestGraph& g) {
       g.weight("a", ints({0}));
       g.weight("b", ints({1000000, 1000000}));
       g.node("Expand", {"a", "b"}, {"c"});
     },
     "operator 'Expand'"},
    {"large tile",
     [](TestGraph& g) {
       g.weight("a", ints({0}));
       g.weight("b", ints({1000000000000}));
       g.node("Tile", {"a", "b"}, {"c"});
     },
     "operator 'Tile'"},
    {"folding fails",
     [](TestGraph& g) {
       g.weight("a", ints({1, 2}));
       g.weight("b", ints({1, 2, 3}));
       g.node("Add", {"a", "b"}, {"c"}, "add");
     },
     "operator 'Add' of node 'add'"},
    {"attribute of the wrong type",
     [](TestGraph& g) { TestGraph::set(g.node("Softmax", {"x"}, {"s"}), "axis", std::string("1")); },
     "attribute 'axis' of the wrong type"},
    {"attribute twice",
     [](TestGraph& g) {
       auto& n = g.node("Softmax", {"x"}, {"s"});
       TestGraph::set(n, "axis", 1);
       TestGraph::set(n, "axis", 1);
     },
     "two attributes"},
    {"mixed types",
     [](TestGraph& g) {
       g.weight("w", ints({1}));
       g.node("Add", {"x", "w"}, {"s"});
     },
     "mixes"},
    {"groups of nothing",
     [](TestGraph& g) {
       g.weight("w", at::zeros({1, 1, 1, 1}));
       TestGraph::set(g.node("Conv", {"x", "w"}, {"s"}), "group", 0);
     },
     "0 groups"},
    {"strides of nothing",
     [](TestGraph& g) {
       g.weight("w", at::zeros({1, 1, 1, 1}));
       TestGraph::set(g.node("Conv", {"x", "w"}, {"s"}), "strides", std::vector<std::int64_t>{0, 0});
     },
     "'strides'"},
    {"sparse", [](TestGraph& g) { g.graph().add_sparse_initializer(); }, "sparse"},
    {"segments", [](TestGraph& g) { g.weight("w", at::zeros({1})).mutable_segment(); }, "segments"},
};

TEST(OnnxImport, RefusesHostileModelsInOneSentence) {
  ASSERT_EQ(error_of(relu_graph().bytes()), "");
  for (const Hostile& row : kHostile) {
    TestGraph graph = relu_graph();
    row.spoil(graph);
    std::string error = error_of(graph.bytes());
    EXPECT_EQ(error.rfind("m.onnx: ", 0), 0U) << row.what << ": " << error;
    EXPECT_NE(error.find(row.message), std::string::npos) << row.what << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << row.what << ": " << error;
  }
}

TEST(OnnxImport, RefusesTruncatedAndRandomBytes) {
  TestGraph graph = relu_graph();
  graph.weight("w", at::ones({100}));
  std::string bytes = graph.bytes();
  EXPECT_NE(error_of("").find("is not an ONNX model"), std::string::npos);
  EXPECT_NE(error_of("hello, world").find("is not an ONNX model"), std::string::npos);
  for (std::size_t length = 0; length < bytes.size(); length += 3)
    EXPECT_NE(error_of(bytes.substr(0, length)), "") << length;
}

TEST(OnnxImport, RefusesNestingWithoutEnd) {
  std::string bytes;
  for (int i = 0; i < 10000; ++i) bytes += "\x3a\x7f";
  EXPECT_NE(error_of(bytes).find("is not an ONNX model"), std::string::npos);
  // A function that calls itself.
  TestGraph graph = relu_graph();
  auto* function = graph.model.add_functions();
  function->set_name("F");
  function->set_domain("d");
  function->add_input("a");
  function->add_output("b");
  auto* call = function->add_node();
  call->set_op_type("F");
  call->set_domain("d");
  call->add_input("a");
  call->add_output("b");
  graph.node("F", {"x"}, {"z"}).set_domain("d");
  EXPECT_NE(error_of(graph.bytes()).find("nested"), std::string::npos);
}

TEST(OnnxImport, TextOfTheFileNeverReachesTheSource) {
  const std::string evil = "x)\n    torch.save(1)\n    y = (\"'";
  TestGraph graph(12);
  graph.input(evil, {-1, 4});
  graph.weight(evil + "w", at::ones({4, 4}));
  auto& conv = graph.node("Einsum", {evil, evil + "w"}, {evil + "y"}, evil);
  TestGraph::set(conv, "equation", "ij,jk->ik");
  graph.output(evil + "y");
  Program program = import_onnx(graph.bytes(), ".", "m.onnx");
  EXPECT_EQ(program.source.find("save"), std::string::npos);
  EXPECT_EQ(program.node_of_variable.at("t0"), evil);
  torch::jit::Module module = module_of(graph);
  EXPECT_TRUE(module.forward({at::ones({2, 4})}).toTensor().equal(at::full({2, 4}, 4.0F)));
  conv.mutable_attribute(0)->set_s("ij,jk->ik\")\n");
  EXPECT_NE(error_of(graph.bytes()).find("unexpected character"), std::string::npos);
}

TEST(OnnxImport, ShapeArithmeticKeepsTheBatchOpen) {
  // y = reshape(x, concat(shape(x)[0:1], [2, -1])), as exporters write x.view(x.size(0), 2, -1).
  TestGraph graph;
  graph.input("x", {-1, 6});
  graph.weight("zero", at::scalar_tensor(0, at::kLong));
  graph.weight("axes", ints({0}));
  graph.weight("rest", ints({2, -1}));
  graph.node("Shape", {"x"}, {"shape"});
  TestGraph::set(graph.node("Gather", {"shape", "zero"}, {"batch"}), "axis", 0);
  graph.node("Unsqueeze", {"batch", "axes"}, {"batch1"});
  TestGraph::set(graph.node("Concat", {"batch1", "rest"}, {"target"}), "axis", 0);
  graph.node("Reshape", {"x", "target"}, {"y"});
  graph.output("y");
  torch::jit::Module module = module_of(graph);
  for (std::int64_t batch : {1, 5}) {
    at::Tensor x = at::arange(batch * 6, at::kFloat).reshape({batch, 6});
    EXPECT_TRUE(module.forward({x}).toTensor().equal(x.reshape({batch, 2, 3}))) << batch;
  }
}

TEST(OnnxImport, ConstantsFoldIntoLiterals) {
  TestGraph graph;
  graph.input("x", {-1, 6});
  graph.weight("a", ints({1, 3}));
  graph.weight("b", ints({-1, 1}));
  graph.node("Add", {"a", "b"}, {"shape"});  // 0: the input's size, 4
  graph.node("Reshape", {"x", "shape"}, {"y"});
  graph.output("y");
  Program program = import_onnx(graph.bytes(), ".", "m.onnx");
  EXPECT_TRUE(program.parameters.empty());
  EXPECT_NE(program.source.find("torch.reshape(x0, [torch.size(x0, 0), 4])"), std::string::npos) << program.source;
}

// By the processor's own instruction, the least integer divided by minus one ends the process.
TEST(OnnxImport, IntegersAreDividedWhateverTheyAre) {
  auto least = [](at::ScalarType type) {
    return type == at::kLong    ? std::numeric_limits<std::int64_t>::min()
           : type == at::kInt   ? std::numeric_limits<std::int32_t>::min()
           : type == at::kShort ? std::numeric_limits<std::int16_t>::min()
                                : std::numeric_limits<std::int8_t>::min();
  };
  struct Case {
    const char* op;
    int fmod;  // -1: no such attribute
    std::vector<std::int64_t> wanted;
  };
  for (at::ScalarType type : {at::kLong, at::kInt, at::kShort, at::kChar}) {
    std::int64_t low = least(type);
    at::Tensor a = ints({low, low, 7, -7, 7, -7, 7, -7}).to(type);
    at::Tensor b = ints({-1, 1, -1, -1, 2, 2, -2, -2}).to(type);
    const Case cases[] = {{"Div", -1, {low, low, -7, 7, 3, -3, -3, 3}},  // what has no place wraps
                          {"Mod", 0, {0, 0, 0, 0, 1, 1, -1, -1}},
                          {"Mod", 1, {0, 0, 0, 0, 1, -1, 1, -1}}};
    for (const Case& c : cases) {
      for (bool folded : {true, false}) {
        TestGraph graph;
        graph.input("x", {8}, onnx_type(folded ? at::kFloat : type));
        graph.weight("a", a);
        graph.weight("b", b);
        auto& node = graph.node(c.op, {folded ? "a" : "x", "b"}, {"y"});
        if (c.fmod >= 0) TestGraph::set(node, "fmod", static_cast<std::int64_t>(c.fmod));
        graph.output("y");
        torch::jit::Module module = module_of(graph);
        at::Tensor y = module.forward({folded ? at::zeros({8}) : a}).toTensor();
        EXPECT_EQ(y.scalar_type(), type);
        EXPECT_TRUE(y.to(at::kLong).equal(ints(c.wanted))) << c.op << " " << c.fmod << " of " << type << ": " << y;
      }
    }
  }
  for (const char* op : {"Div", "Mod"}) {
    TestGraph graph;
    graph.input("x", {2});
    graph.weight("a", ints({1, 2}));
    graph.weight("b", ints({1, 0}));
    graph.node(op, {"a", "b"}, {"y"});
    graph.output("y");
    EXPECT_NE(error_of(graph.bytes()).find("an integer is divided by zero"), std::string::npos)
        << error_of(graph.bytes());
  }
}

TEST(OnnxImport, NodesAreFoundByTheirVariable) {
  TestGraph graph;
  graph.input("x", {-1, 3, 8, 8});
  graph.weight("w", at::ones({2, 3, 2, 2}));
  auto& conv = graph.node("Conv", {"x", "w"}, {"c"}, "first");
  TestGraph::set(conv, "pads", std::vector<std::int64_t>{0, 0, 1, 1});  // needs a padding operation before it
  graph.node("Relu", {"c"}, {"y"});
  graph.output("y");
  Program program = import_onnx(graph.bytes(), ".", "m.onnx");
  EXPECT_EQ(program.node_of_variable.at("t0"), "first");
  EXPECT_EQ(program.node_of_variable.at("t1"), "y");
  torch::jit::Module module = module_of(graph);
  int found = 0;
  for (torch::jit::Node* node : module.get_method("forward").graph()->nodes()) {
    for (torch::jit::Value* value : node->outputs()) {
      if (value->debugName().rfind("t0.", 0) != 0) continue;
      EXPECT_EQ(node->kind(), c10::Symbol::fromQualString("aten::conv2d"));
      ++found;
    }
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(module.forward({at::ones({2, 3, 8, 8})}).toTensor().sizes().vec(), (std::vector<std::int64_t>{2, 2, 8, 8}));
}

TEST(OnnxImport, BatchNormAndDropoutFollowTheMode) {
  TestGraph graph;
  graph.input("x", {-1, 2});
  graph.weight("scale", at::ones({2}));
  graph.weight("bias", at::zeros({2}));
  graph.weight("mean", at::full({2}, 1.0F));
  graph.weight("var", at::full({2}, 4.0F));
  graph.weight("ratio", at::scalar_tensor(0.5, at::kFloat));
  graph.node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"n"});
  graph.node("Dropout", {"n", "ratio"}, {"y"});
  graph.output("y");
  Program program = import_onnx(graph.bytes(), ".", "m.onnx");
  for (const auto& parameter : program.parameters)
    EXPECT_EQ(parameter.trainable, parameter.initializer == "scale" || parameter.initializer == "bias");
  EXPECT_NE(program.source.find("self.training, 0.1, 1e-05"), std::string::npos) << program.source;

  torch::jit::Module module("model");
  build_module(program, "m.onnx", module);
  EXPECT_TRUE(module.is_training());
  at::Tensor x = at::tensor({1.0F, 3.0F, 5.0F, 7.0F}).reshape({2, 2});
  module.eval();
  EXPECT_TRUE(at::allclose(module.forward({x}).toTensor(), (x - 1) / std::sqrt(4 + 1e-5)));
  module.train();
  module.forward({x});
  at::Tensor mean, original;
  for (const auto& parameter : program.parameters) {
    if (parameter.initializer != "mean") continue;
    mean = module.attr(parameter.attribute).toTensor();
    original = parameter.value;
  }
  // 0.9 * 1 + 0.1 * (1 + 5) / 2, and so on; the program keeps its own copy.
  EXPECT_TRUE(at::allclose(mean, at::tensor({1.2F, 1.4F})));
  EXPECT_TRUE(original.equal(at::full({2}, 1.0F)));
  at::Tensor dropped = module.forward({at::randn({1000, 2})}).toTensor();
  EXPECT_GT((dropped == 0).sum().item<std::int64_t>(), 700);
}

TEST(OnnxImport, GradientsReachInputsAndWeights) {
  TestGraph graph;
  graph.input("x", {-1, 3});
  graph.weight("w", at::randn({2, 3}));
  graph.weight("b", at::randn({2}));
  TestGraph::set(graph.node("Gemm", {"x", "w", "b"}, {"h"}), "transB", 1);
  TestGraph::set(graph.node("Hardmax", {"h"}, {"m"}), "axis", 1);
  graph.node("Mul", {"h", "m"}, {"y"});
  graph.output("y");
  Program program = import_onnx(graph.bytes(), ".", "m.onnx");
  EXPECT_NE(program.source.find("torch.linear("), std::string::npos);
  torch::jit::Module module = module_of(graph);
  at::Tensor x = at::randn({4, 3}).requires_grad_();
  module.forward({x}).toTensor().sum().backward();
  EXPECT_GT(x.grad().abs().sum().item<float>(), 0);
  for (const at::Tensor& parameter : module.parameters()) EXPECT_TRUE(parameter.grad().defined());
}

TEST(OnnxImport, InlinesFunctionsAndSortsNodes) {
  TestGraph graph;
  graph.input("x", {-1, 3});
  auto* function = graph.model.add_functions();
  function->set_name("Double");
  function->set_domain("local");
  function->add_input("a");
  function->add_output("b");
  function->add_opset_import()->set_version(13);
  auto* add = function->add_node();
  add->set_op_type("Add");
  add->add_input("a");
  add->add_input("a");
  add->add_output("b");
  graph.node("Double", {"h"}, {"y"}).set_domain("local");
  graph.node("Relu", {"x"}, {"h"});
  graph.output("y");
  at::Tensor x = at::tensor({-1.0F, 0.0F, 2.0F}).reshape({1, 3});
  EXPECT_TRUE(module_of(graph).forward({x}).toTensor().equal(x.relu() * 2));
}

// From opset 21 on a group normalisation scales every channel by itself.
TEST(OnnxImport, GroupNormalisationScalesChannels) {
  TestGraph graph(21);
  graph.input("x", {-1, 4});
  graph.weight("scale", at::tensor({1.F, 2.F, 3.F, 4.F}));
  graph.weight("bias", at::tensor({0.F, 10.F, 20.F, 30.F}));
  auto& node = graph.node("GroupNormalization", {"x", "scale", "bias"}, {"y"}, "norm");
  TestGraph::set(node, "num_groups", 2);
  graph.output("y");
  // Each group is (-1, 1) around its mean.
  at::Tensor y = module_of(graph).forward({at::tensor({1.F, 3.F, 5.F, 9.F}).view({1, 4})}).toTensor();
  EXPECT_TRUE(at::allclose(y, at::tensor({-1.F, 12.F, 17.F, 34.F}).view({1, 4}), 1e-4)) << y;
  TestGraph::set(node, "stash_type", 10);
  EXPECT_NE(error_of(graph.bytes()).find("node 'norm' keeps its statistics"), std::string::npos);
}

TEST(OnnxImport, RefusesTypesThatQuantisationCannotHave) {
  auto quantised = [](const char* attribute, std::int64_t value) {
    TestGraph graph(23);
    graph.input("x", {-1, 4});
    graph.weight("scale", at::tensor(0.5F));
    graph.weight("zero", at::tensor({0}, at::kChar).view({}));
    for (const char* op : {"QuantizeLinear", "DequantizeLinear"}) {
      bool first = op == std::string("QuantizeLinear");
      auto& node = graph.node(op, {first ? "x" : "q", "scale", "zero"}, {first ? "q" : "y"}, op);
      bool has_it = value != 0 && (first || attribute != std::string("precision"));
      if (has_it) TestGraph::set(node, attribute, value);
    }
    graph.output("y");
    return graph;
  };
  EXPECT_EQ(error_of(quantised("block_size", 0).bytes()), "");
  EXPECT_EQ(error_of(quantised("block_size", 2).bytes()), "");
  EXPECT_NE(error_of(quantised("output_dtype", ::onnx::TensorProto::FLOAT16).bytes()).find("'output_dtype'"),
            std::string::npos);
  EXPECT_NE(error_of(quantised("precision", ::onnx::TensorProto::INT8).bytes()).find("'precision'"), std::string::npos);
  EXPECT_EQ(error_of(quantised("precision", ::onnx::TensorProto::FLOAT).bytes()), "");
}

TEST(OnnxImport, RefusesPoolingThatOpset22CutsOff) {
  auto pooled = [](std::int64_t opset, std::int64_t ceil) {
    TestGraph graph(opset);
    graph.input("x", {-1, 1, 5});
    auto& node = graph.node("MaxPool", {"x"}, {"y"}, "pool");
    TestGraph::set(node, "kernel_shape", std::vector<std::int64_t>{2});
    TestGraph::set(node, "pads", std::vector<std::int64_t>{0, 2});
    TestGraph::set(node, "ceil_mode", ceil);
    graph.output("y");
    return error_of(graph.bytes());
  };
  EXPECT_EQ(pooled(21, 1), "");
  EXPECT_EQ(pooled(22, 0), "");
  EXPECT_NE(pooled(22, 1).find("node 'pool' rounds its size up"), std::string::npos);
}

TEST(OnnxImport, TriesNewerOpsetsAndNamesWhatItDoesNotKnow) {
  TestGraph graph = relu_graph();
  graph.model.mutable_opset_import(0)->set_version(28);
  EXPECT_TRUE(import_onnx(graph.bytes(), ".", "m.onnx").warnings.empty());
  graph.model.mutable_opset_import(0)->set_version(29);
  Program program = import_onnx(graph.bytes(), ".", "m.onnx");
  ASSERT_EQ(program.warnings.size(), 1U);
  EXPECT_NE(program.warnings[0].find("uses opset 29"), std::string::npos);
  graph.graph().mutable_node(0)->set_op_type("StringConcat");
  EXPECT_NE(error_of(graph.bytes()).find("operator 'StringConcat' of node 'relu' is not supported"), std::string::npos);
  // Taken out of the standard long before.
  graph.graph().mutable_node(0)->set_op_type("Upsample");
  EXPECT_NE(error_of(graph.bytes()).find("is not supported in opset 29"), std::string::npos);
}

TEST(OnnxImport, RunsFloat16ThroughFloat32) {
  TestGraph graph;
  graph.input("x", {-1, 3}, ::onnx::TensorProto::FLOAT16);
  graph.weight("w", at::ones({3, 2}, at::kHalf));
  graph.node("MatMul", {"x", "w"}, {"y"});
  graph.output("y");
  at::Tensor y = module_of(graph).forward({at::ones({1, 3}, at::kHalf)}).toTensor();
  EXPECT_EQ(y.scalar_type(), at::kHalf);
  EXPECT_EQ(y[0][1].item<float>(), 3);
}

TEST(OnnxImport, WarnsOfWeightsThatAreNoNumbers) {
  TestGraph graph = relu_graph();
  graph.weight("bad", at::full({2}, NAN));
  Program program = import_onnx(graph.bytes(), ".", "m.onnx");
  ASSERT_EQ(program.warnings.size(), 1U);
  EXPECT_NE(program.warnings[0].find("'bad'"), std::string::npos);
}

}  // namespace
}  // namespace galvani::onnx
