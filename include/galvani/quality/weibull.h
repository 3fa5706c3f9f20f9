// The reverse Weibull distribution, which the largest of many bounded values follows in the limit: its upper end is the
// bound that the values were drawn below.
#pragma once

#include <vector>

namespace galvani {

// P(X <= x) = exp(-((end - x)/scale)^shape) for x below the end.
struct ReverseWeibull {
  double end = 0;
  double scale = 0;
  double shape = 0;
  double cdf(double x) const;
};

struct ExtremeFit {
  ReverseWeibull distribution;  // of no use unless `fitted`
  double distance = 0;          // Kolmogorov-Smirnov, of the best fit found
  double p = 0;                 // of values drawn from it being this far away, or further
  bool fitted = false;          // false: values that hardly differ, or no fit that is credible
  double bound = 0;             // the distribution's end, or the largest value where there is none
};

// By maximum likelihood from several shapes to start with; the one with the best p wins, and below kLeastFitP none does
// (CLEVER's authors' way). Fits that find no end, with shapes beyond all that are started from, do not count.
// Deterministic. REQUIRES finite values, at least one.
inline constexpr double kLeastFitP = 0.001;
ExtremeFit fit_extremes(const std::vector<double>& maxima);

// P(D >= distance) for n values drawn from a known distribution, in Stephens' approximation.
double kolmogorov_p(double distance, double n);

}  // namespace galvani
