#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/quality/statistics.h"
#include "quality/ranks.h"

namespace galvani {
namespace {

// The regularised incomplete beta function by its continued fraction (Lentz's way of evaluating one).
double beta_share(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  // The fraction converges fast on this side only.
  if (x > (a + 1) / (a + b + 2)) return 1 - beta_share(b, a, 1 - x);
  const double kTiny = 1e-300;
  double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x)) / a;
  double c = 1, d = 1 / std::max(kTiny, 1 - (a + b) * x / (a + 1)), value = d;
  for (int m = 1; m <= 1000; ++m) {
    auto step = [&](double term) {
      d = 1 + term * d;
      c = 1 + term / c;
      if (std::abs(d) < kTiny) d = kTiny;
      if (std::abs(c) < kTiny) c = kTiny;
      d = 1 / d;
      value *= d * c;
      return d * c;
    };
    step(m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)));
    double last = step(-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)));
    if (std::abs(last - 1) < 1e-15) break;
  }
  return front * value;
}

void check_pairs(std::size_t a, std::size_t b) {
  if (a != b) bad_usage("a correlation needs as many of both: there are {} and {}", a, b);
}

// 0 if one of them is constant.
double linear_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double mean_a = mean_of(a), mean_b = mean_of(b), both = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean_a) * (b[i] - mean_b);
    of_a += (a[i] - mean_a) * (a[i] - mean_a);
    of_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return of_a > 0 && of_b > 0 ? std::clamp(both / std::sqrt(of_a * of_b), -1.0, 1.0) : 0;
}

double p_of(double r, std::size_t n) {
  if (n < 3) return 1;
  double freedom = static_cast<double>(n) - 2;
  double rest = 1 - r * r;
  return rest > 0 ? student_p(r * std::sqrt(freedom / rest), freedom) : 0;
}

// The share of all orders of b whose sum of products is at least as far from its mean as that of the given one.
double exact_order_p(const std::vector<int>& a, std::vector<int> b) {
  auto n = static_cast<long long>(a.size());
  auto sum = [](const std::vector<int>& v) { return std::accumulate(v.begin(), v.end(), 0LL); };
  // Multiplied by n, the mean is a whole number and the comparison exact.
  long long mean = sum(a) * sum(b);
  auto distance = [&] { return std::llabs(n * std::inner_product(a.begin(), a.end(), b.begin(), 0LL) - mean); };
  long long given = distance(), far = 0, all = 0;
  // Orders of equal values are one; each stands for equally many.
  std::sort(b.begin(), b.end());
  do {
    ++all;
    far += distance() >= given ? 1 : 0;
  } while (std::next_permutation(b.begin(), b.end()));
  return static_cast<double>(far) / static_cast<double>(all);
}

}  // namespace

double student_p(double t, double freedom) {
  return beta_share(freedom / 2, 0.5, freedom / (freedom + t * t));
}

Correlation pearson(const std::vector<double>& a, const std::vector<double>& b) {
  check_pairs(a.size(), b.size());
  if (a.size() < 3) return {};
  double r = linear_correlation(a, b);
  return {r, p_of(r, a.size()), false};
}

Correlation spearman(const std::vector<double>& a, const std::vector<double>& b, SpearmanMethod method) {
  check_pairs(a.size(), b.size());
  if (a.size() < 3) return {};
  std::vector<int> of_a = ranks_of(a).doubled, of_b = ranks_of(b).doubled;
  Correlation result = pearson({of_a.begin(), of_a.end()}, {of_b.begin(), of_b.end()});
  result.exact =
      method == SpearmanMethod::exact || (method == SpearmanMethod::automatic && a.size() <= kMostExactOrders);
  if (result.exact) result.p = exact_order_p(of_a, std::move(of_b));
  return result;
}

Correlation point_biserial(const std::vector<bool>& yes, const std::vector<double>& b) {
  return pearson({yes.begin(), yes.end()}, b);
}

}  // namespace galvani
