#include "galvani/attack/search.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

// A row is a small piece of work; so many numbers make a task of a worker.
constexpr std::int64_t kValuesOfTask = 1 << 15;
constexpr double kSlack = 1e-9;       // 8/255 of 255 is eight levels, rounding or not
constexpr double kFloatSlack = 1e-5;  // of a radius, for floats

}  // namespace

std::int64_t whole_levels(double epsilon, double full) {
  return static_cast<std::int64_t>(std::floor(epsilon * full * (1 + kSlack) + kSlack));
}

at::Tensor odds_loss(const at::Tensor& logits, const at::Tensor& goals) {
  at::Tensor goal = goals.unsqueeze(1);
  at::Tensor others = logits.scatter(1, goal, -std::numeric_limits<float>::infinity());
  return others.logsumexp(1) - logits.gather(1, goal).squeeze(1);
}

at::Tensor margin_loss(const at::Tensor& logits, const at::Tensor& goals) {
  at::Tensor goal = goals.unsqueeze(1);
  at::Tensor others = logits.scatter(1, goal, -std::numeric_limits<float>::infinity());
  return others.amax(1) - logits.gather(1, goal).squeeze(1);
}

at::Tensor dlr_loss(const at::Tensor& logits, const at::Tensor& goals) {
  at::Tensor margin = margin_loss(logits, goals);
  if (logits.size(1) < 3) return margin;
  at::Tensor best = std::get<0>(logits.topk(3, 1));
  return margin / (best.select(1, 0) - best.select(1, 2) + 1e-12);
}

Search::Search(Network& network, const Attack& attack, const AttackTask& task, const at::Tensor& right,
               const at::Tensor& logits)
    : network_(network),
      task_(task),
      originals_(task.inputs.index_select(0, right).to(at::kFloat)),
      original_logits_(logits.index_select(0, right)),
      labels_(task.labels.index_select(0, right)),
      values_(task.inputs[0].numel()),
      classes_(network.info().classes),
      norm_(attack.norm()),
      bounded_(attack.bounded()) {
  bool bytes = task.inputs.scalar_type() == at::kByte;
  low_ = bytes ? 0 : std::numeric_limits<std::int16_t>::min();
  high_ = bytes ? 255 : std::numeric_limits<std::int16_t>::max();
  full_ = bytes ? 255 : 32768;
  radius_ = attack.epsilon() * full_;
  if (norm_ == Norm::linf) radius_ = static_cast<double>(whole_levels(attack.epsilon(), full_));
  if (task.targets.defined()) targets_ = task.targets.index_select(0, right);
  if (task.references.defined()) references_ = task.references.index_select(0, right);
  const std::int64_t* row = right.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < size(); ++i) streams_.push_back(task.streams[static_cast<std::size_t>(row[i])]);
  auto rows = static_cast<std::size_t>(size());
  found_ = originals_.clone();
  saved_ = originals_.clone();
  saved_logits_ = original_logits_.clone();
  fooled_.assign(rows, 0);
  kept_.assign(rows, 0);
  nearest_.assign(rows, std::numeric_limits<double>::infinity());
  forward_.assign(rows, 0);
  backward_.assign(rows, 0);
}

at::Tensor Search::all() const {
  return at::arange(size(), at::kLong);
}

at::Tensor Search::standing() const {
  std::vector<std::int64_t> rows;
  for (std::size_t row = 0; row < kept_.size(); ++row) {
    if (kept_[row] == 0) rows.push_back(static_cast<std::int64_t>(row));
  }
  return at::tensor(rows, at::kLong);
}

at::Tensor Search::other_class(std::int64_t j) const {
  at::Tensor others = original_logits_.scatter(1, labels_.unsqueeze(1), -std::numeric_limits<float>::infinity());
  return std::get<1>(others.sort(/*stable=*/true, 1, /*descending=*/true)).select(1, j).contiguous();
}

at::Tensor Search::gather(const at::Tensor& all, const at::Tensor& rows) const {
  return rows.numel() == all.size(0) ? all : all.index_select(0, rows);
}

