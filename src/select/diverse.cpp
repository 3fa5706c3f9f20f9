#include "galvani/select/diverse.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "select/builtin.h"
#include "select/neighbours.h"

namespace galvani {
namespace {

// Gains that differ by less do so by rounding: rows of length 1 gain the same while none is chosen.
constexpr double kSameGain = 1e-5;

// log det(F Fᵀ + λI) as rows are added to F. It grows by log(λ (1 + fᵀ A⁻¹ f)), A = λI + Fᵀ F, so that a factor of A,
// as wide as the features, is all that is kept, however many rows there are.
class GrowingDeterminant {
 public:
  explicit GrowingDeterminant(std::int64_t width)
      : width_(static_cast<std::size_t>(width)), factor_(width_ * width_, 0.0), scratch_(width_) {
    for (std::size_t j = 0; j < width_; ++j) factor_[j * width_ + j] = std::sqrt(kDiversityRidge);
  }

  double gain(const float* row) {
    // L y = f by forward substitution.
    double norm = 0;
    for (std::size_t i = 0; i < width_; ++i) {
      const double* l = factor_.data() + i * width_;
      double sum = row[i];
      for (std::size_t j = 0; j < i; ++j) sum -= l[j] * scratch_[j];
      scratch_[i] = sum / l[i];
      norm += scratch_[i] * scratch_[i];
    }
    return std::log(kDiversityRidge * (1 + norm));
  }

  // The factor of A + f fᵀ, by Givens rotations.
  void add(const float* row) {
    std::copy(row, row + width_, scratch_.begin());
    for (std::size_t k = 0; k < width_; ++k) {
      double& pivot = factor_[k * width_ + k];
      double length = std::hypot(pivot, scratch_[k]);
      double c = length / pivot, s = scratch_[k] / pivot;
      pivot = length;
      for (std::size_t i = k + 1; i < width_; ++i) {
        double& below = factor_[i * width_ + k];
        below = (below + s * scratch_[i]) / c;
        scratch_[i] = c * scratch_[i] - s * below;
      }
    }
  }

 private:
  std::size_t width_;
  std::vector<double> factor_;  // lower triangle, row by row
  std::vector<double> scratch_;
};

}  // namespace

std::int64_t diverse_reach(std::int64_t budget, std::int64_t pool) {
  return std::min(pool, 3 * budget);
}

std::vector<std::int64_t> choose_diverse(const at::Tensor& features, const std::vector<double>& weights,
                                         std::int64_t budget) {
  auto n = static_cast<std::int64_t>(weights.size());
  if (budget < 1 || budget > n || features.size(0) != n)
    fail(ErrorCode::internal, "{} of {} candidates cannot be chosen", budget, n);
  at::Tensor rows = finite_unit_rows(features).values;
  std::int64_t width = rows.size(1);
  const auto* data = rows.data_ptr<float>();
  GrowingDeterminant determinant(width);
  std::vector<std::int64_t> chosen;
  std::vector<double> gains;
  for (std::int64_t chunk = 0; chunk < budget; ++chunk) {
    check_interrupt();
    gains.clear();
    for (std::int64_t i = chunk; i < n; i += budget) gains.push_back(determinant.gain(data + i * width));
    auto [least, most] = std::minmax_element(gains.begin(), gains.end());
    double low = *least, span = *most - *least;
    std::int64_t best = chunk;
    double best_worth = -1;
    for (std::size_t at = 0; at < gains.size(); ++at) {
      std::int64_t i = chunk + static_cast<std::int64_t>(at) * budget;
      double worth = weights[static_cast<std::size_t>(i)] * (span > kSameGain ? (gains[at] - low) / span : 1);
      if (worth > best_worth) {
        best = i;
        best_worth = worth;
      }
    }
    chosen.push_back(best);
    determinant.add(data + best * width);
  }
  return chosen;
}

std::vector<double> diversity_weights(const std::vector<double>& scores) {
  auto usable = [](double score) { return std::isfinite(score) && score >= 0; };
  if (std::all_of(scores.begin(), scores.end(), usable)) return scores;
  double low = 0, high = 0;
  bool any = false;
  for (double score : scores) {
    if (!std::isfinite(score)) continue;
    low = any ? std::min(low, score) : score;
    high = any ? std::max(high, score) : score;
    any = true;
  }
  std::vector<double> weights;
  for (double score : scores) {
    double scaled = high > low ? (score - low) / (high - low) : 1;
    weights.push_back(std::isnan(score) ? 0 : std::isinf(score) ? (score > 0 ? 1 : 0) : scaled);
  }
  return weights;
}

}  // namespace galvani
