#include <ATen/ATen.h>

#include <algorithm>

#include "galvani/attribute/excitable.h"
#include "galvani/base/error.h"

namespace galvani {
namespace {

constexpr std::int64_t kRowBytes = std::int64_t{64} << 20;  // of inputs and masks that exist at once

// [B, classes], [B] → [B] double: minus the logarithm of the label's share.
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  return -logits.to(at::kDouble).log_softmax(1).gather(1, labels.unsqueeze(1)).squeeze(1);
}

// Neurons are switched off where nothing of them is left, and somebody may not want to wait for the end.
Request coalitions() {
  Request request;
  request.masks_at_end = true;
  request.interruptible = true;
  return request;
}

}  // namespace

LossGame::LossGame(Network& network, const std::vector<int>& taps, at::Tensor inputs, at::Tensor originals,
                   at::Tensor labels)
    : network_(network),
      taps_(network.taps_with_own_end(taps)),
      inputs_(std::move(inputs)),
      originals_(std::move(originals)),
      labels_(std::move(labels)) {
  if (labels_.dim() != 1 || labels_.size(0) != inputs_.size(0) || labels_.scalar_type() != at::kLong)
    bad_usage("a game of {} inputs needs as many labels", inputs_.size(0));
  if (originals_.defined() && originals_.sizes() != inputs_.sizes())
    bad_usage("changed inputs and those they were made of must be as many, and of one shape");
  if (labels_.numel() > 0 &&
      (labels_.min().item<std::int64_t>() < 0 || labels_.max().item<std::int64_t>() >= network_.info().classes))
    bad_usage("a label of a game is no class of the network, which has {}", network_.info().classes);
  for (int tap : taps_) {
    const Tap& t = network_.taps().at(static_cast<std::size_t>(tap));
    layout_.add(t.name, t.neurons());
  }
  layout_.classes = network_.info().classes;
  layout_.model = network_.identity();
}

at::Tensor LossGame::worth(const at::Tensor& games, const at::Tensor& masks) {
  at::Tensor result = losses(inputs_, games, masks);
  return originals_.defined() ? result - losses(originals_, games, masks) : result;
}

Game::Diagonal LossGame::along(const at::Tensor& games, const at::Tensor& degrees, const at::Tensor& weights) {
  Diagonal result = loss_along(inputs_, games, degrees, weights);
  if (!originals_.defined()) return result;
  Diagonal before = loss_along(originals_, games, degrees, weights);
  return {result.worth - before.worth, result.slopes - before.slopes};
}

at::Tensor LossGame::losses(const at::Tensor& inputs, const at::Tensor& games, const at::Tensor& masks) const {
  std::int64_t n = games.size(0);
  at::Tensor result = at::empty({n}, at::kDouble);
  auto bytes = static_cast<std::int64_t>(inputs[0].nbytes()) + 4 * layout_.neurons;
  std::int64_t at_once = std::max<std::int64_t>(1, kRowBytes / bytes);
  for (std::int64_t first = 0; first < n; first += at_once) {
    std::int64_t count = std::min(at_once, n - first);
    at::Tensor rows = games.narrow(0, first, count), part = masks.narrow(0, first, count);
    Request request = coalitions();
    for (std::size_t i = 0; i < taps_.size(); ++i) {
      const TraceBlock& block = layout_.blocks[i];
      request.masks.push_back({taps_[i], part.narrow(1, block.first, block.count)});
    }
    at::Tensor logits = network_.run(inputs.index_select(0, rows), request).logits;
    result.narrow(0, first, count).copy_(cross_entropy(logits, labels_.index_select(0, rows)));
  }
  return result;
}

Game::Diagonal LossGame::loss_along(const at::Tensor& inputs, const at::Tensor& games, const at::Tensor& degrees,
                                    const at::Tensor& weights) const {
  std::int64_t n = games.size(0), points = degrees.size(1);
  Diagonal result{at::empty({n, points}, at::kDouble), at::empty({n, layout_.neurons}, at::kDouble)};
  auto bytes = static_cast<std::int64_t>(inputs[0].nbytes()) * points + 8 * layout_.neurons;
  std::int64_t at_once = std::max<std::int64_t>(1, kRowBytes / bytes);
  for (std::int64_t first = 0; first < n; first += at_once) {
    std::int64_t count = std::min(at_once, n - first);
    at::Tensor rows = games.narrow(0, first, count).repeat_interleave(points);
    at::Tensor factor = degrees.narrow(0, first, count).reshape({-1, 1}).to(at::kFloat);
    at::Tensor weight = weights.narrow(0, first, count).reshape({-1, 1});
    at::Tensor labels = labels_.index_select(0, rows);
    Request request = coalitions();
    for (std::size_t i = 0; i < taps_.size(); ++i)
      request.masks.push_back({taps_[i], factor.expand({-1, layout_.blocks[i].count})});
    request.mask_gradients = true;
    request.group = points;
    request.objective = [&](const Pass& pass) {
      at::Tensor row = at::arange(pass.logits.size(0), at::kLong).clamp_max(pass.count - 1) + pass.first;
      return cross_entropy(pass.logits, labels.index_select(0, row));
    };
    // A row for each game, or for each piece of one where its points do not fit a micro-batch.
    request.reducer = [&](const Outputs& part, std::int64_t from) -> std::vector<at::Tensor> {
      std::int64_t size = part.logits.size(0);
      std::int64_t each = std::min(size, points);
      at::Tensor slopes = at::cat(part.mask_gradients, 1).to(at::kDouble) * weight.narrow(0, from, size);
      return {slopes.view({size / each, each, -1}).sum(1)};
    };
    Outputs outputs = network_.run(inputs.index_select(0, rows), request);
    result.worth.narrow(0, first, count).copy_(outputs.objective.view({count, points}));
    result.slopes.narrow(0, first, count).copy_(outputs.reduced[0].view({count, -1, layout_.neurons}).sum(1));
  }
  return result;
}

}  // namespace galvani
