// The three surprise scores, by the reference traces they are made from.
#pragma once

#include <memory>

#include "coverage/reference.h"
#include "galvani/coverage/surprise.h"

namespace galvani {

// DSA (Kim et al.): distance to the nearest trace of the predicted class, over the distance from there to the nearest
// of any other. `from_input` measures the second one from the input instead.
std::unique_ptr<SurpriseScore> make_dsa(const Reference& reference, bool from_input);

struct DensityOptions {
  double min_variance = 1e-5;  // features that vary less within classes are left out
  double bandwidth = 0;        // 0: Scott's rule
};
// LSA (Kim et al.): -log of the Gaussian kernel density of the predicted class's traces.
std::unique_ptr<SurpriseScore> make_lsa(const Reference& reference, const DensityOptions& options);

// MDSA (Kim et al. 2020): Mahalanobis distance to the predicted class.
std::unique_ptr<SurpriseScore> make_mdsa(const Reference& reference);

// The lower Cholesky factor of a covariance, [d, d] double. If it is singular the smallest ridge that helps, in powers
// of ten times the mean variance, is added to its diagonal and returned in `ridge`.
at::Tensor factor_covariance(const at::Tensor& covariance, double& ridge);

}  // namespace galvani
