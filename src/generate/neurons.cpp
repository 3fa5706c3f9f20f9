#include "generate/neurons.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/interrupt.h"

namespace galvani {
namespace {

constexpr std::int64_t kInputsAtOnce = 1024;

}  // namespace

NeuronTable::NeuronTable(Network& network, const std::string& tap_spec, const at::Tensor& inputs, double threshold)
    : taps(network.select_taps(tap_spec)) {
  for (int tap : taps) {
    auto count = static_cast<std::size_t>(network.taps()[static_cast<std::size_t>(tap)].neurons());
    auto layer = network.linear_layer(tap);
    if (!layer) {
      weight.resize(weight.size() + count, 0);
      continue;
    }
    at::Tensor mean = layer->weight.to(at::kDouble).flatten(1).mean(1).contiguous();
    weight.insert(weight.end(), mean.data_ptr<double>(), mean.data_ptr<double>() + mean.numel());
  }
  active.assign(weight.size(), 0);
  Request request;
  request.taps = taps;
  for (std::int64_t first = 0; first < inputs.size(0); first += kInputsAtOnce) {
    check_interrupt();
    at::Tensor part = inputs.narrow(0, first, std::min(kInputsAtOnce, inputs.size(0) - first));
    at::Tensor above = scaled(network.run(part, request).taps).gt(threshold).to(at::kLong).sum(0).contiguous();
    for (std::size_t i = 0; i < active.size(); ++i) active[i] += above.data_ptr<std::int64_t>()[i];
  }
}

at::Tensor NeuronTable::scaled(const std::vector<at::Tensor>& values) const {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tap : values) {
    at::Tensor low = tap.amin({1}, /*keepdim=*/true);
    at::Tensor range = tap.amax({1}, /*keepdim=*/true) - low;
    all.push_back(at::where(range.gt(0), (tap - low) / range, at::zeros_like(tap)));
  }
  return at::cat(all, 1).contiguous();
}

std::vector<std::int64_t> draw_by_weight(const std::vector<double>& weights, std::int64_t count, Rng& rng) {
  // The smallest of exponential times, whose rates are the weights (Efraimidis and Spirakis 2006).
  std::vector<std::pair<double, std::int64_t>> times;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double time = -std::log(1 - rng.uniform());
    if (weights[i] > 0) times.emplace_back(time / weights[i], static_cast<std::int64_t>(i));
  }
  auto kept = std::min(static_cast<std::size_t>(count), times.size());
  std::partial_sort(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(kept), times.end());
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < kept; ++i) result.push_back(times[i].second);
  return result;
}

}  // namespace galvani
