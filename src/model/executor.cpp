#include "model/executor.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "galvani/base/error.h"
#include "galvani/base/limits.h"
#include "galvani/base/runtime.h"
#include "model/graph_tools.h"
#include "model/limits.h"
#include "model/narrow_convolutions.h"
#include "model/random_layers.h"
#include "model/rebatch.h"

namespace galvani {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

std::vector<Node*> top_level(Graph& graph) {
  std::vector<Node*> nodes;
  for (Node* node : graph.nodes()) nodes.push_back(node);
  return nodes;
}

// How many inputs precede the mask inputs: the module and the image.
constexpr std::size_t kFixedInputs = 2;

// [B, ...shape] → [B, neurons] right behind the tap; the value itself if it has no other axes.
Value* insert_mean(Graph& graph, Value* value, const Tap& tap, std::set<const Node*>& means) {
  std::vector<std::int64_t> axes = tap.other_axes();
  if (axes.empty()) return value;
  torch::jit::WithInsertPoint here(value->node()->next());
  Value* result = graph.insert(c10::aten::mean, {value, axes, false});
  means.insert(result->node());
  return result;
}

// relu(x) → relu_(x) where x is made by an operator that returns memory of its own and nobody else reads it. The means
// of taps do not count: they stand right behind x.
void activate_in_place(Graph& graph, const std::set<const Node*>& means) {
  static const std::set<std::string> kFresh = {"conv1d",      "conv2d",     "conv3d",     "_convolution",
                                               "convolution", "batch_norm", "linear",     "addmm",
                                               "add",         "matmul",     "fused_layer"};
  std::set<const Value*> kept(graph.outputs().begin(), graph.outputs().end());
  for (Node* node : top_level(graph)) {
    if (node->kind() != c10::aten::relu) continue;
    Value* x = node->input(0);
    auto readers = std::count_if(x->uses().begin(), x->uses().end(),
                                 [&](const torch::jit::Use& use) { return means.count(use.user) == 0; });
    if (readers != 1 || kept.count(x) != 0 || kFresh.count(operator_name(x->node())) == 0) continue;
    Node* in_place = graph.create(c10::aten::relu_, {x}, 1);
    in_place->insertBefore(node);
    in_place->output()->setType(node->output()->type());
    node->output()->replaceAllUsesWith(in_place->output());
    node->destroy();
  }
}

// Inference tensors, which cannot be changed in place either, have no version.
std::uint64_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : tensor._version();
}

}  // namespace

Plan::Plan(const std::shared_ptr<Graph>& graph, c10::IValue self, Fusion fusion)
    : self_(std::move(self)), fusion_(std::move(fusion)), code_(interpreter_code(graph)) {
  for (const at::Tensor& weight : fusion_.weights) versions_.push_back(version_of(weight));
}

bool Plan::current() const {
  for (std::size_t i = 0; i < versions_.size(); ++i) {
    if (version_of(fusion_.weights[i]) != versions_[i]) return false;
  }
  return true;
}

std::vector<at::Tensor> Plan::run(const at::Tensor& input, const std::vector<at::Tensor>& masks) const {
  torch::jit::Stack stack{self_, input};
  stack.insert(stack.end(), masks.begin(), masks.end());
  return finish(std::move(stack));
}

std::vector<at::Tensor> Plan::run(const std::vector<at::Tensor>& inputs) const {
  torch::jit::Stack stack{self_};
  stack.insert(stack.end(), inputs.begin(), inputs.end());
  return finish(std::move(stack));
}

std::vector<at::Tensor> Plan::finish(std::vector<c10::IValue> stack) const {
  TensorLimit limit(kMostBytes);
  stack.insert(stack.end(), fusion_.layers.begin(), fusion_.layers.end());
  try {
    torch::jit::InterpreterState(code_).run(stack);
  } catch (...) {
    // The interpreter wraps what is thrown inside; that it was asked to stop is the better reason.
    check_step();
    throw;
  }
  std::vector<at::Tensor> result;
  result.reserve(stack.size());
  for (c10::IValue& value : stack) result.push_back(std::move(value).toTensor());
  return result;
}

Executor::Executor(FrozenModule frozen, GraphNames names, const std::string& label, std::size_t result, bool any_output)
    : label_(label),
      result_(result),
      module_(frozen.module),
      names_(std::move(names)),
      graph_(std::move(frozen.graph)) {
  check_groups(*graph_->block(), label);
  if (graph_->inputs().size() != kFixedInputs)
    bad_input("{}: takes {} inputs; only models of one image are supported", label, graph_->inputs().size() - 1);
  if (any_output) {
    whole_ = graph_->copy();
    spread_outputs(*whole_, label);
    draw_from_scope(*whole_, RandomMode::noise, label);
    torch::jit::EliminateDeadCode(whole_);
  }
  std::shared_ptr<Graph> whole = graph_->copy();
  head_ = keep_only_logits(*graph_, result, label);
  torch::jit::EliminateDeadCode(graph_);
  if (head_.head != Head::logits) {
    keep_only_output(*whole, result, label);
    torch::jit::EliminateDeadCode(whole);
    draw_from_scope(*whole, RandomMode::noise, label);
    with_head_ = std::move(whole);
  }
  random_layers_ = count_random_layers(*graph_);
  draw_from_scope(*graph_, RandomMode::noise, label);
  find_taps();
}

