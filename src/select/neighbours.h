// What selectors that ask an input's neighbours share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "galvani/coverage/nearest.h"

namespace galvani {

// The k nearest of every query, [n, width] float, by all workers.
std::vector<std::vector<Nearest>> neighbours_of(const NearestSearch& search, const at::Tensor& queries, std::int64_t k);

// Rows of length 1, zeros where a value is not finite.
struct FiniteRows {
  at::Tensor values;  // [n, width] float
  at::Tensor finite;  // [n] bool
};
FiniteRows finite_unit_rows(const at::Tensor& features);

// DATIS: p_j ∝ Σ exp(-d²/T) over neighbours of label j; the largest p that is not the verdict's, divided by the
// verdict's.
double support_doubt(const std::vector<Nearest>& near, const std::int64_t* labels, std::int64_t classes,
                     std::int64_t verdict, double temperature);

// DATIS' second stage: candidates, the best first, are ranked by (1 - weight) times their place and `weight` times
// their place by mean distance to the nearest of each other (as many as the budget, 100 at most; each is its own
// nearest). features [n, width]. Returns `budget` indices.
std::vector<std::int64_t> drop_redundant(const at::Tensor& features, std::int64_t budget, double weight);

}  // namespace galvani
