// How well a neuron's activity tells some images from the others.
#pragma once

#include <cstdint>
#include <vector>

namespace galvani {

// The share of pairs (inside, outside) in which the one inside has the larger value, equal ones counting half, and a
// one-sided p of as large a share by chance (Mann and Whitney's test, normal approximation with ties).
struct Separation {
  double auroc = 0.5;
  double p = 1;
};
// `order`: indices of all values, ascending by value. `inside` is a mark each.
Separation separation(const std::vector<float>& values, const std::vector<std::int64_t>& order,
                      const std::vector<char>& inside);
std::vector<std::int64_t> ascending(const std::vector<float>& values);

// Of the images inside and as many of the largest values: the share that both have in common (intersection over union).
double matched_overlap(const std::vector<std::int64_t>& order, const std::vector<char>& inside);
// What that is by chance, if so large a share is inside.
double chance_overlap(double share);

// One-sided p of a standard normal deviate.
double upper_tail(double z);

}  // namespace galvani
