#include "galvani/data/similarity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace galvani {
namespace {

constexpr std::int64_t kWindow = 11;
constexpr double kSigma = 1.5;
constexpr double kDataRange = 255;
constexpr double kC1 = (0.01 * kDataRange) * (0.01 * kDataRange);
constexpr double kC2 = (0.03 * kDataRange) * (0.03 * kDataRange);

// Weights that add up to 1; as long as fits into a side of an image, and odd.
std::vector<double> window_weights(std::int64_t side) {
  std::int64_t size = std::min(kWindow, side % 2 == 1 ? side : side - 1);
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    std::int64_t steps = i - size / 2;
    auto distance = static_cast<double>(steps);
    weights.push_back(std::exp(-distance * distance / (2 * kSigma * kSigma)));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// The similarity of two planes, averaged over all windows that lie inside. Weighted means of a, b, a², b² and ab are
// taken along rows, then down columns.
class PlaneSimilarity {
 public:
  PlaneSimilarity(std::int64_t height, std::int64_t width)
      : height_(height), width_(width), across_(window_weights(width)), down_(window_weights(height)) {}

  double of(const std::uint8_t* a, const std::uint8_t* b) const {
    std::int64_t columns = width_ - size(across_) + 1, rows = height_ - size(down_) + 1;
    std::vector<Moments> along(static_cast<std::size_t>(height_ * columns));
    for (std::int64_t y = 0; y < height_; ++y) {
      for (std::int64_t x = 0; x < columns; ++x) {
        Moments& sum = along[static_cast<std::size_t>(y * columns + x)];
        for (std::size_t i = 0; i < across_.size(); ++i) {
          double p = a[y * width_ + x + static_cast<std::int64_t>(i)];
          double q = b[y * width_ + x + static_cast<std::int64_t>(i)];
          add(sum, {p, q, p * p, q * q, p * q}, across_[i]);
        }
      }
    }
    double total = 0;
    for (std::int64_t y = 0; y < rows; ++y) {
      for (std::int64_t x = 0; x < columns; ++x) {
        Moments sum{};
        for (std::size_t i = 0; i < down_.size(); ++i)
          add(sum, along[static_cast<std::size_t>((y + static_cast<std::int64_t>(i)) * columns + x)], down_[i]);
        total += similarity(sum);
      }
    }
    return total / static_cast<double>(rows * columns);
  }

 private:
  using Moments = std::array<double, 5>;  // of a, b, a², b², ab

  static std::int64_t size(const std::vector<double>& weights) { return static_cast<std::int64_t>(weights.size()); }
  static void add(Moments& sum, const Moments& more, double weight) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * more[i];
  }
  static double similarity(const Moments& m) {
    double variance_a = m[2] - m[0] * m[0], variance_b = m[3] - m[1] * m[1], covariance = m[4] - m[0] * m[1];
    return (2 * m[0] * m[1] + kC1) * (2 * covariance + kC2) /
           ((m[0] * m[0] + m[1] * m[1] + kC1) * (variance_a + variance_b + kC2));
  }

  std::int64_t height_;
  std::int64_t width_;
  std::vector<double> across_;
  std::vector<double> down_;
};

}  // namespace

double structural_similarity(const std::uint8_t* a, const std::uint8_t* b, std::int64_t channels, std::int64_t height,
                             std::int64_t width) {
  PlaneSimilarity plane(height, width);
  double sum = 0;
  for (std::int64_t c = 0; c < channels; ++c) sum += plane.of(a + c * height * width, b + c * height * width);
  return sum / static_cast<double>(channels);
}

}  // namespace galvani
