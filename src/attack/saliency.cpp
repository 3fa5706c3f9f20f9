#include "attack/saliency.h"

#include <algorithm>
#include <limits>

namespace galvani {

// Of a value to which two others are equal or superior in both alpha and -beta no pair is best: one of the two can take
// its place. What is left after leaving such values out is a handful, whose pairs are all looked at.
std::pair<std::int64_t, std::int64_t> SaliencyPairs::best(const float* alpha, const float* beta, const char* open,
                                                          std::int64_t n) {
  order_.clear();
  for (std::int64_t i = 0; i < n; ++i) {
    // Written so that values that are no numbers are left out.
    if (open[i] != 0 && alpha[i] - alpha[i] == 0 && beta[i] - beta[i] == 0) order_.push_back(i);
  }
  std::sort(order_.begin(), order_.end(), [&](std::int64_t a, std::int64_t b) {
    return alpha[a] != alpha[b] ? alpha[a] > alpha[b] : beta[a] != beta[b] ? beta[a] < beta[b] : a < b;
  });
  // The two least betas of those that come before.
  float least = std::numeric_limits<float>::infinity();
  float second = least;
  std::size_t kept = 0;
  for (std::int64_t i : order_) {
    if (beta[i] >= second) continue;
    order_[kept++] = i;
    second = std::max(least, beta[i]);
    least = std::min(least, beta[i]);
  }
  std::pair<std::int64_t, std::int64_t> result{-1, -1};
  double most = 0;
  for (std::size_t a = 0; a < kept; ++a) {
    for (std::size_t b = a + 1; b < kept; ++b) {
      double up = static_cast<double>(alpha[order_[a]]) + alpha[order_[b]];
      double down = static_cast<double>(beta[order_[a]]) + beta[order_[b]];
      if (!(up > 0) || !(down < 0) || !(-up * down > most)) continue;
      most = -up * down;
      result = std::minmax(order_[a], order_[b]);
    }
  }
  return result;
}

}  // namespace galvani
