#include "galvani/quality/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "galvani/base/error.h"
#include "quality/ranks.h"

namespace galvani {
namespace {

// The share of all ways to choose n of the pooled ranks whose sum is at least as far from its mean as `sum` is.
double exact_p(const std::vector<int>& doubled, std::size_t n, int sum) {
  std::size_t most = 0;
  for (int r : doubled) most += static_cast<std::size_t>(r);
  // ways[k][s]: choices of k ranks that add up to s.
  std::vector<std::vector<double>> ways(n + 1, std::vector<double>(most + 1, 0));
  ways[0][0] = 1;
  for (int r : doubled) {
    auto step = static_cast<std::size_t>(r);
    for (std::size_t k = n; k > 0; --k) {
      for (std::size_t s = most; s + 1 > step; --s) ways[k][s] += ways[k - 1][s - step];
    }
  }
  // Multiplied by the number of values, the mean is a whole number and the comparison exact.
  auto values = static_cast<long long>(doubled.size());
  long long mean = static_cast<long long>(n) * static_cast<long long>(most);
  long long distance = std::llabs(values * sum - mean);
  double all = 0, far = 0;
  for (std::size_t s = 0; s <= most; ++s) {
    all += ways[n][s];
    if (std::llabs(values * static_cast<long long>(s) - mean) >= distance) far += ways[n][s];
  }
  return far / all;
}

// The share of all choices of signs whose sum of positive ranks is at least as far from its mean as `sum` is.
double exact_sign_p(const std::vector<int>& doubled, int sum) {
  std::size_t most = 0;
  for (int r : doubled) most += static_cast<std::size_t>(r);
  std::vector<double> ways(most + 1, 0);
  ways[0] = 1;
  for (int r : doubled) {
    auto step = static_cast<std::size_t>(r);
    for (std::size_t s = most; s + 1 > step; --s) ways[s] += ways[s - step];
  }
  long long distance = std::llabs(2LL * sum - static_cast<long long>(most));
  double all = 0, far = 0;
  for (std::size_t s = 0; s <= most; ++s) {
    all += ways[s];
    if (std::llabs(2 * static_cast<long long>(s) - static_cast<long long>(most)) >= distance) far += ways[s];
  }
  return far / all;
}

}  // namespace

Ranks ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  Ranks ranks{std::vector<int>(values.size()), 0};
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    // The mean of the ranks first + 1 ... end.
    for (std::size_t i = first; i < end; ++i) ranks.doubled[order[i]] = static_cast<int>(first + 1 + end);
    auto t = static_cast<double>(end - first);
    ranks.ties += t * t * t - t;
    first = end;
  }
  return ranks;
}

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  double mean = mean_of(values), sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

MannWhitney mann_whitney(const std::vector<double>& a, const std::vector<double>& b, MannWhitneyMethod method) {
  MannWhitney result;
  if (a.empty() || b.empty()) return result;
  std::vector<double> all_values = a;
  all_values.insert(all_values.end(), b.begin(), b.end());
  Ranks ranks = ranks_of(all_values);
  int sum = std::accumulate(ranks.doubled.begin(), ranks.doubled.begin() + static_cast<std::ptrdiff_t>(a.size()), 0);
  auto n = static_cast<double>(a.size());
  auto m = static_cast<double>(b.size());
  result.u = sum / 2.0 - n * (n + 1) / 2;
  result.exact = method == MannWhitneyMethod::exact ||
                 (method == MannWhitneyMethod::automatic && a.size() + b.size() <= kMostExact);
  if (result.exact) {
    result.p = exact_p(ranks.doubled, a.size(), sum);
    return result;
  }
  double all = n + m;
  double variance = n * m / 12 * (all + 1 - ranks.ties / (all * (all - 1)));
  double distance = std::max(0.0, std::abs(result.u - n * m / 2) - 0.5);
  result.p = variance > 0 ? std::min(1.0, std::erfc(distance / std::sqrt(2 * variance))) : 1;
  return result;
}

Wilcoxon wilcoxon(const std::vector<double>& a, const std::vector<double>& b, WilcoxonMethod method) {
  if (a.size() != b.size()) bad_usage("pairs need as many of both: there are {} and {}", a.size(), b.size());
  std::vector<double> sizes;
  std::vector<bool> positive;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double difference = a[i] - b[i];
    if (difference == 0) continue;
    sizes.push_back(std::abs(difference));
    positive.push_back(difference > 0);
  }
  Wilcoxon result;
  result.pairs = sizes.size();
  if (sizes.empty()) return result;
  Ranks ranks = ranks_of(sizes);
  int sum = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) sum += positive[i] ? ranks.doubled[i] : 0;
  result.v = sum / 2.0;
  result.exact =
      method == WilcoxonMethod::exact || (method == WilcoxonMethod::automatic && sizes.size() <= kMostExactPairs);
  if (result.exact) {
    result.p = exact_sign_p(ranks.doubled, sum);
    return result;
  }
  auto n = static_cast<double>(sizes.size());
  double variance = n * (n + 1) * (2 * n + 1) / 24 - ranks.ties / 48;
  double distance = std::max(0.0, std::abs(result.v - n * (n + 1) / 4) - 0.5);
  result.p = std::min(1.0, std::erfc(distance / std::sqrt(2 * variance)));
  return result;
}

double least_p(std::size_t n, std::size_t m) {
  double splits = 1;
  for (std::size_t i = 1; i <= n; ++i) splits = splits * static_cast<double>(m + i) / static_cast<double>(i);
  return std::min(1.0, 2 / splits);
}

double vargha_delaney(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return 0.5;
  double larger = 0;
  for (double x : a) {
    for (double y : b) larger += x > y ? 1 : x == y ? 0.5 : 0;
  }
  return larger / static_cast<double>(a.size() * b.size());
}

const char* effect_size(double a12) {
  double distance = std::abs(a12 - 0.5);
  return distance < 0.06 ? "negligible" : distance < 0.14 ? "small" : distance < 0.21 ? "medium" : "large";
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return p[i] < p[j]; });
  std::vector<double> result(p.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
    result[order[i]] = largest;
  }
  return result;
}

}  // namespace galvani
