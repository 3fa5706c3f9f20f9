// Average similarity of deep features: whether a network still sees in a test what it saw in the original (CAGFuzz).
#include <ATen/ATen.h>

#include <limits>
#include <memory>

#include "galvani/trace/deep_features.h"
#include "quality/builtin.h"

namespace galvani {
namespace {

class FeatureSimilarity : public Metric {
 public:
  explicit FeatureSimilarity(const Options& options) : layer_(options.text("layer")) {
    const std::string& file = options.text("features");
    if (!file.empty()) reference_ = Network::load(file, {});
  }
  MetricTraits traits() const override { return {MetricReads::network, false, false}; }

 private:
  std::vector<double> run(const TestBatch& batch, Network* network) const override {
    Network& judge = reference_ ? *reference_ : *network;
    // A model that cannot be looked into is no mistake of who asks for all metrics.
    if (judge.taps().empty())
      return std::vector<double>(static_cast<std::size_t>(batch.size()), std::numeric_limits<double>::quiet_NaN());
    judge.read_as_images(batch.type.shape);
    check_fits(judge, batch.type.shape, "the tests");
    FeatureNeed need = feature_of(judge, layer_);
    at::Tensor alike =
        cosines(deep_features(judge, need, batch.tests), deep_features(judge, need, batch.originals)).to(at::kDouble);
    return {alike.data_ptr<double>(), alike.data_ptr<double>() + alike.numel()};
  }

  std::unique_ptr<Network> reference_;  // null: the model itself
  std::string layer_;
};

}  // namespace

MetricEntry afs_entry() {
  return {"afs",
          "cosine between deep features of test and original, at most 1",
          {{"features", std::string(), "network whose features they are (default: the model's own)", {}, {}, {}},
           {"layer", std::string("penultimate"), "penultimate, encoder, or the name of a tap", {}, {}, {}}},
          [](const Options& options) { return std::make_unique<FeatureSimilarity>(options); }};
}

}  // namespace galvani
