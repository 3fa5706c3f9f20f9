#include "galvani/model/onnx_graph.h"

#include <torch/script.h>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "model/executor.h"
#include "model/freeze.h"
#include "model/graph_tools.h"
#include "model/limits.h"
#include "model/onnx/program.h"

namespace galvani {
namespace fs = std::filesystem;

struct OnnxGraph::Impl {
  std::string path;
  std::string sha256;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::map<std::string, std::string> node_of;  // variable → ONNX node
  torch::jit::Module module;
  std::unique_ptr<Plan> plan;
};

namespace {

std::vector<OnnxGraph::Port> ports_of(const std::vector<onnx::Program::Port>& from) {
  std::vector<OnnxGraph::Port> ports;
  for (const onnx::Program::Port& port : from) ports.push_back({port.name, port.type, port.shaped, port.shape});
  return ports;
}

std::unique_ptr<OnnxGraph::Impl> prepare(const std::string& bytes, const fs::path& folder, const std::string& label) {
  auto impl = std::make_unique<OnnxGraph::Impl>();
  impl->path = label;
  onnx::Program program = onnx::import_onnx(bytes, folder, label, onnx::HalfTypes::widened);
  impl->inputs = ports_of(program.inputs);
  impl->outputs = ports_of(program.outputs);
  impl->node_of = program.node_of_variable;
  impl->sha256 = sha256(bytes);
  if (!program.external_sha256.empty()) impl->sha256 = sha256(impl->sha256 + program.external_sha256);
  impl->module = torch::jit::Module("onnx_graph");
  onnx::build_module(program, label, impl->module);
  try {
    FrozenModule frozen = freeze_import(impl->module);
    check_groups(*frozen.graph->block(), label);
    spread_outputs(*frozen.graph, label);
    impl->module = frozen.module;
    impl->plan = std::make_unique<Plan>(frozen.graph, frozen.module._ivalue());
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    bad_input("{}: cannot be prepared for running: {}", label, first_line(e.what()));
  }
  return impl;
}

}  // namespace

OnnxGraph::OnnxGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OnnxGraph::~OnnxGraph() = default;

std::unique_ptr<OnnxGraph> OnnxGraph::load(const fs::path& path) {
  std::string bytes = read_file(path, kMostBytes);
  return std::unique_ptr<OnnxGraph>(new OnnxGraph(prepare(bytes, path.parent_path(), path.string())));
}

std::unique_ptr<OnnxGraph> OnnxGraph::from_bytes(const std::string& bytes, const std::string& label) {
  return std::unique_ptr<OnnxGraph>(new OnnxGraph(prepare(bytes, {}, label)));
}

const std::string& OnnxGraph::path() const {
  return impl_->path;
}
const std::string& OnnxGraph::sha256() const {
  return impl_->sha256;
}
const std::vector<OnnxGraph::Port>& OnnxGraph::inputs() const {
  return impl_->inputs;
}
const std::vector<OnnxGraph::Port>& OnnxGraph::outputs() const {
  return impl_->outputs;
}

std::vector<at::Tensor> OnnxGraph::run(const std::vector<at::Tensor>& inputs) const {
  if (inputs.size() != impl_->inputs.size())
    fail(ErrorCode::internal, "{}: takes {} inputs, not {}", impl_->path, impl_->inputs.size(), inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].scalar_type() != impl_->inputs[i].type)
      fail(ErrorCode::internal, "{}: its input '{}' is of another type", impl_->path, impl_->inputs[i].name);
  }
  try {
    c10::InferenceMode inference;
    return impl_->plan->run(inputs);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    bad_input("{}: fails while running: {}", impl_->path, first_line(e.what(), impl_->node_of));
  }
}

}  // namespace galvani
