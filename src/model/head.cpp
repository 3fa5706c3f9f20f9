#include "model/head.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <set>
#include <vector>

#include "galvani/base/error.h"
#include "galvani/base/log.h"
#include "model/graph_tools.h"
#include "model/network_impl.h"

namespace galvani {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

constexpr double kSumTolerance = 1e-3;
constexpr double kSure = 0.98;  // small scores that are none of a sigmoid's seldom come between this and 1
constexpr double kLeastProbability = 1e-38;
constexpr double kLeastOdds = 1e-7;  // what float32 can tell from 1

Value* result_at(Graph& graph, std::size_t result, const std::string& label) {
  Value* output = graph.outputs().at(0);
  bool several = output->node()->kind() == c10::prim::TupleConstruct;
  std::size_t outputs = several ? output->node()->inputs().size() : 1;
  if (result > 0 && result >= outputs)
    bad_input("{}: has no output {}, but {}: 0 to {}", label, result,
              counted(static_cast<std::int64_t>(outputs), "output"), std::max<std::size_t>(outputs, 1) - 1);
  if (several && outputs > 0) output = output->node()->input(result);
  while (output->node()->kind() == c10::prim::TupleConstruct && !output->node()->inputs().empty())
    output = output->node()->input(0);
  if (output->type()->cast<c10::TensorType>() == nullptr)
    bad_input("{}: gives {} instead of a tensor of logits", label, output->type()->str());
  return output;
}

void set_output(Graph& graph, Value* output) {
  while (!graph.outputs().empty()) graph.eraseOutput(graph.outputs().size() - 1);
  graph.registerOutput(output);
}

bool one_of(const Node* node, const std::set<std::string>& names) {
  return !node->inputs().empty() && names.count(operator_name(node)) != 0;
}

// What changes the shape of scores but not their values.
bool reshapes(const Node* node) {
  static const std::set<std::string> kNames = {"reshape", "view",      "flatten",   "squeeze",
                                               "permute", "unflatten", "transpose", "unsqueeze"};
  return one_of(node, kNames);
}

// What is of no account behind a head: it leaves values as they are, or nearly.
bool passes_on(const Node* node) {
  static const std::set<std::string> kNames = {"dropout", "contiguous", "clone",     "detach",    "alias",
                                               "to",      "clamp",      "clamp_min", "clamp_max", "clip"};
  return one_of(node, kNames);
}

// x of x - max(x), which keeps exponentials from overflowing; else the value itself.
Value* without_shift(Value* value) {
  const Node* node = value->node();
  if (!one_of(node, {"sub"}) || node->inputs().size() < 2) return value;
  const Node* shift = node->input(1)->node();
  if (shift->kind() == c10::prim::TupleUnpack || operator_name(shift) == "__getitem__") shift = shift->input(0)->node();
  bool of_itself = one_of(shift, {"amax", "max", "reduce_max"}) && shift->input(0) == node->input(0);
  return of_itself ? value->node()->input(0) : value;
}

// exp(x) / sum(exp(x)): x. Null for anything else.
Value* written_softmax(const Node* node) {
  if (!one_of(node, {"div", "true_divide"})) return nullptr;
  const Node* above = node->input(0)->node();
  const Node* below = node->input(1)->node();
  if (!one_of(above, {"exp"}) || !one_of(below, {"sum", "reduce_sum"})) return nullptr;
  const Node* summed = below->input(0)->node();
  if (!one_of(summed, {"exp"}) || summed->input(0) != above->input(0)) return nullptr;
  return without_shift(const_cast<Node*>(above)->input(0));
}

struct Found {
  Head head = Head::logits;
  Value* scores = nullptr;
  bool over_rows = true;  // a softmax over the classes of each row, as far as the graph tells
};

Found head_at(const Value* value) {
  const Node* node = value->node();
  if (one_of(node, {"softmax", "_softmax", "special_softmax", "log_softmax", "_log_softmax", "special_log_softmax",
                    "softmax_flattened", "log_softmax_flattened"})) {
    bool log = operator_name(node).find("log") != std::string::npos;
    auto dim = torch::jit::toIValue(node->input(1));
    bool over_rows = dim && dim->isInt() && (dim->toInt() == 1 || dim->toInt() == -1);
    return {log ? Head::log_softmax : Head::softmax, const_cast<Node*>(node)->input(0), over_rows};
  }
  if (one_of(node, {"sigmoid", "special_expit"})) return {Head::sigmoid, const_cast<Node*>(node)->input(0)};
  if (Value* scores = written_softmax(node)) return {Head::softmax, scores, false};
  if (one_of(node, {"log"})) {
    Found inner = head_at(node->input(0));
    if (inner.head == Head::softmax) return {Head::log_softmax, inner.scores, inner.over_rows};
  }
  return {};
}

}  // namespace

