#include "model/train/training_graph.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/script.h>

#include <set>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "model/graph_tools.h"

namespace galvani {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;

// ATen's dropout draws from a generator that all threads share; this one draws from the micro-batch's own stream.
thread_local const Rng* dropout_stream = nullptr;

at::Tensor dropout(const at::Tensor& x, double p, bool train, std::int64_t site, bool whole_channels) {
  if (!train || p <= 0) return x;
  if (p >= 1) return x * 0;
  std::vector<std::int64_t> shape = x.sizes().vec();
  if (whole_channels) {
    for (std::size_t d = 2; d < shape.size(); ++d) shape[d] = 1;
  }
  at::Tensor mask = at::empty(shape);
  Rng rng = (dropout_stream == nullptr ? Rng(0) : *dropout_stream).derive(static_cast<std::uint64_t>(site));
  auto* m = mask.data_ptr<float>();
  rng.fill_uniform(m, static_cast<std::size_t>(mask.numel()));
  auto keep = static_cast<float>(1 - p);
  for (std::int64_t i = 0; i < mask.numel(); ++i) m[i] = m[i] < keep ? 1 / keep : 0.0F;
  return x * mask;
}

void register_dropout() {
  static const auto registered = torch::RegisterOperators().op(
      "galvani::dropout(Tensor x, float p, bool train, int site, bool whole_channels) -> Tensor", &dropout);
}

void replace_dropout(Block* block, Graph& graph, std::int64_t& site) {
  static const std::set<std::string> kPlain = {"dropout", "dropout_"};
  static const std::set<std::string> kChannels = {"feature_dropout", "feature_dropout_"};
  std::vector<Node*> nodes(block->nodes().begin(), block->nodes().end());
  for (Node* node : nodes) {
    for (Block* inner : node->blocks()) replace_dropout(inner, graph, site);
    bool channels = kChannels.count(operator_name(node)) != 0;
    if (!node->kind().is_aten() || !(channels || kPlain.count(operator_name(node)) != 0)) continue;
    torch::jit::WithInsertPoint here(node);
    auto* id = graph.insertConstant(site++);
    auto* whole = graph.insertConstant(channels);
    Node* ours = graph.create(c10::Symbol::fromQualString("galvani::dropout"),
                              {node->input(0), node->input(1), node->input(2), id, whole}, 1);
    ours->insertBefore(node);
    ours->output()->setType(node->output()->type());
    node->output()->replaceAllUsesWith(ours->output());
    node->destroy();
  }
}

torch::jit::Code training_code(const Network::Impl& impl) {
  register_dropout();
  std::shared_ptr<Graph> graph = impl.module.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  bool softmax = false;
  keep_only_logits(*graph, impl.info.path, softmax);
  std::int64_t site = 0;
  replace_dropout(graph->block(), *graph, site);
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

TrainingGraph::TrainingGraph(Network::Impl& impl, std::int64_t slots) : impl_(impl), code_(training_code(impl)) {
  impl.module.train();
  std::set<std::string> trainable(impl.trainable.begin(), impl.trainable.end());
  for (const std::string& name : impl.trainable) {
    at::Tensor parameter = attribute_at(impl.module, name);
    if (parameter.scalar_type() != at::kFloat)
      bad_input("{}: the parameter '{}' is not of type float, so it cannot be trained", impl.info.path, name);
    if (!parameter.is_contiguous()) bad_input("{}: the parameter '{}' is not contiguous", impl.info.path, name);
    parameters_.push_back(parameter.requires_grad_(true));
  }
  for (const auto& buffer : impl.module.named_buffers(/*recurse=*/true)) {
    if (trainable.count(buffer.name) != 0 || !buffer.value.is_floating_point()) continue;
    statistics_.push_back(buffer.value);
    statistic_names_.push_back(buffer.name);
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

at::Tensor TrainingGraph::forward(std::int64_t slot, const at::Tensor& input, const Rng& rng) {
  dropout_stream = &rng;
  torch::jit::Stack stack{replicas_[static_cast<std::size_t>(slot)]._ivalue(), input};
  torch::jit::InterpreterState(code_).run(stack);
  dropout_stream = nullptr;
  at::Tensor logits = stack.at(0).toTensor();
  return logits.dim() == 2 ? logits : logits.flatten(1);
}

void TrainingGraph::spread_statistics() {
  at::NoGradGuard no_grad;
  for (auto& own : replica_statistics_) {
    for (std::size_t i = 0; i < statistics_.size(); ++i) own[i].copy_(statistics_[i]);
  }
}

void TrainingGraph::merge_statistics(std::int64_t slots) {
  at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < statistics_.size(); ++i) {
    at::Tensor sum = replica_statistics_[0][i].clone();
    for (std::int64_t slot = 1; slot < slots; ++slot) sum.add_(replica_statistics_[static_cast<std::size_t>(slot)][i]);
    statistics_[i].copy_(sum.div_(static_cast<double>(slots)));
  }
}

}  // namespace galvani
