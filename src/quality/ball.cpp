#include "quality/ball.h"

#include <cmath>

namespace galvani {

void unit_ball_point(CleverNorm norm, Rng rng, float* point, std::size_t n) {
  if (norm == CleverNorm::linf) {
    rng.fill_uniform(point, n);
    for (std::size_t i = 0; i < n; ++i) point[i] = 2 * point[i] - 1;
    return;
  }
  double length = 0;
  if (norm == CleverNorm::l2) {
    // A direction from normal values; the volume inside a radius grows with its n-th power.
    rng.fill_normal(point, n);
    for (std::size_t i = 0; i < n; ++i) length += static_cast<double>(point[i]) * point[i];
    length = std::sqrt(length) / std::pow(rng.uniform(), 1 / static_cast<double>(n));
  } else {
    // Exponential values, divided by their sum and one more, are uniform in the simplex; the signs are drawn.
    for (std::size_t i = 0; i < n; ++i) {
      double size = -std::log1p(-rng.uniform());
      point[i] = static_cast<float>(rng.chance(0.5) ? size : -size);
      length += size;
    }
    length -= std::log1p(-rng.uniform());
  }
  for (std::size_t i = 0; i < n; ++i) point[i] = static_cast<float>(point[i] / length);
}

}  // namespace galvani
