// The parts of NSS: which neurons are sensitive, and how much they change.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace galvani {

// Adds to each neuron's sum |N(x) - N(x')| over the rows (NSS algorithm 1). values, changed: [n, width] float.
void add_sensitivity(const at::Tensor& values, const at::Tensor& changed, std::vector<double>& sums);
// So many percent of the neurons, at least one, the most sensitive first, of equal ones the first.
std::vector<std::int64_t> most_sensitive(const std::vector<double>& sensitivity, double percent);
// Adds to each row's score `weight` times the sum of |N(x) - N(x')| over `neurons` (TNSScore).
void add_tns_scores(const at::Tensor& values, const at::Tensor& changed, const std::vector<std::int64_t>& neurons,
                    double weight, double* scores);

}  // namespace galvani
