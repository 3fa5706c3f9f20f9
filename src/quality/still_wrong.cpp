// Whether tests still break the model after what happens to images on their way.
#include <ATen/ATen.h>

#include "galvani/base/error.h"
#include "galvani/model/evaluate.h"
#include "quality/builtin.h"
#include "quality/pictures.h"

namespace galvani {
namespace {

class StillWrong : public Metric {
 public:
  MetricTraits traits() const override { return {MetricReads::network, false, true}; }

 private:
  virtual at::Tensor changed(const at::Tensor& images) const = 0;

  std::vector<double> run(const TestBatch& batch, Network* network) const override {
    at::Tensor verdicts = predict(*network, changed(batch.tests)).labels;
    std::vector<double> result;
    for (std::int64_t i = 0; i < batch.size(); ++i)
      result.push_back(verdicts.data_ptr<std::int64_t>()[i] != batch.labels.data_ptr<std::int64_t>()[i] ? 1 : 0);
    return result;
  }
};

class RobustToBlur : public StillWrong {
 public:
  explicit RobustToBlur(const Options& options) : radius_(options.real("radius")) {}

 private:
  at::Tensor changed(const at::Tensor& images) const override { return blurred(images, radius_); }
  double radius_;
};

class RobustToCompression : public StillWrong {
 public:
  explicit RobustToCompression(const Options& options) : quality_(options.integer("quality")) {}

 private:
  at::Tensor changed(const at::Tensor& images) const override {
    if (images.size(1) != 1 && images.size(1) != 3)
      bad_usage("{}: JPEG files have one channel or three, and these images {}", spec(), images.size(1));
    return compressed(images, quality_);
  }
  std::int64_t quality_;
};

}  // namespace

MetricEntry rgb_entry() {
  return {"rgb",
          "share that still breaks the model after a Gaussian blur",
          {{"radius", 0.5, "standard deviation of the blur, in pixels", 0.1, 10, {}}},
          [](const Options& options) { return std::make_unique<RobustToBlur>(options); }};
}

MetricEntry ric_entry() {
  return {"ric",
          "share that still breaks the model after JPEG compression",
          {{"quality", std::int64_t{90}, "of the JPEG file, 1 to 100", 1, 100, {}}},
          [](const Options& options) { return std::make_unique<RobustToCompression>(options); }};
}

}  // namespace galvani
