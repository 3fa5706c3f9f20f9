// Mahalanobis-distance surprise adequacy.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "coverage/surprise.h"

namespace galvani {
namespace {

struct Normal {
  std::vector<double> mean;
  std::vector<double> lower;  // Cholesky factor of the covariance, row by row
};

class MahalanobisSurprise : public SurpriseScore {
 public:
  explicit MahalanobisSurprise(const Reference& reference)
      : SurpriseScore(reference.block()), normals_(static_cast<std::size_t>(reference.classes())) {
    for (std::int64_t label = 0; label < reference.classes(); ++label) {
      std::int64_t n = reference.count(label);
      if (n < 2) {
        notes_.push_back(fmt::format("class {} has {} training traces: its inputs get no score", label, n));
        continue;
      }
      at::Tensor rows = reference.of_class(label).to(at::kDouble);
      at::Tensor mean = rows.mean(0);
      at::Tensor centred = rows - mean;
      double ridge = 0;
      at::Tensor lower =
          factor_covariance(at::mm(centred.t(), centred) / static_cast<double>(n - 1), ridge).contiguous();
      if (ridge > 0)
        notes_.push_back(
            fmt::format("class {}: the covariance of its {} traces is singular, ridge {:.3g}", label, n, ridge));
      Normal& normal = normals_[static_cast<std::size_t>(label)];
      normal.mean = {mean.data_ptr<double>(), mean.data_ptr<double>() + mean.numel()};
      normal.lower = {lower.data_ptr<double>(), lower.data_ptr<double>() + lower.numel()};
    }
  }

  bool exact() const override { return true; }

 private:
  void run(const at::Tensor& traces, std::int64_t label, double* out) const override {
    for (std::int64_t i = 0; i < traces.size(0); ++i)
      out[i] = run_alone(traces.data_ptr<float>() + i * block().count, label);
  }

  // |L⁻¹(t - μ)|, by forward substitution.
  double run_alone(const float* trace, std::int64_t label) const override {
    const Normal& normal = normals_[static_cast<std::size_t>(label)];
    if (normal.mean.empty()) return std::numeric_limits<double>::quiet_NaN();
    std::size_t d = normal.mean.size();
    thread_local std::vector<double> z;
    z.resize(d);
    double sum = 0;
    for (std::size_t j = 0; j < d; ++j) {
      const double* row = normal.lower.data() + j * d;
      double value = trace[j] - normal.mean[j];
      for (std::size_t k = 0; k < j; ++k) value -= row[k] * z[k];
      z[j] = value / row[j];
      sum += z[j] * z[j];
    }
    return std::sqrt(sum);
  }

  std::vector<Normal> normals_;  // by class; without a mean where there is none
};

}  // namespace

std::unique_ptr<SurpriseScore> make_mdsa(const Reference& reference) {
  return std::make_unique<MahalanobisSurprise>(reference);
}

}  // namespace galvani
