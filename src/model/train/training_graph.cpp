#include "model/train/training_graph.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/script.h>

#include <set>

#include "galvani/base/error.h"
#include "model/graph_tools.h"
#include "model/number_types.h"
#include "model/random_layers.h"

namespace galvani {
namespace {

using torch::jit::Graph;

// Batch norm as in evaluation, but for its weights.
void hold_batch_norm(Graph& graph, torch::jit::Block& block) {
  constexpr std::size_t kTraining = 5;
  for (torch::jit::Node* node : block.nodes()) {
    for (torch::jit::Block* inner : node->blocks()) hold_batch_norm(graph, *inner);
    if (node->kind() != c10::aten::batch_norm) continue;
    torch::jit::WithInsertPoint here(node);
    node->replaceInput(kTraining, graph.insertConstant(false));
  }
}

torch::jit::Code training_code(const Network::Impl& impl, bool batch_statistics) {
  std::shared_ptr<Graph> graph = impl.module.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  if (impl.takes_bytes()) take_bytes_as_floats(*graph);
  if (impl.any_output)
    spread_outputs(*graph, impl.info.path);
  else
    impl.executor->cut_head(*graph);
  if (!batch_statistics) hold_batch_norm(*graph, *graph->block());
  draw_from_scope(*graph, RandomMode::training, impl.info.path);
  torch::jit::EliminateDeadCode(graph);
  return interpreter_code(graph);
}

void set_attribute(torch::jit::Module& module, const std::string& path, const at::Tensor& value) {
  auto object = module._ivalue();
  std::size_t start = 0;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', start)) {
    object = object->getAttr(path.substr(start, dot - start)).toObject();
    start = dot + 1;
  }
  object->setAttr(path.substr(start), value);
}

}  // namespace

TrainingGraph::TrainingGraph(Network::Impl& impl, std::int64_t slots, bool batch_statistics)
    : impl_(impl), code_(training_code(impl, batch_statistics)) {
  if (!impl.narrow.empty())
    bad_input("{}: its weights are float16, so it cannot be trained; export it in float32", impl.info.path);
  impl.weights_change();
  impl.module.train();
  std::set<std::string> trainable(impl.trainable.begin(), impl.trainable.end());
  for (const std::string& name : impl.trainable) {
    at::Tensor parameter = attribute_at(impl.module, name);
    if (parameter.scalar_type() != at::kFloat)
      bad_input("{}: the parameter '{}' is not of type float, so it cannot be trained", impl.info.path, name);
    if (!parameter.is_contiguous()) bad_input("{}: the parameter '{}' is not contiguous", impl.info.path, name);
    parameters_.push_back(parameter.requires_grad_(true));
    auto initializer = impl.initializer_of.find(name);
    names_.push_back(initializer == impl.initializer_of.end() ? name : initializer->second);
  }
  for (const auto& buffer : impl.module.named_buffers(/*recurse=*/true)) {
    if (trainable.count(buffer.name) != 0 || !buffer.value.is_floating_point()) continue;
    statistics_.push_back(buffer.value);
    statistic_names_.push_back(buffer.name);
    frozen_.push_back(0);
  }
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    torch::jit::Module replica = impl.module.deepcopy();
    for (std::size_t i = 0; i < parameters_.size(); ++i) set_attribute(replica, impl.trainable[i], parameters_[i]);
    std::vector<at::Tensor> own;
    for (const std::string& name : statistic_names_) own.push_back(attribute_at(replica, name));
    replicas_.push_back(std::move(replica));
    replica_statistics_.push_back(std::move(own));
  }
}

TrainingGraph::~TrainingGraph() {
  for (at::Tensor& parameter : parameters_) parameter.requires_grad_(false);
  impl_.module.eval();
}

std::vector<at::Tensor> TrainingGraph::forward(std::int64_t slot, const at::Tensor& input, const Rng& rng) {
  RandomScope draws(rng);
  ran_ = true;
  torch::jit::Stack stack{replicas_[static_cast<std::size_t>(slot)]._ivalue(), input};
  torch::jit::InterpreterState(code_).run(stack);
  std::vector<at::Tensor> outputs;
  for (std::size_t i : impl_.kept_outputs) outputs.push_back(stack.at(i).toTensor());
  if (!impl_.any_output) {
    at::Tensor logits = stack.at(0).toTensor();
    outputs.push_back(logits.dim() == 2 ? logits : logits.flatten(1));
  }
  return outputs;
}

void TrainingGraph::spread_statistics() {
  at::NoGradGuard no_grad;
  ran_ = false;
  for (auto& own : replica_statistics_) {
    for (std::size_t i = 0; i < statistics_.size(); ++i) own[i].copy_(statistics_[i]);
  }
}

void TrainingGraph::merge_statistics(std::int64_t slots) {
  if (!ran_) return;
  at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < statistics_.size(); ++i) {
    if (frozen_[i] != 0) continue;
    at::Tensor sum = replica_statistics_[0][i].clone();
    for (std::int64_t slot = 1; slot < slots; ++slot) sum.add_(replica_statistics_[static_cast<std::size_t>(slot)][i]);
    statistics_[i].copy_(sum.div_(static_cast<double>(slots)));
  }
}

void TrainingGraph::freeze_statistics(const std::function<bool(const std::string&)>& chosen) {
  for (std::size_t i = 0; i < statistics_.size(); ++i) {
    auto initializer = impl_.initializer_of.find(statistic_names_[i]);
    if (chosen(initializer == impl_.initializer_of.end() ? statistic_names_[i] : initializer->second)) frozen_[i] = 1;
  }
}

std::vector<at::Tensor> TrainingGraph::copy_of_statistics(std::int64_t slot) const {
  std::vector<at::Tensor> copy;
  for (const at::Tensor& t : replica_statistics_[static_cast<std::size_t>(slot)]) copy.push_back(t.clone());
  return copy;
}

void TrainingGraph::restore_statistics(std::int64_t slot, const std::vector<at::Tensor>& values) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor>& own = replica_statistics_[static_cast<std::size_t>(slot)];
  for (std::size_t i = 0; i < own.size(); ++i) own[i].copy_(values[i]);
}

}  // namespace galvani
