// An order of inputs by what they cover.
#pragma once

#include <cstdint>
#include <vector>

#include "galvani/coverage/minimise.h"

namespace galvani {

// Additional (CAM): again and again the input that adds most; those that add nothing follow by what they cover. Total
// (CTM): by what they cover. Equal ones that are not decided by this are in an order drawn by the seed. `scores`, one
// for each of `inputs`, become what each added, or covers.
std::vector<std::int64_t> coverage_order(const FeatureTable& table, std::int64_t inputs, bool additional,
                                         std::uint64_t seed, std::vector<double>& scores);

}  // namespace galvani
