// A diverse choice among the best of a ranking, as SETS makes it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace galvani {

// Added to the diagonal of F Fᵀ, which is singular once there are more rows than features.
inline constexpr double kDiversityRidge = 1e-6;

// How many of the best a diverse choice of `budget` looks at: three times as many, or all.
std::int64_t diverse_reach(std::int64_t budget, std::int64_t pool);

// What scores weigh in a choice: themselves if none is negative, else scaled to 0..1; what could not be scored,
// nothing.
std::vector<double> diversity_weights(const std::vector<double>& scores);

// Shortlist in order of preference are cut into `budget` chunks with a stride: chunk c has c, c + budget, c + 2·budget
// and so on. Of each chunk, one after the other, the one with the largest weight times gain in log det(F Fᵀ) is taken,
// of equal ones the first; gains that differ by rounding alone are equal. F are the features of those taken so far,
// each row of length 1; the gain is scaled to 0..1 over the chunk. features [n, width] float, weights [n] not negative.
// REQUIRES 1 <= budget <= n. Returns indices into the candidates.
std::vector<std::int64_t> choose_diverse(const at::Tensor& features, const std::vector<double>& weights,
                                         std::int64_t budget);

}  // namespace galvani
