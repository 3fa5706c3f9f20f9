// The entries of the table of estimators, each defined in a file of its own, and what they share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "galvani/attribute/shapley.h"

namespace galvani {

using ShapleyEntry = ShapleyRegistry::Entry;
ShapleyEntry exact_shapley_entry();
ShapleyEntry permutation_shapley_entry();
ShapleyEntry regression_shapley_entry();
ShapleyEntry path_shapley_entry();

// Every game with every mask: masks [K, players] float → [games, K] double.
at::Tensor worth_of_all(Game& game, const std::vector<std::int64_t>& games, const at::Tensor& masks);

// Student's t beyond which one twentieth lies, on both sides together.
double student_quantile(double freedom);

// Nodes and weights on (0, 1] of Gauss-Radau's rule with the end point: exact for polynomials of degree 2n - 2.
struct QuadratureRule {
  std::vector<double> nodes;  // ascending, the last one 1
  std::vector<double> weights;
};
QuadratureRule radau_rule(std::int64_t n);

}  // namespace galvani
