// What the fused selector makes of neighbours and distributions.
#pragma once

#include <cstdint>
#include <vector>

#include "galvani/coverage/nearest.h"

namespace galvani {

// How much a distribution speaks against a verdict: log of the largest other share over the verdict's, each raised by
// `floor`. shares [classes].
double doubt_of(const double* shares, std::int64_t classes, std::int64_t verdict, double floor);

// The labels of the nearest training inputs as shares, each with weight exp(-2 d² / d_k²), d_k the distance of the
// furthest of them: no matter how wide a network's features are spread. REQUIRES some. out [classes].
void shares_of_labels(const std::vector<Nearest>& near, const std::int64_t* labels, std::int64_t classes, double* out);

// log of the mean distance of the nearest `count`.
double log_distance(const std::vector<Nearest>& near, std::size_t count);

}  // namespace galvani
