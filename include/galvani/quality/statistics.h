// Statistics for comparing repeated runs and for saying how sure a figure is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "galvani/base/rng.h"

namespace galvani {

double mean_of(const std::vector<double>& values);       // 0 if there are none
double deviation_of(const std::vector<double>& values);  // of a sample (n - 1); 0 if there are fewer than two

// Two samples, two-sided: is one of them larger more often than chance would have it?
struct MannWhitney {
  double u = 0;  // of the first sample: pairs in which it is larger, equal ones counting half
  double p = 1;
  bool exact = false;
};
enum class MannWhitneyMethod {
  automatic,  // exact up to kMostExact values
  exact,      // every split of the pooled values counted, ties included
  normal,     // with corrections for ties and continuity
};
inline constexpr std::size_t kMostExact = 40;
// Empty samples give p = 1.
MannWhitney mann_whitney(const std::vector<double>& a, const std::vector<double>& b,
                         MannWhitneyMethod method = MannWhitneyMethod::automatic);
// What p can be at the least with samples of these sizes and no ties: 2 / (n + m over n).
double least_p(std::size_t n, std::size_t m);

// Pairs, two-sided: is the first of them larger more often, and by more, than chance would have it? Pairs without a
// difference are left out, as Wilcoxon does.
struct Wilcoxon {
  double v = 0;           // sum of the ranks of the differences that are positive
  std::size_t pairs = 0;  // that differ
  double p = 1;
  bool exact = false;
};
enum class WilcoxonMethod {
  automatic,  // exact up to kMostExactPairs that differ
  exact,      // every choice of signs counted, ties included
  normal,     // with corrections for ties and continuity
};
inline constexpr std::size_t kMostExactPairs = 50;
// Usage error unless there are as many of both.
Wilcoxon wilcoxon(const std::vector<double>& a, const std::vector<double>& b,
                  WilcoxonMethod method = WilcoxonMethod::automatic);

// Vargha and Delaney's A12: how often a value of `a` is larger than one of `b`, equal ones counting half. 0.5 if one is
// empty. Effects from 0.56 (or 0.44) are called small, from 0.64 medium, from 0.71 large.
double vargha_delaney(const std::vector<double>& a, const std::vector<double>& b);
const char* effect_size(double a12);  // "negligible", "small", "medium", "large"

// Holm's step-down correction, in the order given.
std::vector<double> holm(const std::vector<double>& p);

// How two rows of numbers go together, with a two-sided p of there being no connection. Of fewer than three pairs, or
// where one row is constant, r is 0 and p is 1. Usage error unless there are as many of both.
struct Correlation {
  double r = 0;
  double p = 1;
  bool exact = false;  // every order was counted
};
Correlation pearson(const std::vector<double>& a, const std::vector<double>& b);  // p by Student's t
enum class SpearmanMethod {
  automatic,  // exact up to kMostExactOrders pairs
  exact,      // every order of one row counted, ties included
  student,    // by Student's t
};
inline constexpr std::size_t kMostExactOrders = 9;
Correlation spearman(const std::vector<double>& a, const std::vector<double>& b,
                     SpearmanMethod method = SpearmanMethod::automatic);
// Between a yes or no and a number: Pearson's r with 1 for yes.
Correlation point_biserial(const std::vector<bool>& yes, const std::vector<double>& b);

// The probability that Student's t with so many degrees of freedom is at least this far from 0, on either side.
double student_p(double t, double freedom);

struct Interval {
  double low = 0;
  double high = 0;
};
struct BootstrapSettings {
  std::int64_t resamples = 1000;
  double level = 0.95;
};
// Percentiles of a statistic over resamples: it is called with so many indices of [0, n), drawn with repetition. The
// same stream gives the same interval.
Interval bootstrap(std::size_t n, const std::function<double(const std::vector<std::size_t>& drawn)>& statistic,
                   const Rng& rng, const BootstrapSettings& settings = {});
// Of a mean. Values of one group belong together, as tests made of one seed do, and are drawn together; without groups
// each stands alone. REQUIRES as many groups as values, or none.
Interval bootstrap_mean(const std::vector<double>& values, const std::vector<std::int64_t>& groups, const Rng& rng,
                        const BootstrapSettings& settings = {});
// Of a share, `part` of `whole`: resamples of it are binomial, so their percentiles need no drawing. REQUIRES 0 <= part
// <= whole and whole > 0.
Interval bootstrap_share(std::int64_t part, std::int64_t whole, double level = 0.95);

}  // namespace galvani
