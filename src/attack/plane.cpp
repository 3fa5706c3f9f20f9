#include "attack/plane.h"

#include <algorithm>
#include <cmath>

namespace galvani {

double step_to_plane(const float* x, const float* w, double c, bool linf, float low, float high, std::int64_t n,
                     float* d) {
  // Along the multiplier λ every value moves by min(λ·|w|, room) in L2 and min(λ, room) in L∞, so what is covered of c,
  // Σ |w|·that, is concave and piecewise linear: Newton's method from 0 never overshoots and ends after few steps.
  constexpr int kMostSteps = 60;
  constexpr double kExact = 1e-9;
  double goal = std::abs(c);
  auto room = [&](std::int64_t i) { return static_cast<double>((w[i] > 0) == (c > 0) ? high - x[i] : x[i] - low); };
  double lambda = 0;
  double covered = 0;
  for (int step = 0; step < kMostSteps && goal - covered > kExact * goal; ++step) {
    double slope = 0;
    covered = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      double weight = std::abs(static_cast<double>(w[i]));
      double reach = linf ? lambda : lambda * weight;
      double most = room(i);
      if (reach < most) {
        slope += linf ? weight : weight * weight;
        covered += weight * reach;
      } else {
        covered += weight * most;
      }
    }
    if (!(slope > 0)) break;
    lambda += std::max(0.0, goal - covered) / slope;
  }
  double square = 0;
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double reach = linf ? lambda : lambda * std::abs(static_cast<double>(w[i]));
    double size = w[i] == 0 ? 0 : std::min(reach, room(i));
    square += size * size;
    largest = std::max(largest, size);
    d[i] = static_cast<float>((w[i] > 0) == (c > 0) ? size : -size);
  }
  return linf ? largest : std::sqrt(square);
}

}  // namespace galvani
