// Likelihood-based surprise adequacy.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "coverage/surprise.h"

namespace galvani {
namespace {

constexpr double kLogTwoPi = 1.8378770664093454835606594728112;
constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

// Variance of each feature around its class's mean, over all classes: [width] double.
at::Tensor variance_within_classes(const Reference& reference) {
  at::Tensor sum = at::zeros({reference.block().count}, at::kDouble);
  std::int64_t n = 0;
  for (std::int64_t label = 0; label < reference.classes(); ++label) {
    if (reference.count(label) < 2) continue;
    at::Tensor rows = reference.of_class(label).to(at::kDouble);
    sum += (rows - rows.mean(0)).square().sum(0);
    n += reference.count(label) - 1;
  }
  return n > 0 ? sum / static_cast<double>(n) : sum;
}

// A class's kernels in coordinates in which each is the standard normal.
struct Density {
  at::Tensor mean;        // [features] double
  at::Tensor whitener;    // [features, features]: (x - mean) · whitener
  at::Tensor points;      // [n, features] double, whitened
  at::Tensor half_norms;  // [n]
  double log_constant;    // log of what the sum of kernels is divided by
};

class LikelihoodSurprise : public SurpriseScore {
 public:
  LikelihoodSurprise(const Reference& reference, const DensityOptions& options)
      : SurpriseScore(reference.block()), densities_(static_cast<std::size_t>(reference.classes())) {
    features_ = (variance_within_classes(reference) >= options.min_variance).nonzero().flatten();
    std::int64_t left_out = reference.block().count - features_.numel();
    if (left_out > 0)
      notes_.push_back(fmt::format("{} of {} features of {} vary less than {} and are left out", left_out,
                                   reference.block().count, reference.block().tap, options.min_variance));
    for (std::int64_t label = 0; label < reference.classes(); ++label) add_class(reference, label, options.bandwidth);
  }

  bool exact() const override { return false; }

 private:
  void add_class(const Reference& reference, std::int64_t label, double bandwidth) {
    std::int64_t n = reference.count(label);
    std::int64_t d = features_.numel();
    if (n < 2 || d == 0) {
      notes_.push_back(fmt::format("class {} has {} training traces: its inputs get no score", label, n));
      return;
    }
    Density density;
    at::Tensor rows = reference.of_class(label).index_select(1, features_).to(at::kDouble);
    density.mean = rows.mean(0);
    at::Tensor centred = rows - density.mean;
    at::Tensor covariance = at::mm(centred.t(), centred) / static_cast<double>(n - 1);
    double factor = bandwidth > 0 ? bandwidth : std::pow(static_cast<double>(n), -1.0 / static_cast<double>(d + 4));
    double ridge = 0;
    at::Tensor lower = factor_covariance(covariance, ridge) * factor;
    if (ridge > 0)
      notes_.push_back(
          fmt::format("class {}: the covariance of its {} traces is singular, ridge {:.3g}", label, n, ridge));
    at::Tensor identity = at::eye(d, at::kDouble);
    density.whitener = at::linalg_solve_triangular(lower, identity, /*upper=*/false).t().contiguous();
    density.points = at::mm(centred, density.whitener);
    density.half_norms = density.points.square().sum(1) * 0.5;
    density.log_constant = std::log(static_cast<double>(n)) + 0.5 * static_cast<double>(d) * kLogTwoPi +
                           lower.diagonal().log().sum().item<double>();
    densities_[static_cast<std::size_t>(label)] = std::move(density);
  }

  at::Tensor whitened(const at::Tensor& traces, const Density& density) const {
    return at::mm(traces.index_select(1, features_).to(at::kDouble) - density.mean, density.whitener);
  }

  void run(const at::Tensor& traces, std::int64_t label, double* out) const override {
    const auto& density = densities_[static_cast<std::size_t>(label)];
    if (!density) return;
    at::Tensor x = whitened(traces, *density);
    at::Tensor own = x.square().sum(1) * 0.5;
    // log of a sum of exponentials, over blocks of points small enough to stay in the cache.
    at::Tensor largest = at::full({x.size(0), 1}, -std::numeric_limits<double>::infinity(), at::kDouble);
    at::Tensor sum = at::zeros({x.size(0), 1}, at::kDouble);
    constexpr std::int64_t kBlock = 512;
    for (std::int64_t first = 0; first < density->points.size(0); first += kBlock) {
      std::int64_t count = std::min(kBlock, density->points.size(0) - first);
      // -½|x-p|² = x·p - ½|x|² - ½|p|²
      at::Tensor exponents = at::mm(x, density->points.narrow(0, first, count).t());
      exponents.sub_(density->half_norms.narrow(0, first, count));
      at::Tensor now = at::maximum(largest, exponents.amax(1, /*keepdim=*/true));
      sum.mul_((largest - now).exp_()).add_(exponents.sub_(now).exp_().sum(1, /*keepdim=*/true));
      largest = now;
    }
    at::Tensor score = own.unsqueeze(1) - largest - sum.log() + density->log_constant;
    std::copy_n(score.data_ptr<double>(), x.size(0), out);
  }

  double run_alone(const float* trace, std::int64_t label) const override {
    const auto& density = densities_[static_cast<std::size_t>(label)];
    if (!density) return kNoScore;
    std::int64_t d = features_.numel();
    std::vector<double> x(static_cast<std::size_t>(d), 0.0);
    for (std::int64_t j = 0; j < d; ++j) {
      double centred = trace[features_.data_ptr<std::int64_t>()[j]] - density->mean.data_ptr<double>()[j];
      for (std::int64_t k = 0; k < d; ++k)
        x[static_cast<std::size_t>(k)] += centred * density->whitener.data_ptr<double>()[j * d + k];
    }
    std::vector<double> exponents;
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < density->points.size(0); ++i) {
      const double* point = density->points.data_ptr<double>() + i * d;
      double sum = 0;
      for (std::int64_t k = 0; k < d; ++k) {
        double difference = x[static_cast<std::size_t>(k)] - point[k];
        sum += difference * difference;
      }
      exponents.push_back(-0.5 * sum);
      largest = std::max(largest, exponents.back());
    }
    double sum = 0;
    for (double exponent : exponents) sum += std::exp(exponent - largest);
    return density->log_constant - largest - std::log(sum);
  }

  at::Tensor features_;  // indices of the features that are kept
  std::vector<std::optional<Density>> densities_;
};

}  // namespace

std::unique_ptr<SurpriseScore> make_lsa(const Reference& reference, const DensityOptions& options) {
  return std::make_unique<LikelihoodSurprise>(reference, options);
}

}  // namespace galvani
