#include "select/pass.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{96} << 20;
constexpr std::int64_t kMicroBatchesPerPiece = 128;

std::size_t position(std::vector<int>& list, int value) {
  auto found = std::find(list.begin(), list.end(), value);
  if (found == list.end()) found = list.insert(list.end(), value);
  return static_cast<std::size_t>(found - list.begin());
}

}  // namespace

SharedPass::SharedPass(Network& network, const std::vector<SelectorNeeds>& all) : network_(network) {
  bool traces = false;
  for (const SelectorNeeds& needs : all) {
    std::vector<std::size_t> own;
    for (const FeatureNeed& need : needs.features) own.push_back(slot(need));
    of_each_.push_back(own);
    traces |= needs.traces;
    relevance_ |= needs.traces && needs.relevance;
  }
  if (!traces) return;
  TraceNeeds needs;
  needs.relevance = relevance_;
  tracer_.emplace(network, network.select_taps("default"), NeuronUnit::channel, needs);
  if (relevance_) return;
  for (int tap : tracer_->taps()) trace_slots_.push_back(slot({tap, FeatureForm::neurons}));
}

SharedPass::SharedPass(Network& network, const FeatureNeed& need) : network_(network) {
  of_each_.push_back({slot(need)});
}

std::size_t SharedPass::slot(const FeatureNeed& need) {
  auto found = std::find(features_.begin(), features_.end(), need);
  if (found == features_.end()) {
    found = features_.insert(features_.end(), need);
    position(need.form == FeatureForm::input ? layers_ : taps_, need.tap);
  }
  return static_cast<std::size_t>(found - features_.begin());
}

std::vector<at::Tensor> SharedPass::reduce(const Outputs& part) const {
  std::vector<at::Tensor> columns;
  for (const FeatureNeed& need : features_) {
    const std::vector<int>& list = need.form == FeatureForm::input ? layers_ : taps_;
    auto at = static_cast<std::size_t>(std::find(list.begin(), list.end(), need.tap) - list.begin());
    columns.push_back(
        feature_rows(network_, need, need.form == FeatureForm::input ? part.layer_inputs[at] : part.taps[at]));
  }
  return columns;
}

Seen SharedPass::run(const at::Tensor& inputs, bool traces) const {
  Request request;
  if (!features_.empty()) {
    request.taps = taps_;
    request.form = TapForm::full;
    request.layer_inputs = layers_;
    request.reducer = [this](const Outputs& part, std::int64_t) { return reduce(part); };
  }
  Outputs outputs = network_.run(inputs, request);
  Seen seen;
  seen.logits = outputs.logits;
  seen.features = outputs.reduced;
  settle_close_calls(network_, inputs, seen.logits);
  seen.predicted = verdicts(seen.logits);
  seen.probabilities = seen.logits.softmax(1);
  if (!traces || !tracer_) return seen;
  if (relevance_) {
    seen.traces = tracer_->trace(inputs);
    return seen;
  }
  std::vector<at::Tensor> columns;
  for (std::size_t at : trace_slots_) columns.push_back(seen.features[at]);
  seen.traces = make_traces(at::cat(columns, 1), seen.predicted, seen.logits);
  return seen;
}

Seen SharedPass::share(const Seen& all, std::size_t i) const {
  Seen own = all;
  own.features.clear();
  if (all.features.empty()) return own;
  for (std::size_t at : of_each_[i]) own.features.push_back(all.features[at]);
  return own;
}

std::int64_t SharedPass::piece(std::uint64_t bytes, std::int64_t runs) const {
  auto each = static_cast<std::int64_t>(bytes);
  for (const FeatureNeed& need : features_) {
    const Tap& tap = network_.taps()[static_cast<std::size_t>(need.tap)];
    std::int64_t width = need.form == FeatureForm::neurons ? tap.neurons() : tap.units();
    // A layer may read more than it gives.
    if (need.form == FeatureForm::input) width = network_.linear_layer(need.tap)->features();
    each += width * 12;
  }
  if (tracer_) each += tracer_->layout().neurons * 12;
  std::int64_t micro = network_.execution().micro_batch;
  return std::clamp<std::int64_t>(kPieceBytes / (each * runs * micro), 1, kMicroBatchesPerPiece) * micro;
}

}  // namespace galvani
