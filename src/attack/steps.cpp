#include "attack/steps.h"

#include <cmath>

namespace galvani {

void ascend(const Search& search, float* x, const float* gradient, double length, std::int64_t row) {
  std::int64_t n = search.values();
  if (search.norm() == Norm::l2) {
    double square = 0;
    for (std::int64_t i = 0; i < n; ++i) square += static_cast<double>(gradient[i]) * gradient[i];
    if (!(square > 0)) return;
    auto scale = static_cast<float>(length / std::sqrt(square));
    for (std::int64_t i = 0; i < n; ++i) x[i] += scale * gradient[i];
  } else {
    auto step = static_cast<float>(length);
    for (std::int64_t i = 0; i < n; ++i) x[i] += static_cast<float>((gradient[i] > 0) - (gradient[i] < 0)) * step;
  }
  search.project(x, row);
}

}  // namespace galvani
