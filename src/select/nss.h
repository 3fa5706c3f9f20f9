// The parts of NSS: which neurons are sensitive, and how much they change.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace galvani {

// What a neuron's change |N(x) - N(x')| is divided by. Sections 3.2 and both algorithms do not divide, section 2.2.1
// divides by ||N(x)||_1, and leaves open of what.
enum class Normalise {
  none,
  neuron,  // |N(x)|, the neuron's own output; a neuron that only x' wakes outweighs all others
  layer,   // the sum of |N(x)| over all neurons of the layer
};
Normalise parse_normalise(const std::string& text);

// Adds to each neuron's sum its change over the rows (NSS algorithm 1). values, changed: [n, width] float.
void add_sensitivity(const at::Tensor& values, const at::Tensor& changed, Normalise by, std::vector<double>& sums);
// So many percent of the neurons, at least one, the most sensitive first, of equal ones the first.
std::vector<std::int64_t> most_sensitive(const std::vector<double>& sensitivity, double percent);
// Adds to each row's score `weight` times the sum of the changes of `neurons` (TNSScore).
void add_tns_scores(const at::Tensor& values, const at::Tensor& changed, const std::vector<std::int64_t>& neurons,
                    Normalise by, double weight, double* scores);

}  // namespace galvani
