// Perturbation sensitivity distance: changes count more where the original is smooth and the eye sees them.
#include <algorithm>
#include <cmath>

#include "quality/builtin.h"
#include "quality/each_test.h"

namespace galvani {
namespace {

constexpr double kFullScale = 255;
constexpr double kLeastDeviation = 1 / kFullScale;  // one grey level: where nothing varies, nothing is divided by 0

// The deviation of the 3x3 values around a place of a plane, on the scale 0..1; at the border, of those that exist.
double deviation_around(const std::uint8_t* plane, std::int64_t height, std::int64_t width, std::int64_t y,
                        std::int64_t x) {
  int count = 0, sum = 0, squares = 0;
  for (std::int64_t v = std::max<std::int64_t>(0, y - 1); v <= std::min(height - 1, y + 1); ++v) {
    for (std::int64_t u = std::max<std::int64_t>(0, x - 1); u <= std::min(width - 1, x + 1); ++u) {
      int value = plane[v * width + u];
      ++count;
      sum += value;
      squares += value * value;
    }
  }
  return std::sqrt(static_cast<double>(count * squares - sum * sum)) / count / kFullScale;
}

class SensitivityDistance : public Metric {
 public:
  MetricTraits traits() const override { return {MetricReads::pixels, false, true}; }

 private:
  std::vector<double> run(const TestBatch& batch, Network*) const override {
    std::int64_t channels = batch.type.shape[0], height = batch.type.shape[1], width = batch.type.shape[2];
    return each_test_as<std::uint8_t>(batch, [=](const std::uint8_t* test, const std::uint8_t* original) {
      double sum = 0;
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::uint8_t* plane = original + c * height * width;
        const std::uint8_t* changed = test + c * height * width;
        for (std::int64_t y = 0; y < height; ++y) {
          for (std::int64_t x = 0; x < width; ++x) {
            int change = std::abs(static_cast<int>(changed[y * width + x]) - plane[y * width + x]);
            if (change == 0) continue;
            sum += change / kFullScale / std::max(deviation_around(plane, height, width, y, x), kLeastDeviation);
          }
        }
      }
      return sum;
    });
  }
};

}  // namespace

MetricEntry psd_entry() {
  return {"psd", "change as the eye sees it: more where the original is smooth", {}, [](const Options&) {
            return std::make_unique<SensitivityDistance>();
          }};
}

}  // namespace galvani
