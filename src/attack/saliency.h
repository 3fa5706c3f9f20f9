// The pair of values that JSMA changes next.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace galvani {

// Papernot et al. 2016, Algorithm 3: the pair p < q of open values with alpha_p + alpha_q > 0 and beta_p + beta_q < 0
// for which -(alpha_p + alpha_q)(beta_p + beta_q) is largest; {-1, -1} if there is none. alpha, beta, open: [n].
class SaliencyPairs {
 public:
  std::pair<std::int64_t, std::int64_t> best(const float* alpha, const float* beta, const char* open, std::int64_t n);

 private:
  std::vector<std::int64_t> order_;  // kept, so that it is not allocated anew for every step
};

}  // namespace galvani