at::Tensor Search::references_of(const at::Tensor& rows) const {
  return references_.defined() ? gather(references_, rows) : references_;
}

void Search::count(const at::Tensor& rows, std::int64_t backward) {
  const std::int64_t* row = rows.data_ptr<std::int64_t>();
  for (std::int64_t k = 0; k < rows.numel(); ++k) {
    ++forward_[static_cast<std::size_t>(row[k])];
    backward_[static_cast<std::size_t>(row[k])] += backward;
  }
  check_interrupt();
  if (task_.progress) task_.progress(rows.numel());
}

at::Tensor Search::logits(const at::Tensor& x, const at::Tensor& rows) {
  count(rows, 0);
  Request request;
  request.references = references_of(rows);
  return network_.run(gather(x, rows), request).logits;
}

Search::Slope Search::slope(const at::Tensor& x, const at::Tensor& rows, const Loss& loss, const at::Tensor& goals,
                            std::int64_t losses) {
  count(rows, std::max<std::int64_t>(1, losses));
  at::Tensor goals_of_rows = gather(goals, rows);
  Request request;
  request.input_gradient = true;
  request.references = references_of(rows);
  request.objectives = losses;
  request.objective = [&](const Pass& pass) {
    at::Tensor padded = at::arange(pass.logits.size(0), at::kLong).clamp_max(pass.count - 1) + pass.first;
    return loss(pass.logits, goals_of_rows.index_select(0, padded));
  };
  Outputs outputs = network_.run(gather(x, rows), request);
  // Once is enough: a network whose operators pass no gradient on never has one.
  if (!gradient_seen_ && rows.numel() > 0) {
    if (outputs.input_gradient.count_nonzero().item<std::int64_t>() == 0)
      check_differentiable(network_, task_.inputs, task_.references);
    gradient_seen_ = true;
  }
  return {outputs.logits, outputs.objective, outputs.input_gradient};
}

Search::Loss Search::towards(Loss loss) const {
  if (!targeted()) return loss;
  return [loss = std::move(loss)](const at::Tensor& logits, const at::Tensor& goals) { return -loss(logits, goals); };
}

at::Tensor Search::fools(const at::Tensor& logits, const at::Tensor& rows) const {
  at::Tensor verdict = verdicts(logits);
  return targeted() ? verdict.eq(gather(targets_, rows)) : verdict.ne(gather(labels_, rows));
}

at::Tensor Search::offer(const at::Tensor& x, const at::Tensor& rows, const at::Tensor& logits) {
  at::Tensor fooled = fools(logits, rows).contiguous();
  const bool* is_fooled = fooled.data_ptr<bool>();
  const std::int64_t* row = rows.data_ptr<std::int64_t>();
  std::vector<std::int64_t> better;
  const auto* from = x.data_ptr<float>();
  for (std::int64_t k = 0; k < rows.numel(); ++k) {
    auto r = static_cast<std::size_t>(row[k]);
    if (!is_fooled[k] || kept_[r] != 0) continue;
    double far = distance(from + row[k] * values_, row[k]);
    if (bounded_ ? far > radius_ * (1 + kFloatSlack) : !(far < nearest_[r])) continue;
    nearest_[r] = far;
    fooled_[r] = 1;
    better.push_back(row[k]);
  }
  if (better.empty()) return fooled;
  at::Tensor chosen = at::tensor(better, at::kLong);
  each(chosen, [&](std::int64_t, std::int64_t r) {
    float* to = found_.data_ptr<float>() + r * values_;
    std::copy_n(from + r * values_, values_, to);
    if (!bounded_) return;
    float* saved = saved_.data_ptr<float>() + r * values_;
    std::copy_n(to, values_, saved);
    round(saved, r);
  });
  if (bounded_) keep(chosen);
  return fooled;
}

