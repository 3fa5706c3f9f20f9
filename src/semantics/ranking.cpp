#include "semantics/ranking.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace galvani {

std::vector<std::int64_t> ascending(const std::vector<float>& values) {
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    float x = values[static_cast<std::size_t>(a)];
    float y = values[static_cast<std::size_t>(b)];
    return x != y ? x < y : a > b;  // of equal ones the first counts as larger
  });
  return order;
}

Separation separation(const std::vector<float>& values, const std::vector<std::int64_t>& order,
                      const std::vector<char>& inside) {
  auto n = static_cast<double>(values.size());
  double in = 0;
  double rank_sum = 0;
  double ties = 0;
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    float value = values[static_cast<std::size_t>(order[i])];
    while (end < order.size() && values[static_cast<std::size_t>(order[end])] == value) ++end;
    auto run = static_cast<double>(end - i);
    double rank = static_cast<double>(i + end + 1) / 2;
    ties += run * run * run - run;
    for (; i < end; ++i) {
      if (inside[static_cast<std::size_t>(order[i])] == 0) continue;
      in += 1;
      rank_sum += rank;
    }
  }
  double out = n - in;
  if (in == 0 || out == 0) return {};
  double u = rank_sum - in * (in + 1) / 2;
  double variance = in * out / 12 * (n + 1 - ties / (n * (n - 1)));
  Separation result;
  result.auroc = u / (in * out);
  if (variance > 0) result.p = upper_tail((u - in * out / 2 - 0.5) / std::sqrt(variance));
  return result;
}

double matched_overlap(const std::vector<std::int64_t>& order, const std::vector<char>& inside) {
  auto count = static_cast<std::size_t>(std::count(inside.begin(), inside.end(), 1));
  if (count == 0) return 0;
  std::size_t both = 0;
  for (std::size_t i = order.size() - count; i < order.size(); ++i)
    both += inside[static_cast<std::size_t>(order[i])] != 0 ? 1 : 0;
  return static_cast<double>(both) / static_cast<double>(2 * count - both);
}

double chance_overlap(double share) {
  return share / (2 - share);
}

double upper_tail(double z) {
  return 0.5 * std::erfc(z / std::sqrt(2.0));
}

}  // namespace galvani
