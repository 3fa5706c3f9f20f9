// ATS: which outputs of the network have not been seen yet.
#pragma once

#include <cstdint>
#include <vector>

namespace galvani {

// An order of outputs, [n, classes] probabilities, by the length each newly covers on the edges of the simplex: for the
// predicted class i and every pair (p, q) of others, the output is brought onto the plane of their three vertices, and
// the line from vertex i through it meets the edge pq, where an interval around that point is covered. Again and again
// the output that covers most is taken, of equal ones the first; then those that cover nothing new, by gini; outputs
// above 0.99 come last. `lengths` [n]: what each covered when it was taken. Of more than `most` other classes the pairs
// of the most probable ones count.
std::vector<std::int64_t> ats_order(const float* probabilities, std::int64_t n, std::int64_t classes, std::int64_t most,
                                    std::vector<double>& lengths);

}  // namespace galvani