Executor::Executor(const Executor& other, std::shared_ptr<Graph> graph)
    : label_(other.label_),
      result_(other.result_),
      module_(other.module_),
      names_(other.names_),
      graph_(std::move(graph)),
      original_(other.structure()),
      head_(other.head_),
      with_head_(other.with_head_),
      as_file_(other.as_file_),
      made_of_(other.made_of_),
      binary_(other.binary_),
      random_layers_(other.random_layers_) {
  find_taps();
}

std::unique_ptr<Executor> Executor::rebatched(const at::Tensor& two) const {
  std::shared_ptr<Graph> graph = rebatch(*graph_, module_._ivalue(), two);
  if (graph == nullptr) return nullptr;
  std::unique_ptr<Executor> result(new Executor(*this, std::move(graph)));
  if (whole_ != nullptr) {
    result->whole_ = rebatch(*whole_, module_._ivalue(), two);
    if (result->whole_ == nullptr) return nullptr;
  }
  return result;
}

std::string Executor::onnx_node_of(const Node* node) const {
  if (node->outputs().empty()) return "";
  const std::string& name = node->output(0)->debugName();
  auto it = names_.node.find(name.substr(0, name.find('.')));
  return it == names_.node.end() ? "" : it->second;
}

std::string Executor::name_of(const Node* node, const Value* weight) const {
  std::string path = weight == nullptr ? "" : attribute_path(weight);
  if (auto it = names_.parameter.find(path); it != names_.parameter.end()) path = it->second;
  for (const char* suffix : {".weight", "_weight", ".kernel", "/kernel", ".w", "_w"}) {
    std::size_t length = std::char_traits<char>::length(suffix);
    if (path.size() > length && path.compare(path.size() - length, length, suffix) == 0)
      return path.substr(0, path.size() - length);
  }
  std::string onnx = onnx_node_of(node);
  return !onnx.empty() ? onnx : operator_name(node);
}

// Layers whose weight is a constant of the file, such as a Fourier transform written as a convolution, have no neurons.
// Where all are of that kind it is only how the file was written.
std::set<const Node*> Executor::fixed_layers() const {
  std::set<const Node*> fixed;
  bool any_learned = false;
  for (const Node* node : top_level(*graph_)) {
    std::optional<LayerMatch> match = match_layer(node);
    if (!match || match->kind == TapKind::activation) continue;
    bool constant = is_constant(match->weight) || names_.constants.count(attribute_path(match->weight)) != 0;
    if (constant) fixed.insert(node);
    any_learned = any_learned || !constant;
  }
  return any_learned ? fixed : std::set<const Node*>();
}

void Executor::find_taps() {
  std::set<const Node*> fixed = fixed_layers();
  std::set<std::string> taken;
  std::map<std::string, int> last_number;     // of a name that several taps ask for
  std::map<const Node*, std::size_t> tap_of;  // node whose output is tapped → index in taps_
  std::vector<Node*> nodes = top_level(*graph_);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node* node = nodes[i];
    hidden_layers_ = hidden_layers_ || any_layer_inside(node);
    std::optional<LayerMatch> match = match_layer(node);
    if (!match || fixed.count(node) != 0) continue;
    Tap tap;
    tap.kind = match->kind;
    tap.op = match->op;
    tap.node = onnx_node_of(node);
    if (tap.kind == TapKind::activation) {
      // Named after the layer it follows, so that both formats of one network agree.
      auto upstream = tap_of.find(nearest_layer(node->input(0)));
      tap.name = upstream == tap_of.end() ? tap.op : taps_[upstream->second].name + "/" + tap.op;
      if (upstream != tap_of.end() && !taps_[upstream->second].path.empty())
        tap.path = taps_[upstream->second].path + "/" + tap.op;
      tap.axis = upstream == tap_of.end() ? kUnknownAxis : taps_[upstream->second].axis;
    } else {
      tap.name = name_of(node, match->weight);
      // A module of nn.Sequential is called by its place alone.
      if (tap.name.find_first_not_of("0123456789.") == std::string::npos) {
        tap.path = tap.name;
        tap.name = (tap.kind == TapKind::convolution ? "conv" : "dense") + tap.path;
      }
      tap.axis = tap.kind == TapKind::convolution ? 0 : -1;
    }
    std::string unique = tap.name;
    for (int& n = last_number.emplace(tap.name, 1).first->second; !taken.insert(unique).second;)
      unique = tap.name + "#" + std::to_string(++n);
    tap.name = unique;
    if (tap.kind != TapKind::activation) tap_of[node] = taps_.size();
    taps_.push_back(std::move(tap));
    sites_.push_back({i, 0});
  }
}

