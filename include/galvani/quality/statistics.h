// Statistics for comparing repeated runs.
#pragma once

#include <cstddef>
#include <vector>

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

// Vargha and Delaney's A12: how often a value of `a` is larger than one of `b`, equal ones counting half. 0.5 if one is
// empty. Effects from 0.56 (or 0.44) are called small, from 0.64 medium, from 0.71 large.
double vargha_delaney(const std::vector<double>& a, const std::vector<double>& b);
const char* effect_size(double a12);  // "negligible", "small", "medium", "large"

// Holm's step-down correction, in the order given.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace galvani