HeadMatch keep_only_logits(Graph& graph, std::size_t result, const std::string& label) {
  Value* output = result_at(graph, result, label);
  HeadMatch match;
  while (true) {
    std::vector<Node*> behind;  // the last first
    Value* value = output;
    while (reshapes(value->node()) || passes_on(value->node())) {
      behind.push_back(value->node());
      value = value->node()->input(0);
    }
    Found found = head_at(value);
    if (found.scores == nullptr) break;
    Value* scores = found.scores;
    for (auto node = behind.rbegin(); node != behind.rend(); ++node) {
      if (!reshapes(*node)) continue;
      Value* before = (*node)->input(0);
      Node* copy = graph.createClone(*node, [&](Value* input) { return input == before ? scores : input; });
      copy->insertAfter(*node);
      scores = copy->output();
    }
    // A softmax of a softmax: the outer one is what the file gives.
    if (match.head == Head::logits) match.head = found.head;
    match.plain = match.plain && behind.empty() && found.over_rows;
    output = scores;
  }
  // Dropout is no part of what is asked for, whether or not there is a head before it.
  while (one_of(output->node(), {"dropout", "contiguous"})) output = output->node()->input(0);
  set_output(graph, output);
  return match;
}

void keep_only_output(Graph& graph, std::size_t result, const std::string& label) {
  set_output(graph, result_at(graph, result, label));
}

void append_logits(Graph& graph, Head head) {
  Value* p = graph.outputs().at(0);
  torch::jit::WithInsertPoint here(graph.return_node());
  Value* scores = nullptr;
  if (head == Head::sigmoid) {
    scores = graph.insert(c10::Symbol::fromQualString("aten::logit"), {p, kLeastOdds});
  } else {
    scores = graph.insert(c10::aten::log, {graph.insert(c10::aten::clamp_min, {p, kLeastProbability})});
  }
  set_output(graph, scores);
}

void append_binary(Graph& graph, double threshold) {
  torch::jit::WithInsertPoint here(graph.return_node());
  std::vector<std::int64_t> column = {-1, 1};
  Value* score = graph.insert(c10::aten::reshape, {graph.outputs().at(0), column});
  Value* yes = graph.insert(c10::aten::sub, {score, threshold});
  Value* no = graph.insert(c10::Symbol::fromQualString("aten::zeros_like"), {score});
  Value* both = graph.insertNode(graph.createList(c10::TensorType::get(), {no, yes}))->output();
  set_output(graph, graph.insert(c10::aten::cat, {both, 1}));
}

Head head_of_values(const at::Tensor& values) {
  if (values.numel() == 0 || !at::isfinite(values).all().item<bool>()) return Head::logits;
  auto low = values.min().item<double>(), high = values.max().item<double>();
  if (low < 0 || high > 1 + kSumTolerance) return Head::logits;
  if (values.size(1) > 1 && (values.sum(1) - 1).abs().max().item<double>() < kSumTolerance) return Head::softmax;
  return high <= 1 && high > kSure ? Head::sigmoid : Head::logits;
}

namespace {

constexpr double kSameValues = 1e-3;
constexpr std::int64_t kOtherImages = 14;  // besides two of noise, where those look like probabilities
constexpr double kBeyond = 40;             // of the range of values

at::Tensor through_head(Head head, const at::Tensor& scores) {
  return head == Head::sigmoid ? scores.sigmoid() : scores.softmax(1);
}

// Whether the scores are those before the head: through it they are what the file gives.
bool is_before_head(const Executor& executor, const at::Tensor& input, const at::Tensor& logits) {
  at::Tensor file = executor.head_plan()->run(input, {})[0];
  if (logits.dim() < 1 || file.numel() != logits.numel() || file.size(0) != logits.size(0)) return false;
  at::Tensor through = through_head(executor.head().head, as_rows(logits));
  if (executor.head().head == Head::log_softmax) through = through.log();
  return at::allclose(through, as_rows(file), 1e-2, kSameValues, /*equal_nan=*/true);
}

bool all_between(const at::Tensor& values) {
  return values.min().item<double>() >= 0 && values.max().item<double>() <= 1 + kSumTolerance;
}

// Images unlike each other: even ones, ramps, noise of several strengths. [n, ...shape] float, 0 to 255.
at::Tensor unlike_images(std::int64_t n, const std::vector<std::int64_t>& shape) {
  at::Tensor noise = probe_images(n, shape).to(at::kFloat) - 127.5;
  std::vector<std::int64_t> ramp_shape(shape.size() + 1, 1);
  ramp_shape.back() = shape.back();
  at::Tensor ramp = at::linspace(-127.5, 127.5, shape.back()).view(ramp_shape);
  at::Tensor images = at::empty(noise.sizes());
  for (std::int64_t i = 0; i < n; ++i) {
    double level = 255 * static_cast<double>(i) / static_cast<double>(n - 1);
    at::Tensor pattern = i % 3 == 0 ? noise[i] * 0 : i % 3 == 1 ? ramp[0].expand(shape) : noise[i] * (i % 2 ? 1 : 0.3);
    images[i].copy_((pattern + level).clamp(0, 255));
  }
  return images;
}

std::string note_on(Head head) {
  return fmt::format(
      "its outputs are probabilities ({}), and the scores before them are not in the graph: scores are made of the "
      "probabilities, so gradients vanish where one is 0 or 1, and attacks look weaker than they are (--head says "
      "otherwise)",
      head == Head::sigmoid ? "each between 0 and 1, as of sigmoids" : "a softmax");
}

}  // namespace