void Executor::keep_taps(const std::vector<std::size_t>& indices, std::vector<Tap> described) {
  std::vector<Site> sites;
  for (std::size_t i : indices) sites.push_back(sites_[i]);
  taps_ = std::move(described);
  sites_ = std::move(sites);
  plans_.clear();
}

std::shared_ptr<const Plan> Executor::head_plan() const {
  return std::make_shared<const Plan>(with_head_->copy(), module_._ivalue());
}

void Executor::take_file_output() {
  graph_ = with_head_->copy();
  head_ = {};
  as_file_ = true;
  taps_.clear();
  sites_.clear();
  plans_.clear();
  find_taps();
}

void Executor::make_logits(Head of) {
  append_logits(*graph_, of);
  made_of_ = of;
  plans_.clear();
}

void Executor::make_binary(double threshold) {
  append_binary(*graph_, threshold);
  binary_ = threshold;
  plans_.clear();
}

void Executor::cut_head(Graph& graph) const {
  if (as_file_)
    keep_only_output(graph, result_, label_);
  else
    keep_only_logits(graph, result_, label_);
  if (made_of_) append_logits(graph, *made_of_);
  if (binary_) append_binary(graph, *binary_);
}

std::unique_ptr<Executor> Executor::with_weights(FrozenModule frozen) const {
  auto other = std::make_unique<Executor>(std::move(frozen), names_, label_, result_, whole_ != nullptr);
  if (as_file_) other->take_file_output();
  if (made_of_) other->make_logits(*made_of_);
  if (binary_) other->make_binary(*binary_);
  other->taps_ = taps_;
  other->sites_ = sites_;
  if (!original_.empty()) {
    other->original_ = original_;
    other->graph_ = graph_->copy();
    if (whole_ != nullptr) other->whole_ = whole_->copy();
  }
  return other;
}

std::string Executor::explain(const std::exception& error) const {
  return first_line(error.what(), names_.node);
}

std::string Executor::structure() const {
  return original_.empty() ? graph_->toString(/*print_source_locations=*/false) : original_;
}

std::vector<Executor::Operator> Executor::operators() const {
  std::vector<Operator> result;
  std::vector<Node*> nodes = top_level(*graph_);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node* node = nodes[i];
    if (!node->kind().is_aten() && node->kind().ns() != c10::Symbol::fromQualString("namespaces::galvani_onnx"))
      continue;
    if (node->outputs().empty() || node->output(0)->type()->cast<c10::TensorType>() == nullptr) continue;
    Operator op{{i, 0}, operator_name(node), "", 0};
    const Value* weight = nullptr;
    for (const Value* input : node->inputs()) {
      std::string path = attribute_path(input);
      if (path.empty() || input->type()->cast<c10::TensorType>() == nullptr) continue;
      if (weight == nullptr) weight = input;
      at::Tensor value = attribute_at(module_, path);
      if (value.defined()) op.parameters += value.numel();
    }
    op.name = name_of(node, weight);
    result.push_back(std::move(op));
  }
  return result;
}

std::optional<LinearLayer> Executor::linear_layer(int tap) const {
  const Node* node = top_level(*graph_)[sites_[static_cast<std::size_t>(tap)].node];
  return read_linear(node, module_);
}

bool Executor::Wish::operator<(const Wish& other) const {
  return std::tie(taps, masks, form, inputs_of, fused, random, masks_at_end) <
         std::tie(other.taps, other.masks, other.form, other.inputs_of, other.fused, other.random, other.masks_at_end);
}

bool Executor::fusible() const {
  std::shared_ptr<Graph> graph = graph_->copy();
  return !fuse(*graph, module_, {}).layers.empty();
}

Value* Executor::end_of(Node* layer, int tap) const {
  auto axes = static_cast<std::int64_t>(taps_[static_cast<std::size_t>(tap)].shape.size()) + 1;
  return end_of_layer(layer->output(0), module_, axes);
}

std::size_t Executor::end_of(int tap) const {
  std::vector<Node*> nodes = top_level(*graph_);
  Node* end = end_of(nodes[sites_[static_cast<std::size_t>(tap)].node], tap)->node();
  return static_cast<std::size_t>(std::find(nodes.begin(), nodes.end(), end) - nodes.begin());
}

