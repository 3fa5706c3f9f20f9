// How often tests break the model: of all tests, and of the inputs they were made of.
#include <ATen/ATen.h>

#include <limits>

#include "quality/builtin.h"

namespace galvani {
namespace {

class MisclassificationRatio : public Metric {
 public:
  MetricTraits traits() const override { return {MetricReads::pixels, true}; }
  std::optional<Share> counted(const TestCounts& counts) const override {
    return Share{counts.misclassified, counts.tests};
  }

 private:
  std::vector<double> run(const TestBatch& batch, Network*) const override {
    std::vector<double> result;
    for (std::int64_t i = 0; i < batch.size(); ++i)
      result.push_back(batch.verdicts.data_ptr<std::int64_t>()[i] != batch.labels.data_ptr<std::int64_t>()[i] ? 1 : 0);
    return result;
  }
};

// An input that is wrong as it is cannot be attacked.
class AttackSuccessRate : public Metric {
 public:
  MetricTraits traits() const override { return {MetricReads::pixels, true, false, true}; }
  std::optional<Share> counted(const TestCounts& counts) const override {
    return Share{counts.broken, counts.originals};
  }

 private:
  std::vector<double> run(const TestBatch& batch, Network*) const override {
    std::vector<double> result;
    const auto* labels = batch.labels.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      bool right = batch.original_verdicts.data_ptr<std::int64_t>()[i] == labels[i];
      bool wrong = batch.verdicts.data_ptr<std::int64_t>()[i] != labels[i];
      result.push_back(!right ? std::numeric_limits<double>::quiet_NaN() : wrong ? 1 : 0);
    }
    return result;
  }
};

}  // namespace

MetricEntry mr_entry() {
  return {"mr", "share of the tests that the model gets wrong", {}, [](const Options&) {
            return std::make_unique<MisclassificationRatio>();
          }};
}

MetricEntry asr_entry() {
  return {"asr", "share of the inputs it gets right that a test breaks", {}, [](const Options&) {
            return std::make_unique<AttackSuccessRate>();
          }};
}

}  // namespace galvani
