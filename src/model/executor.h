// The evaluation graph of a network and what can be asked of it: plans that run it with chosen taps and masks.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "galvani/model/network.h"
#include "model/freeze.h"
#include "model/fused/fuse.h"
#include "model/head.h"

namespace galvani {

// How the ONNX file calls what the graph calls by generated names; empty for TorchScript.
struct GraphNames {
  std::map<std::string, std::string> parameter;  // module attribute → initialiser
  std::map<std::string, std::string> node;       // variable → ONNX node
  std::set<std::string> constants;               // module attributes that are no weights
};

// A value of the graph, found again in any copy of it: output `output` of the `node`-th top-level node.
struct Site {
  std::size_t node;
  std::size_t output;
};

// The graph compiled for one choice of taps and masks. Thread-safe.
class Plan {
 public:
  Plan(const std::shared_ptr<torch::jit::Graph>& graph, c10::IValue self, Fusion fusion = {});
  // masks are already shaped to broadcast over their taps. Returns logits, then the taps.
  std::vector<at::Tensor> run(const at::Tensor& input, const std::vector<at::Tensor>& masks) const;
  // Of a graph that takes these inputs, whatever they are.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) const;

  std::size_t layers() const { return fusion_.layers.size(); }  // fused ones
  // Whether the weights are those that fused layers were made of.
  bool current() const;

 private:
  std::vector<at::Tensor> finish(std::vector<c10::IValue> stack) const;

  c10::IValue self_;
  Fusion fusion_;
  std::vector<std::uint64_t> versions_;  // of the fusion's weights
  torch::jit::Code code_;
};

class Executor {
 public:
  // `label` names the file in errors. `result`: which of the graph's outputs counts. `any_output`: what the graph
  // itself gives can be run, too.
  Executor(FrozenModule frozen, GraphNames names, const std::string& label, std::size_t result, bool any_output);

  // The same for a graph that takes only one image, made to take any number; null if that is not understood. What comes
  // out is yet to be checked. `two`: different images, [2, ...].
  std::unique_ptr<Executor> rebatched(const at::Tensor& two) const;

  // Taps without their shapes, which a probe run finds.
  const std::vector<Tap>& taps() const { return taps_; }
  static constexpr std::int64_t kUnknownAxis = -2;  // `axis` of an activation that follows no layer
  // Replaces the taps by those at `indices`, now with shapes.
  void keep_taps(const std::vector<std::size_t>& indices, std::vector<Tap> described);
  // The same network with other weights, which are in `frozen`.
  std::unique_ptr<Executor> with_weights(FrozenModule frozen) const;
  // What LibTorch said when running failed, in one line that names the node.
  std::string explain(const std::exception& error) const;
  // What was found at the end of the graph, before which scores are taken.
  const HeadMatch& head() const { return head_; }
  // What the file gives where there is a head, to compare with. REQUIRES a head.
  std::shared_ptr<const Plan> head_plan() const;
  // From here on scores are what the file gives, or are made of that, if it is probabilities.
  void take_file_output();
  void make_logits(Head of);
  // From here on there are two classes: the single score is below the threshold (a score, too), or above.
  void make_binary(double threshold);
  // Leaves a graph of the same file with the scores alone, as they are taken here.
  void cut_head(torch::jit::Graph& graph) const;
  std::int64_t random_layers() const { return random_layers_; }
  // Taps whose values are the output but for their shape, for joining with others and for what works value by value.
  std::vector<std::size_t> taps_behind_output() const;
  bool has_hidden_layers() const { return hidden_layers_; }  // layers inside loops or branches: cannot be tapped
  // Identifies the architecture, not the weights.
  std::string structure() const;

  // Sites that `layers` describes: operators with a tensor result.
  struct Operator {
    Site site;
    std::string op;
    std::string name;
    std::int64_t parameters;
  };
  std::vector<Operator> operators() const;

  // What a plan returns of a tap.
  enum class Form {
    whole,        // its value; the graph can be differentiated
    whole_final,  // its value; activation functions may work in place where no one sees the difference
    means,        // the mean per neuron, taken as soon as the value exists so that its memory is free again; in place
  };
  struct Wish {
    std::vector<int> taps;
    std::vector<int> masks;
    Form form = Form::whole;
    std::vector<int> inputs_of;  // taps
    bool fused = false;          // by fused layers; not in the form `whole`, nor with masks
    bool random = false;         // dropout and its like draw from the RandomScope
    bool masks_at_end = false;   // as in a request
    bool operator<(const Wish& other) const;
  };
  // Returns logits, the taps, then the inputs of the layers behind the taps `inputs_of`.
  std::shared_ptr<const Plan> plan(const Wish& wish);
  // Whether there is anything to fuse.
  bool fusible() const;
  std::optional<LinearLayer> linear_layer(int tap) const;
  // Where masks at the end of a layer act: a number that taps have in common whose masks are one.
  std::size_t end_of(int tap) const;
  std::shared_ptr<const Plan> plan_for(const std::vector<Site>& sites);
  // How many tensors the graph itself gives, and a plan for some or all of them. REQUIRES any_output.
  std::size_t outputs() const { return whole_->outputs().size(); }
  std::shared_ptr<const Plan> output_plan(bool random, const std::vector<std::size_t>& wanted);
  std::shared_ptr<const Plan> output_plan(bool random);

 private:
  Executor(const Executor& other, std::shared_ptr<torch::jit::Graph> graph);
  std::set<const torch::jit::Node*> fixed_layers() const;
  void find_taps();
  torch::jit::Value* end_of(torch::jit::Node* layer, int tap) const;
  std::string name_of(const torch::jit::Node* node, const torch::jit::Value* weight) const;
  std::string onnx_node_of(const torch::jit::Node* node) const;

  std::string label_;
  std::size_t result_ = 0;
  torch::jit::Module module_;
  GraphNames names_;
  std::shared_ptr<torch::jit::Graph> graph_;
  std::shared_ptr<torch::jit::Graph> whole_;  // with the outputs of the file; null unless any may be asked for
  std::string original_;  // structure of the graph before it was made to take any number of images; usually empty
  std::vector<Tap> taps_;
  std::vector<Site> sites_;  // of taps_
  HeadMatch head_;
  std::shared_ptr<torch::jit::Graph> with_head_;  // null: there is none
  bool as_file_ = false;                          // the head was no such thing
  std::optional<Head> made_of_;                   // scores are made of what comes out
  std::optional<double> binary_;                  // threshold
  std::int64_t random_layers_ = 0;
  bool hidden_layers_ = false;
  std::mutex mutex_;
  // With random layers or not, and of which outputs.
  std::map<std::pair<bool, std::vector<std::size_t>>, std::shared_ptr<const Plan>> output_plans_;
  std::map<Wish, std::shared_ptr<const Plan>> plans_;
};

}  // namespace galvani
