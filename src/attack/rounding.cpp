// From what fools a network as floats to what still fools it as whole numbers of the file's grid.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "galvani/attack/search.h"

namespace galvani {
namespace {

constexpr double kLengthSlack = 1e-9;
constexpr int kTries = 16;
constexpr int kTriesOfLength = 5;  // then the change itself is made longer, if nothing bounds it
constexpr double kPush = 0.03;     // by so much for each try made

double square_length(const float* x, const float* centre, std::int64_t n) {
  double square = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double change = static_cast<double>(x[i]) - centre[i];
    square += change * change;
  }
  return square;
}

}  // namespace

void Search::round(float* x, std::int64_t row) const {
  const float* centre = original(row);
  bool l2 = bounded_ && norm_ == Norm::l2;
  // What nearest rounding adds to the length can be taken back where it adds most: towards the original.
  std::vector<std::pair<float, std::int64_t>> outward;
  for (std::int64_t i = 0; i < values_; ++i) {
    float whole = std::clamp(std::nearbyint(x[i]), low_, high_);
    float excess = std::abs(whole - centre[i]) - std::abs(x[i] - centre[i]);
    if (l2 && excess > 0) outward.emplace_back(-excess, i);
    x[i] = whole;
  }
  if (!l2) return;
  double square = square_length(x, centre, values_);
  double most = radius_ * radius_ * (1 + kLengthSlack);
  if (square <= most) return;
  std::sort(outward.begin(), outward.end());
  for (const auto& [excess, i] : outward) {
    double change = std::abs(static_cast<double>(x[i]) - centre[i]);
    x[i] += x[i] > centre[i] ? -1.0F : 1.0F;
    square -= 2 * change - 1;
    if (square <= most) return;
  }
}

bool Search::improve(const float* found, const float* gradient, double need, std::int64_t row, float* x) const {
  const float* centre = original(row);
  struct Move {
    bool far;    // beyond the two whole numbers that the value found lies between
    float gain;  // of the margin
    std::int64_t at;
  };
  std::vector<Move> moves;
  for (std::int64_t i = 0; i < values_; ++i) {
    float gain = std::abs(gradient[i]);
    if (!(gain > 0) || !std::isfinite(gain)) continue;
    float next = x[i] + (gradient[i] > 0 ? 1.0F : -1.0F);
    if (next < low_ || next > high_) continue;
    if (norm_ == Norm::l0 && x[i] == centre[i]) continue;
    if (bounded_ && norm_ == Norm::linf && std::abs(next - centre[i]) > radius_) continue;
    moves.push_back({std::abs(next - found[i]) >= 1, gain, i});
  }
  std::sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
    return a.far != b.far ? b.far : a.gain != b.gain ? a.gain > b.gain : a.at < b.at;
  });
  double square = square_length(x, centre, values_);
  double most = bounded_ && norm_ == Norm::l2 ? radius_ * radius_ * (1 + kLengthSlack) : HUGE_VAL;
  bool moved = false;
  for (const Move& move : moves) {
    if (need <= 0) break;
    double change = static_cast<double>(x[move.at]) - centre[move.at];
    float step = gradient[move.at] > 0 ? 1.0F : -1.0F;
    double longer = square + 2 * change * step + 1;
    if (longer > most && longer > square) continue;
    square = longer;
    x[move.at] += step;
    need -= move.gain;
    moved = true;
  }
  return moved;
}

void Search::settle() {
  std::vector<std::int64_t> waiting;
  for (std::size_t row = 0; row < fooled_.size(); ++row) {
    if (fooled_[row] != 0 && kept_[row] == 0) waiting.push_back(static_cast<std::int64_t>(row));
  }
  if (waiting.empty()) return;
  at::Tensor rows = at::tensor(waiting, at::kLong);
  auto* saved = saved_.data_ptr<float>();
  const auto* found = found_.data_ptr<float>();
  each(rows, [&](std::int64_t, std::int64_t row) {
    std::copy_n(found + row * values_, values_, saved + row * values_);
    round(saved + row * values_, row);
  });
  for (int attempt = 0; attempt <= kTries; ++attempt) {
    rows = keep(rows);
    if (rows.numel() == 0 || attempt == kTries) return;
    Slope at = slope(saved_, rows, towards(margin_loss), goals());
    at::Tensor scale = at.logits.abs().amax(1).contiguous();
    each(rows, [&](std::int64_t k, std::int64_t row) {
      // The margin is curved: each time a little more than the gradient promises to suffice.
      double lacking = std::max(0.0, -static_cast<double>(at.loss.data_ptr<float>()[k]));
      double need = lacking * (1 + 0.15 * (attempt + 1)) + 1e-3 * scale.data_ptr<float>()[k];
      float* x = saved + row * values_;
      const float* gradient = at.gradient.data_ptr<float>() + k * values_;
      bool may_push = !bounded_ && norm_ != Norm::l0;
      bool push = may_push && attempt > 0 && attempt % kTriesOfLength == 0;
      if (!push && improve(found + row * values_, gradient, need, row, x)) return;
      if (!may_push) return;
      const float* centre = original(row);
      auto longer = static_cast<float>(1 + kPush * (attempt + 1));
      for (std::int64_t i = 0; i < values_; ++i) x[i] = centre[i] + (found[row * values_ + i] - centre[i]) * longer;
      round(x, row);
    });
  }
}

}  // namespace galvani
