// Average structural similarity.
#include "galvani/data/similarity.h"

#include "quality/builtin.h"
#include "quality/each_test.h"

namespace galvani {
namespace {

class AverageSimilarity : public Metric {
 public:
  MetricTraits traits() const override { return {MetricReads::pixels, false, true}; }

 private:
  std::vector<double> run(const TestBatch& batch, Network*) const override {
    std::int64_t channels = batch.type.shape[0], height = batch.type.shape[1], width = batch.type.shape[2];
    return each_test_as<std::uint8_t>(batch, [&](const std::uint8_t* test, const std::uint8_t* original) {
      return structural_similarity(test, original, channels, height, width);
    });
  }
};

}  // namespace

MetricEntry ass_entry() {
  return {"ass", "structural similarity to the original (SSIM), at most 1", {}, [](const Options&) {
            return std::make_unique<AverageSimilarity>();
          }};
}

}  // namespace galvani