const char* to_string(Head head) {
  switch (head) {
    case Head::logits:
      return "logits";
    case Head::softmax:
      return "softmax";
    case Head::log_softmax:
      return "log-softmax";
    case Head::sigmoid:
      return "sigmoid";
  }
  return "";
}

at::Tensor probabilities(const NetworkInfo& info, const at::Tensor& logits) {
  if (info.question.task == Task::binary && info.question.outputs == 1) {
    at::Tensor yes = (logits.select(1, 1) - logits.select(1, 0) + log_odds(info.question.threshold)).sigmoid();
    return at::stack({1 - yes, yes}, 1);
  }
  return through_head(info.question.by_reference() ? Head::softmax : info.head, logits);
}

void Network::Impl::make_logits(Head head) {
  executor->make_logits(head);
  may_be_probabilities = false;
  info.head = head;
  info.logits_made = true;
  info.notes.push_back(note_on(head));
}

bool Network::Impl::settle_head(const at::Tensor& input, const at::Tensor& logits) {
  head_settled = true;
  bool numbers = card.task == to_string(Task::regression);
  Head stated = Head::logits;
  for (Head head : {Head::softmax, Head::log_softmax, Head::sigmoid}) {
    if (card.head == to_string(head)) stated = head;
  }
  const HeadMatch& match = executor->head();
  if (match.head != Head::logits) {
    bool kind = card.head.empty() || (match.head == Head::sigmoid) == (stated == Head::sigmoid);
    bool tried = card.head != "logits" && kind && !numbers &&
                 ((match.plain && logits.dim() == 2) || is_before_head(*executor, input, logits));
    if (tried) {
      info.head = match.head;
      return false;
    }
    executor->take_file_output();
    head_settled = numbers || (!card.head.empty() && stated == Head::logits);
    return true;
  }
  info.head = Head::logits;
  if (card.head == "logits" || numbers) return false;
  // Logarithms of probabilities are scores as they are.
  if (stated == Head::log_softmax) {
    info.head = stated;
    return false;
  }
  if (stated != Head::logits) {
    make_logits(stated);
    return true;
  }
  if (numbers_of_a_row(logits, logits.dim() > 0 ? logits.size(0) : 0) == 0) return false;
  at::Tensor values = as_rows(logits);
  may_be_probabilities = all_between(values);
  // Where all are the same, as of weights that were never trained, nothing can be told.
  if (!may_be_probabilities || values.eq(values[0][0]).all().item<bool>()) return false;
  Head found = head_of_values(at::cat({values, outputs_for_unlike(logits.size(0), /*probabilities=*/true)}));
  // One number between 0 and 1 is one, whatever data are like, unless it was told to be a probability here.
  may_be_probabilities = values.size(1) > 1;
  if (found == Head::logits) return false;
  make_logits(found);
  return true;
}

at::Tensor Network::Impl::outputs_for_unlike(std::int64_t batch, bool probabilities) const {
  at::Tensor images = unlike_images(kOtherImages / batch * batch + batch, info.input);
  // Probabilities stay between 0 and 1 for what is no image, too; a mean of pixels does not.
  if (!takes_bytes()) images = at::cat({images, (images - 127.5) * kBeyond, (127.5 - images) * kBeyond});
  std::vector<at::Tensor> all;
  std::shared_ptr<const Plan> plan = executor->plan({{}, {}, Executor::Form::whole, {}, false});
  for (const at::Tensor& part : images.split(batch)) {
    if (part.size(0) == batch) all.push_back(as_rows(plan->run(prepare(part, {}), {})[0]));
    if (probabilities && !all.empty() && !all_between(all.back())) break;
  }
  return at::cat(all);
}

bool Network::head_settled() const {
  return !impl_->may_be_probabilities;
}

void Network::settle_head(const at::Tensor& inputs) {
  Impl& impl = *impl_;
  if (head_settled() || inputs.size(0) == 0) return;
  impl.may_be_probabilities = false;
  c10::InferenceMode inference;
  std::int64_t batch = std::max<std::int64_t>(1, impl.info.fixed_batch);
  Request request;
  request.answers = impl.info.question.by_reference();
  Outputs outputs = run(inputs, request);
  at::Tensor values = request.answers ? outputs.answers : outputs.logits;
  if (!all_between(values)) return;
  Head found = head_of_values(at::cat({values, impl.outputs_for_unlike(batch, /*probabilities=*/true)}));
  if (found == Head::logits) return;
  impl.make_logits(found);
  impl.card.head = to_string(found);
  log::warn("{}: {}", impl.info.path, impl.info.notes.back());
}

}  // namespace galvani
