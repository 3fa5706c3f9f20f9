#include "model_seeds.h"

#include <torch/script.h>

#include <algorithm>
#include <sstream>

#include "galvani/base/files.h"
#include "galvani/base/options.h"
#include "galvani/model/zoo.h"
#include "model/train/checkpoint.h"

namespace galvani {
namespace fs = std::filesystem;
using ::onnx::NodeProto;

NodeProto& add_node(::onnx::GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
                    const std::string& output) {
  NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  node.set_name("added_" + output);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

void set_int(NodeProto& node, const std::string& name, std::int64_t value) {
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::INT);
  attribute.set_i(value);
}

namespace {

using ::onnx::ModelProto;
using ::onnx::TensorProto;

at::Tensor weight(const std::vector<std::int64_t>& shape, double scale) {
  std::int64_t n = 1;
  for (std::int64_t side : shape) n *= side;
  return at::arange(n, at::kFloat).mul(0.7).sin().mul(scale).reshape(shape);
}

torch::jit::Module layer(const std::string& name, const std::shared_ptr<torch::jit::CompilationUnit>& unit,
                         std::vector<std::int64_t> shape, const std::string& code) {
  torch::jit::Module module("__torch__." + name, unit);
  module.register_attribute("training", c10::BoolType::get(), false);
  module.register_parameter("weight", weight(shape, 0.2), false);
  module.register_parameter("bias", weight({shape[0]}, 0.1), false);
  module.define(code);
  return module;
}

std::string saved(const torch::jit::Module& module, const std::string& card) {
  std::ostringstream stream;
  module.save(stream, {{"galvani.json", card}});
  return stream.str();
}

std::string module_of(const std::string& prefix, const std::string& convolution, const std::string& dense,
                      const std::string& forward) {
  auto unit = std::make_shared<torch::jit::CompilationUnit>();
  torch::jit::Module net("__torch__." + prefix + "Net", unit);
  net.register_attribute("training", c10::BoolType::get(), false);
  net.register_attribute("sides", c10::ListType::ofInts(), c10::List<std::int64_t>({2, 2}));
  net.register_attribute("names", c10::DictType::create(c10::StringType::get(), c10::IntType::get()), [] {
    c10::Dict<std::string, std::int64_t> names;
    names.insert("cat", 3);
    return names;
  }());
  net.register_buffer("scale", at::full({1}, 1.5));
  net.register_module("conv", layer(prefix + "Conv", unit, {4, 1, 3, 3}, convolution));
  net.register_module("fc", layer(prefix + "Dense", unit, {5, 144}, dense));
  net.define(forward);
  return saved(net, R"({"range": [0, 1], "input": [1, 14, 14], "classes": ["a", "b", "c", "d", "e"]})");
}

}  // namespace

std::vector<ModelProto> zoo_seeds() {
  std::vector<ModelProto> seeds;
  auto add = [&](const std::string& spec, const ArchitectureShape& shape) {
    Rng rng(1);
    ModelProto model;
    model.ParseFromString(architectures().create(Spec::parse(spec), shape, rng));
    auto* card = model.add_metadata_props();
    card->set_key("galvani");
    card->set_value(
        R"({"range": [0, 1], "mean": [0.5], "std": [0.25], "channels": "rgb", "layout": "nchw", "accuracy": 0.9})");
    seeds.push_back(std::move(model));
  };
  add("lenet1", {1, 28, 28, 10});
  add("lenet5", {1, 28, 28, 10});
  add("resnet20:width=4", {3, 32, 32, 10});
  return seeds;
}

std::vector<fs::path> operator_cases() {
  std::vector<fs::path> cases;
  const fs::path suites = "/usr/share/libonnx-testdata/data";
  for (const fs::path& folder : {suites / "node", suites / "pytorch-operator", suites / "pytorch-converted",
                                 suites / "simple", fs::path(GALVANI_OPERATOR_CASES) / "node"}) {
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder, missing)) {
      if (fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
    }
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

ModelProto operator_seed(const fs::path& folder) {
  ModelProto model;
  model.ParseFromString(read_file(folder / "model.onnx"));
  ::onnx::GraphProto& graph = *model.mutable_graph();
  for (int i = 0; i < graph.input_size(); ++i) {
    TensorProto value;
    fs::path file = folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb");
    if (!fs::exists(file) || !value.ParseFromString(read_file(file))) continue;
    value.set_name(graph.input(i).name());
    *graph.add_initializer() = value;
  }
  graph.clear_input();
  auto& image = *graph.add_input();
  image.set_name("image");
  auto& type = *image.mutable_type()->mutable_tensor_type();
  type.set_elem_type(TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("batch");
  for (std::int64_t side : {1, 4, 4}) type.mutable_shape()->add_dim()->set_dim_value(side);
  std::string result = graph.output_size() > 0 ? graph.output(0).name() : "image";
  graph.clear_output();
  set_int(add_node(graph, "Cast", {result}, "as_float"), "to", TensorProto::FLOAT);
  set_int(add_node(graph, "ReduceMean", {"as_float"}, "as_scalar"), "keepdims", 0);
  set_int(add_node(graph, "Flatten", {"image"}, "flat"), "axis", 1);
  add_node(graph, "Add", {"flat", "as_scalar"}, "logits");
  graph.add_output()->set_name("logits");
  return model;
}

std::string make_external(ModelProto& model, const std::string& location) {
  std::string all;
  for (TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.raw_data().empty()) continue;
    auto add = [&](const std::string& key, const std::string& value) {
      auto* entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    add("location", location);
    add("offset", std::to_string(all.size()));
    add("length", std::to_string(tensor.raw_data().size()));
    all += tensor.raw_data();
    tensor.clear_raw_data();
    tensor.set_data_location(TensorProto::EXTERNAL);
  }
  return all;
}

std::vector<std::string> torchscript_seeds() {
  return {
      module_of(
          "scripted",
          "def forward(self, x):\n    return torch.conv2d(x, self.weight, self.bias, [1, 1], [0, 0], [1, 1], 1)\n",
          "def forward(self, x):\n    return torch.linear(x, self.weight, self.bias)\n",
          "def helper(self, x, n: int):\n"
          "    if n > 2:\n        return x * self.scale\n    return x\n"
          "def forward(self, x):\n"
          "    y = torch.relu_(self.conv.forward(x))\n"
          "    y = torch.max_pool2d(y, self.sides, [2, 2], [0, 0], [1, 1], False)\n"
          "    for i in range(2):\n        y = self.helper(y, self.names['cat'] + i)\n"
          "    return torch.softmax(self.fc.forward(torch.flatten(y, 1, -1)), 1)\n"),
      module_of(
          "traced",
          "def forward(self, x):\n"
          "    return torch._convolution(x, self.weight, self.bias, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, False, "
          "False, True, True)\n",
          "def forward(self, x):\n    return torch.addmm(self.bias, x, torch.t(self.weight), beta=1, alpha=1)\n",
          "def forward(self, x):\n"
          "    y = torch.relu(self.conv.forward(x))\n"
          "    y = torch.avg_pool2d(y, [2, 2], [2, 2], [0, 0], False, True, None)\n"
          "    size = torch.size(y, 0)\n"
          "    y = torch.view(y, [size, -1])\n"
          "    return self.fc.forward(y)\n"),
  };
}

std::string checkpoint_seed(const fs::path& folder) {
  Checkpoint checkpoint;
  checkpoint.settings = "model = lenet1\nbatch = 64\n";
  checkpoint.state.epoch = 2;
  checkpoint.tensors = {weight({4, 3}, 1), weight({5}, 1)};
  save_checkpoint(folder / "seed.checkpoint", checkpoint);
  return read_file(folder / "seed.checkpoint");
}

}  // namespace galvani
