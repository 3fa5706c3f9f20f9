// Ranks of numbers, for the tests that look at nothing else.
#pragma once

#include <vector>

namespace galvani {

// Doubled, so that those of ties are whole numbers, too.
struct Ranks {
  std::vector<int> doubled;
  double ties = 0;  // sum of t³ - t over groups of equal values
};
Ranks ranks_of(const std::vector<double>& values);

}  // namespace galvani
