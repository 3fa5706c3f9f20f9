#include "galvani/trace/deep_features.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/error.h"

namespace galvani {
namespace {

bool is_dense(const Network& network, int tap) {
  if (network.taps()[static_cast<std::size_t>(tap)].kind != TapKind::dense) return false;
  std::optional<LinearLayer> layer = network.linear_layer(tap);
  return layer && layer->dense;
}

}  // namespace

FeatureNeed feature_of(const Network& network, const std::string& layer) {
  auto last = static_cast<int>(network.taps().size()) - 1;
  bool encoder = layer == "encoder";
  if (!encoder && layer != "penultimate") {
    std::vector<int> named = network.select_taps(layer);
    if (named.size() != 1) bad_usage("'{}' names {} taps, but one is meant", printable(layer), named.size());
    return {named[0], FeatureForm::units};
  }
  int dense = -1;
  for (int tap = last; tap >= 0; --tap) {
    if (network.taps()[static_cast<std::size_t>(tap)].kind == TapKind::activation) continue;
    if (!is_dense(network, tap)) break;
    dense = tap;
    if (!encoder) break;
  }
  if (dense >= 0) return {dense, FeatureForm::input};
  if (last < 0) bad_usage("{}: has no layer that can be looked into", network.info().path);
  return {std::max(0, last - 1), encoder ? FeatureForm::units : FeatureForm::neurons};
}

std::string describe(const Network& network, const FeatureNeed& need) {
  const char* what = need.form == FeatureForm::input   ? "the input of"
                     : need.form == FeatureForm::units ? "units of"
                                                       : "neurons of";
  return fmt::format("{} {}", what, network.taps().at(static_cast<std::size_t>(need.tap)).name);
}

at::Tensor feature_rows(const Network& network, const FeatureNeed& need, const at::Tensor& value) {
  const Tap& tap = network.taps()[static_cast<std::size_t>(need.tap)];
  bool averaged = need.form == FeatureForm::neurons && !tap.other_axes().empty();
  at::Tensor rows = averaged ? value.mean(tap.other_axes()) : value;
  return rows.reshape({rows.size(0), -1}).to(at::kFloat).contiguous();
}

at::Tensor deep_features(Network& network, const FeatureNeed& need, const at::Tensor& inputs) {
  Request request;
  request.form = TapForm::full;
  bool input = need.form == FeatureForm::input;
  (input ? request.layer_inputs : request.taps) = {need.tap};
  request.reducer = [&](const Outputs& part, std::int64_t) -> std::vector<at::Tensor> {
    return {feature_rows(network, need, input ? part.layer_inputs[0] : part.taps[0])};
  };
  return network.run(inputs, request).reduced.at(0);
}

at::Tensor cosines(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor lengths = a.norm(2, 1) * b.norm(2, 1);
  at::Tensor both_nothing = a.eq(0).all(1).logical_and(b.eq(0).all(1));
  at::Tensor cosine = (a * b).sum(1) / lengths.clamp_min(1e-30);
  return at::where(both_nothing, at::ones_like(cosine), cosine);
}

}  // namespace galvani
