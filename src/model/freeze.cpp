#include "model/freeze.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/common_subexpression_elimination.h>
#include <torch/csrc/jit/passes/constant_pooling.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/peephole.h>
#include <torch/csrc/jit/passes/remove_mutation.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "model/graph_tools.h"
#include "model/integers.h"

namespace galvani {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

void evaluate(torch::jit::Module& module) {
  module.eval();
  for (at::Tensor parameter : module.parameters()) parameter.requires_grad_(false);
}

// LibTorch looks for common subexpressions in a table whose hash leaves out attributes' names: n of them take n² steps.
// While they are inputs of the graph they are not in it.
class HiddenAttributes {
 public:
  explicit HiddenAttributes(Graph& graph) : graph_(graph), inputs_(graph.inputs().size()) { hide(*graph.block()); }

  // Reads each attribute that is still needed, in front of the first node that needs it.
  void restore() {
    std::vector<Node*> nodes(graph_.nodes().begin(), graph_.nodes().end());
    for (Node* node : nodes) restore(node, node);
    restore(graph_.return_node(), graph_.return_node());
    while (graph_.inputs().size() > inputs_) graph_.eraseInput(graph_.inputs().size() - 1);
  }

 private:
  struct Attribute {
    std::string name;
    Value* read = nullptr;
  };

  void hide(Block& block) {
    std::vector<Node*> nodes(block.nodes().begin(), block.nodes().end());
    for (Node* node : nodes) {
      for (Block* inner : node->blocks()) hide(*inner);
      if (node->kind() != c10::prim::GetAttr) continue;
      node->output()->replaceAllUsesWith(substitute(node));
      node->destroy();
    }
  }

  Value* substitute(Node* node) {
    const std::string& name = node->s(c10::attr::name);
    Value*& value = substitutes_[name];
    if (value != nullptr) return value;
    if (name == "training") {
      torch::jit::WithInsertPoint first(*graph_.nodes().begin());
      value = graph_.insertConstant(false);
    } else {
      value = graph_.addInput()->setType(node->output()->type());
      attributes_[value].name = name;
    }
    return value;
  }

  // `top` is the node, or the node of the graph's own block that it lies in.
  void restore(Node* node, Node* top) {
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      auto found = attributes_.find(node->input(i));
      if (found == attributes_.end()) continue;
      Value*& read = found->second.read;
      if (read == nullptr)
        read = graph_.createGetAttr(graph_.inputs()[0], found->second.name)->insertBefore(top)->output();
      node->replaceInput(i, read);
    }
    for (Block* inner : node->blocks()) {
      for (Node* child : inner->nodes()) restore(child, top);
      restore(inner->return_node(), top);
    }
  }

  Graph& graph_;
  std::size_t inputs_;
  std::unordered_map<std::string, Value*> substitutes_;
  std::unordered_map<const Value*, Attribute> attributes_;
};

}  // namespace

FrozenModule freeze_script(torch::jit::Module& module) {
  evaluate(module);
  FrozenModule frozen;
  // A copy that shares its weights: what is saved again later must not call operators of ours.
  torch::jit::Module copy = module.clone(/*inplace=*/true);
  std::shared_ptr<torch::jit::Graph> forward = copy.get_method("forward").graph();
  torch::jit::Inline(*forward);
  guard_integers(*forward);
  frozen.module = torch::jit::freeze_module(copy, {}, /*freezeInterfaces=*/true, /*preserveParameters=*/true);
  frozen.graph = frozen.module.get_method("forward").graph()->copy();
  replace_call_stacks(*frozen.graph->block(), frozen.module.get_method("forward").function());
  // Without this an in-place activation overwrites the value a tap observes.
  torch::jit::RemoveTensorMutation(frozen.graph);
  return frozen;
}

FrozenModule freeze_import(torch::jit::Module& module) {
  evaluate(module);
  FrozenModule frozen{module, module.get_method("forward").graph()->copy()};
  HiddenAttributes attributes(*frozen.graph);
  torch::jit::EliminateDeadCode(frozen.graph);
  torch::jit::EliminateCommonSubexpression(frozen.graph);
  torch::jit::ConstantPropagation(frozen.graph);
  torch::jit::PeepholeOptimize(frozen.graph);
  torch::jit::ConstantPropagation(frozen.graph);
  torch::jit::ConstantPooling(frozen.graph);
  attributes.restore();
  return frozen;
}

}  // namespace galvani
