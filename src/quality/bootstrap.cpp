#include <algorithm>
#include <cmath>
#include <map>

#include "galvani/base/error.h"
#include "galvani/quality/statistics.h"

namespace galvani {
namespace {

// Linear between the values, as most programs take percentiles.
double percentile(const std::vector<double>& sorted, double share) {
  double place = share * static_cast<double>(sorted.size() - 1);
  auto below = static_cast<std::size_t>(place);
  std::size_t above = std::min(below + 1, sorted.size() - 1);
  double rest = place - static_cast<double>(below);
  return sorted[below] + (sorted[above] - sorted[below]) * rest;
}

Interval percentiles(std::vector<double> values, double level) {
  std::sort(values.begin(), values.end());
  return {percentile(values, (1 - level) / 2), percentile(values, (1 + level) / 2)};
}

// How many of `whole` draws hit, at the least, with probability `share`.
std::int64_t binomial_quantile(std::int64_t whole, double p, double share) {
  auto n = static_cast<double>(whole);
  double mean = n * p, spread = std::sqrt(n * p * (1 - p));
  // What lies further out does not add up to anything.
  auto first = static_cast<std::int64_t>(std::max(0.0, std::floor(mean - 12 * spread - 1)));
  double sum = 0;
  for (std::int64_t k = first; k < whole; ++k) {
    auto hits = static_cast<double>(k);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(hits + 1) - std::lgamma(n - hits + 1) + hits * std::log(p) +
                    (n - hits) * std::log1p(-p));
    if (sum >= share) return k;
  }
  return whole;
}

}  // namespace

Interval bootstrap(std::size_t n, const std::function<double(const std::vector<std::size_t>& drawn)>& statistic,
                   const Rng& rng, const BootstrapSettings& settings) {
  if (n == 0) fail(ErrorCode::internal, "nothing cannot be resampled");
  std::vector<double> found(static_cast<std::size_t>(settings.resamples));
  std::vector<std::size_t> drawn(n);
  for (std::size_t i = 0; i < found.size(); ++i) {
    Rng own = rng.derive(i);
    for (std::size_t& index : drawn) index = own.below(n);
    found[i] = statistic(drawn);
  }
  return percentiles(std::move(found), settings.level);
}

Interval bootstrap_mean(const std::vector<double>& values, const std::vector<std::int64_t>& groups, const Rng& rng,
                        const BootstrapSettings& settings) {
  struct Sum {
    double of_values = 0;
    double count = 0;
  };
  std::vector<Sum> sums;
  std::map<std::int64_t, std::size_t> places;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t place = groups.empty() ? i : places.emplace(groups[i], sums.size()).first->second;
    if (place == sums.size()) sums.emplace_back();
    sums[place].of_values += values[i];
    sums[place].count += 1;
  }
  return bootstrap(
      sums.size(),
      [&](const std::vector<std::size_t>& drawn) {
        Sum all;
        for (std::size_t i : drawn) {
          all.of_values += sums[i].of_values;
          all.count += sums[i].count;
        }
        return all.of_values / all.count;
      },
      rng, settings);
}

Interval bootstrap_share(std::int64_t part, std::int64_t whole, double level) {
  auto n = static_cast<double>(whole);
  double p = static_cast<double>(part) / n;
  if (part == 0 || part == whole) return {p, p};
  return {static_cast<double>(binomial_quantile(whole, p, (1 - level) / 2)) / n,
          static_cast<double>(binomial_quantile(whole, p, (1 + level) / 2)) / n};
}

}  // namespace galvani