std::shared_ptr<const Plan> Executor::plan(const Wish& wish) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto& cached = plans_[wish];
  if (cached && cached->current()) return cached;
  const auto& [taps, masks, form, inputs_of, fused, random, masks_at_end] = wish;
  std::shared_ptr<Graph> graph = graph_->copy();
  std::vector<Node*> nodes = top_level(*graph);
  std::map<int, Value*> value_of;  // a tap that is masked where it is is observed after its mask
  for (int tap : taps) value_of[tap] = nodes[sites_[static_cast<std::size_t>(tap)].node]->output(0);
  for (int mask : masks) {
    Node* layer = nodes[sites_[static_cast<std::size_t>(mask)].node];
    Value* value = masks_at_end ? end_of(layer, mask) : layer->output(0);
    Value* factor = graph->insertInput(graph->inputs().size(), "mask" + std::to_string(mask));
    Node* multiply = graph->create(c10::aten::mul, {value, factor}, 1);
    multiply->insertAfter(value->node());
    value->replaceAllUsesAfterNodeWith(multiply, multiply->output());
    if (value == layer->output(0)) value_of[mask] = multiply->output();
  }
  std::set<const Node*> means;
  for (int tap : taps) {
    Value* value = value_of.at(tap);
    if (form == Form::means) value = insert_mean(*graph, value, taps_[static_cast<std::size_t>(tap)], means);
    graph->registerOutput(value);
  }
  for (int tap : inputs_of) graph->registerOutput(layer_input(nodes[sites_[static_cast<std::size_t>(tap)].node]));
  Fusion fusion;
  if (fused && form != Form::whole && masks.empty()) fusion = fuse(*graph, module_, means);
  if (form != Form::whole) activate_in_place(*graph, means);
  if (form == Form::whole) replace_narrow_convolutions(*graph, module_);
  if (random) draw_from_scope(*graph, RandomMode::awake, label_);
  torch::jit::EliminateDeadCode(graph);
  cached = std::make_shared<const Plan>(graph, module_._ivalue(), std::move(fusion));
  return cached;
}

std::vector<std::size_t> Executor::taps_behind_output() const {
  static const std::set<std::string> kOfValues = {"reshape", "view",    "flatten", "squeeze",    "unsqueeze", "permute",
                                                  "cat",     "sigmoid", "softmax", "contiguous", "transpose", "exp",
                                                  "slice",   "mul",     "add",     "concat",     "unflatten", "to"};
  std::vector<Node*> nodes = top_level(*graph_);
  std::set<const Node*> seen;
  std::vector<const Value*> open(graph_->outputs().begin(), graph_->outputs().end());
  while (!open.empty()) {
    const Node* node = open.back()->node();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    bool list = node->kind() == c10::prim::ListConstruct || node->kind() == c10::prim::TupleConstruct;
    if (!list && kOfValues.count(operator_name(node)) == 0) continue;
    for (const Value* input : node->inputs()) {
      if (list || input->type()->cast<c10::TensorType>() != nullptr ||
          input->node()->kind() == c10::prim::ListConstruct)
        open.push_back(input);
    }
  }
  std::vector<std::size_t> result;
  for (std::size_t tap = 0; tap < taps_.size(); ++tap) {
    if (taps_[tap].kind == TapKind::convolution && seen.count(nodes[sites_[tap].node]) != 0) result.push_back(tap);
  }
  return result;
}

std::shared_ptr<const Plan> Executor::plan_for(const std::vector<Site>& sites) {
  std::shared_ptr<Graph> graph = graph_->copy();
  std::vector<Node*> nodes = top_level(*graph);
  for (const Site& site : sites) graph->registerOutput(nodes[site.node]->output(site.output));
  return std::make_shared<const Plan>(graph, module_._ivalue());
}

std::shared_ptr<const Plan> Executor::output_plan(bool random) {
  std::vector<std::size_t> all(outputs());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return output_plan(random, all);
}

std::shared_ptr<const Plan> Executor::output_plan(bool random, const std::vector<std::size_t>& wanted) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto& cached = output_plans_[{random, wanted}];
  if (cached) return cached;
  std::shared_ptr<Graph> graph = whole_->copy();
  std::vector<Value*> values(graph->outputs().begin(), graph->outputs().end());
  while (!graph->outputs().empty()) graph->eraseOutput(graph->outputs().size() - 1);
  for (std::size_t output : wanted) graph->registerOutput(values[output]);
  torch::jit::EliminateDeadCode(graph);
  activate_in_place(*graph, {});
  if (random) draw_from_scope(*graph, RandomMode::awake, label_);
  cached = std::make_shared<const Plan>(graph, module_._ivalue());
  return cached;
}

}  // namespace galvani
