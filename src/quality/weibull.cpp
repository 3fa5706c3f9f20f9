#include "galvani/quality/weibull.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "galvani/quality/statistics.h"

namespace galvani {
namespace {

constexpr double kSame = 1e-6;  // relative: what single precision gives for equal gradients
constexpr std::array<double, 7> kFirstShapes = {0.1, 1, 5, 10, 20, 50, 100};
// Beyond it the distribution is all but Gumbel's, which has no end: where a fit that runs there puts it says nothing.
constexpr double kMostShape = 100;
constexpr int kMostSteps = 1000;

using Point = std::array<double, 3>;

// Nelder and Mead's search: no derivatives, no randomness.
template <class Function>
Point minimise(const Function& f, const Point& start) {
  struct Corner {
    Point at;
    double value;
  };
  std::array<Corner, 4> simplex;
  for (std::size_t i = 0; i < simplex.size(); ++i) {
    Point at = start;
    if (i > 0) at[i - 1] += 0.25;
    simplex[i] = {at, f(at)};
  }
  auto by_value = [](const Corner& a, const Corner& b) { return a.value < b.value; };
  for (int step = 0; step < kMostSteps; ++step) {
    std::sort(simplex.begin(), simplex.end(), by_value);
    const Corner& best = simplex[0];
    Corner& worst = simplex[3];
    double width = 0;
    for (std::size_t d = 0; d < 3; ++d) width = std::max(width, std::abs(worst.at[d] - best.at[d]));
    if (width < 1e-9 && std::abs(worst.value - best.value) < 1e-9) break;
    Point centre{};
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t d = 0; d < 3; ++d) centre[d] += simplex[i].at[d] / 3;
    }
    auto along = [&](double by) {
      Point at;
      for (std::size_t d = 0; d < 3; ++d) at[d] = centre[d] + by * (worst.at[d] - centre[d]);
      return Corner{at, f(at)};
    };
    Corner mirrored = along(-1);
    if (mirrored.value < best.value) {
      Corner further = along(-2);
      worst = further.value < mirrored.value ? further : mirrored;
    } else if (mirrored.value < simplex[2].value) {
      worst = mirrored;
    } else {
      Corner nearer = along(mirrored.value < worst.value ? -0.5 : 0.5);
      if (nearer.value < std::min(mirrored.value, worst.value)) {
        worst = nearer;
      } else {
        for (std::size_t i = 1; i < simplex.size(); ++i) {
          for (std::size_t d = 0; d < 3; ++d) simplex[i].at[d] = (simplex[i].at[d] + best.at[d]) / 2;
          simplex[i].value = f(simplex[i].at);
        }
      }
    }
  }
  return std::min_element(simplex.begin(), simplex.end(), by_value)->at;
}

// Negated and rescaled maxima, all from 0 to 1, follow an ordinary Weibull distribution that starts below 0. Parameters
// are logarithms of shape, scale and of how far below, so that none needs bounds.
double negative_log_likelihood(const std::vector<double>& values, const Point& p) {
  double shape = std::exp(p[0]), scale = std::exp(p[1]), below = std::exp(p[2]);
  double sum = 0;
  for (double value : values) {
    double log_distance = std::log((value + below) / scale);
    sum += p[0] - p[1] + (shape - 1) * log_distance - std::exp(shape * log_distance);
  }
  // The search need not run after what is refused. A shape below 1 is likelier without limit the nearer it starts to
  // the first value: no end to be found there.
  return std::isfinite(sum) && below > 1e-9 && shape < 10 * kMostShape ? -sum : std::numeric_limits<double>::max();
}

// Where a distribution of this shape has the mean and deviation of the values, as far as it starts below them.
Point first_guess(const std::vector<double>& values, double shape) {
  double mean_factor = std::tgamma(1 + 1 / shape);
  double deviation_factor = std::sqrt(std::max(1e-12, std::tgamma(1 + 2 / shape) - mean_factor * mean_factor));
  double scale = deviation_of(values) / deviation_factor;
  double below = scale * mean_factor - mean_of(values);
  return {std::log(shape), std::log(scale), std::log(std::max(below, 0.01))};
}

double distance_from(const ReverseWeibull& distribution, const std::vector<double>& sorted) {
  auto n = static_cast<double>(sorted.size());
  double distance = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    double share = distribution.cdf(sorted[i]);
    distance = std::max({distance, static_cast<double>(i + 1) / n - share, share - static_cast<double>(i) / n});
  }
  return distance;
}

}  // namespace

double ReverseWeibull::cdf(double x) const {
  return x >= end ? 1 : std::exp(-std::pow((end - x) / scale, shape));
}

double kolmogorov_p(double distance, double n) {
  double root = std::sqrt(n);
  double x = (root + 0.12 + 0.11 / root) * distance;
  if (x < 0.2) return 1;
  double sum = 0, sign = 1;
  for (int k = 1; k <= 100; ++k) {
    double term = std::exp(-2.0 * k * k * x * x);
    sum += sign * term;
    if (term < 1e-15) break;
    sign = -sign;
  }
  return std::clamp(2 * sum, 0.0, 1.0);
}

ExtremeFit fit_extremes(const std::vector<double>& maxima) {
  std::vector<double> sorted = maxima;
  std::sort(sorted.begin(), sorted.end());
  double largest = sorted.back(), range = largest - sorted.front();
  ExtremeFit best;
  best.bound = largest;
  if (range <= kSame * std::abs(largest)) return best;
  std::vector<double> values;
  for (double value : sorted) values.push_back((largest - value) / range);
  for (double shape : kFirstShapes) {
    Point found =
        minimise([&](const Point& p) { return negative_log_likelihood(values, p); }, first_guess(values, shape));
    if (std::exp(found[0]) > kMostShape) continue;
    ReverseWeibull distribution{largest + std::exp(found[2]) * range, std::exp(found[1]) * range, std::exp(found[0])};
    double distance = distance_from(distribution, sorted);
    double p = kolmogorov_p(distance, static_cast<double>(sorted.size()));
    if (best.distance > 0 && p <= best.p) continue;
    best = {distribution, distance, p, false, largest};
  }
  best.fitted = best.p >= kLeastFitP;
  if (best.fitted) best.bound = best.distribution.end;
  return best;
}

}  // namespace galvani