at::Tensor Search::keep(const at::Tensor& rows) {
  // As predict() does it: what counts is what is read back from a file.
  at::Tensor saved = gather(saved_, rows).to(task_.inputs.scalar_type());
  count(rows, 0);
  Request request;
  request.references = references_of(rows);
  at::Tensor scores = network_.run(saved, request).logits;
  settle_close_calls(network_, saved, scores, request.references);
  saved_logits_.index_copy_(0, rows, scores);
  at::Tensor fooled = fools(scores, rows).contiguous();
  const bool* is_fooled = fooled.data_ptr<bool>();
  const std::int64_t* row = rows.data_ptr<std::int64_t>();
  std::vector<std::int64_t> left;
  for (std::int64_t k = 0; k < rows.numel(); ++k) {
    kept_[static_cast<std::size_t>(row[k])] = static_cast<char>(is_fooled[k]);
    if (!is_fooled[k]) left.push_back(row[k]);
  }
  return at::tensor(left, at::kLong);
}

void Search::each(const at::Tensor& rows, const std::function<void(std::int64_t, std::int64_t)>& work) const {
  std::int64_t n = rows.numel();
  std::int64_t span = std::max<std::int64_t>(1, kValuesOfTask / std::max<std::int64_t>(1, values_));
  const std::int64_t* row = rows.data_ptr<std::int64_t>();
  workers().run((n + span - 1) / span, [&](std::int64_t task, int) {
    for (std::int64_t k = task * span; k < std::min(n, (task + 1) * span); ++k) work(k, row[k]);
  });
}

void Search::project(float* x, std::int64_t row) const {
  const float* centre = original(row);
  auto reach = static_cast<float>(bounded_ && norm_ == Norm::linf ? radius_ : std::numeric_limits<float>::infinity());
  if (bounded_ && norm_ == Norm::l2) {
    double length = distance(x, row);
    // A gradient that is no number leads nowhere.
    if (!std::isfinite(length)) {
      std::copy_n(centre, values_, x);
      return;
    }
    if (length > radius_) {
      auto scale = static_cast<float>(radius_ / length);
      for (std::int64_t i = 0; i < values_; ++i) x[i] = centre[i] + (x[i] - centre[i]) * scale;
    }
  }
  for (std::int64_t i = 0; i < values_; ++i) {
    float least = std::max(low_, centre[i] - reach);
    float most = std::min(high_, centre[i] + reach);
    float value = x[i] > least ? x[i] : least;  // also of a value that is no number
    x[i] = value < most ? value : most;
  }
}

void Search::random_start(float* x, std::int64_t row, bool surface) {
  const float* centre = original(row);
  Rng& rng = stream(row);
  std::vector<float> draw(static_cast<std::size_t>(values_));
  double scale = radius_;
  if (norm_ == Norm::l2) {
    rng.fill_normal(draw.data(), draw.size());
    double square = 0;
    for (float value : draw) square += static_cast<double>(value) * value;
    double share = surface ? 1 : std::pow(rng.uniform(), 1.0 / static_cast<double>(values_));
    scale *= share / std::sqrt(std::max(square, 1e-30));
  } else {
    rng.fill_uniform(draw.data(), draw.size());
    float largest = 0;
    for (float& value : draw) {
      value = 2 * value - 1;
      largest = std::max(largest, std::abs(value));
    }
    if (surface && largest > 0) scale /= largest;
  }
  for (std::int64_t i = 0; i < values_; ++i)
    x[i] = centre[i] + static_cast<float>(scale) * draw[static_cast<std::size_t>(i)];
  project(x, row);
}

double Search::distance(const float* x, std::int64_t row) const {
  const float* centre = original(row);
  if (norm_ == Norm::linf) {
    float largest = 0;
    for (std::int64_t i = 0; i < values_; ++i) largest = std::max(largest, std::abs(x[i] - centre[i]));
    return largest;
  }
  if (norm_ == Norm::l0) {
    double changed = 0;
    for (std::int64_t i = 0; i < values_; ++i) changed += x[i] != centre[i];
    return changed;
  }
  double square = 0;
  for (std::int64_t i = 0; i < values_; ++i) {
    double change = static_cast<double>(x[i]) - centre[i];
    square += change * change;
  }
  return std::sqrt(square);
}

}  // namespace galvani
