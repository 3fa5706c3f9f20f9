// How sure the model is of its mistakes.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "galvani/model/evaluate.h"
#include "quality/builtin.h"

namespace galvani {
namespace {

// One number of a row of probabilities. A test whose scores are not finite has none.
class ConfidenceMetric : public Metric {
 public:
  using Of = double (*)(const float* probabilities, std::int64_t classes, std::int64_t verdict, std::int64_t label);
  explicit ConfidenceMetric(Of of) : of_(of) {}
  MetricTraits traits() const override { return {MetricReads::scores}; }

 private:
  std::vector<double> run(const TestBatch& batch, Network*) const override {
    std::vector<double> result;
    at::Tensor all = batch.probabilities.contiguous();
    std::int64_t classes = all.size(1);
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      std::int64_t verdict = batch.verdicts.data_ptr<std::int64_t>()[i];
      std::int64_t label = batch.labels.data_ptr<std::int64_t>()[i];
      result.push_back(verdict == kNotANumber ? std::numeric_limits<double>::quiet_NaN()
                                              : of_(all.data_ptr<float>() + i * classes, classes, verdict, label));
    }
    return result;
  }

  Of of_;
};

double of_verdict(const float* p, std::int64_t, std::int64_t verdict, std::int64_t) {
  return p[verdict];
}

double of_label(const float* p, std::int64_t, std::int64_t, std::int64_t label) {
  return p[label];
}

double lead_of_verdict(const float* p, std::int64_t classes, std::int64_t verdict, std::int64_t) {
  double next = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    if (c != verdict) next = std::max(next, static_cast<double>(p[c]));
  }
  return p[verdict] - next;
}

MetricEntry confidence_entry(const char* name, const char* help, ConfidenceMetric::Of of) {
  return {name, help, {}, [of](const Options&) { return std::make_unique<ConfidenceMetric>(of); }};
}

}  // namespace

MetricEntry acac_entry() {
  return confidence_entry("acac", "confidence in the wrong class", of_verdict);
}

MetricEntry actc_entry() {
  return confidence_entry("actc", "confidence left for the true class", of_label);
}

MetricEntry nte_entry() {
  return confidence_entry("nte", "lead of the wrong class over the next one", lead_of_verdict);
}

}  // namespace galvani
