// Average L_p distortion: how large the change is, in units of the original.
#include <algorithm>
#include <cmath>
#include <limits>

#include "quality/builtin.h"
#include "quality/each_test.h"

namespace galvani {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

enum class Distortion { changed, euclidean, largest };

class AverageDistortion : public Metric {
 public:
  explicit AverageDistortion(Distortion kind) : kind_(kind) {}
  MetricTraits traits() const override { return {}; }

 private:
  std::vector<double> run(const TestBatch& batch, Network*) const override {
    std::size_t values = batch.type.values();
    std::size_t places = values / static_cast<std::size_t>(batch.type.shape[0]);
    return each_test(batch, [=, kind = kind_](const auto* test, const auto* original) {
      switch (kind) {
        case Distortion::changed:
          return changed_share(test, original, values, places);
        case Distortion::euclidean:
          return euclidean_ratio(test, original, values);
        case Distortion::largest:
          return largest_ratio(test, original, values);
      }
      return kNothing;
    });
  }

  // A pixel is a place: it changed if one of its channels did.
  template <class T>
  static double changed_share(const T* test, const T* original, std::size_t values, std::size_t places) {
    std::size_t changed = 0;
    for (std::size_t place = 0; place < places; ++place) {
      bool differs = false;
      for (std::size_t i = place; i < values; i += places) differs = differs || test[i] != original[i];
      changed += differs ? 1 : 0;
    }
    return static_cast<double>(changed) / static_cast<double>(places);
  }

  // Differences of bytes are no bytes: they are taken in a wider type.
  template <class T>
  static double euclidean_ratio(const T* test, const T* original, std::size_t values) {
    double of_change = 0, of_original = 0;
    for (std::size_t i = 0; i < values; ++i) {
      double change = static_cast<double>(test[i]) - original[i];
      of_change += change * change;
      of_original += static_cast<double>(original[i]) * original[i];
    }
    return of_original > 0 ? std::sqrt(of_change / of_original) : kNothing;
  }

  template <class T>
  static double largest_ratio(const T* test, const T* original, std::size_t values) {
    int of_change = 0, of_original = 0;
    for (std::size_t i = 0; i < values; ++i) {
      of_change = std::max(of_change, std::abs(static_cast<int>(test[i]) - original[i]));
      of_original = std::max(of_original, std::abs(static_cast<int>(original[i])));
    }
    return of_original > 0 ? static_cast<double>(of_change) / of_original : kNothing;
  }

  Distortion kind_;
};

MetricEntry distortion_entry(const char* name, const char* help, Distortion kind) {
  return {name, help, {}, [kind](const Options&) { return std::make_unique<AverageDistortion>(kind); }};
}

}  // namespace

MetricEntry ald0_entry() {
  return distortion_entry("ald0", "share of the pixels that were changed", Distortion::changed);
}

MetricEntry ald2_entry() {
  return distortion_entry("ald2", "length of the change, that of the original being 1", Distortion::euclidean);
}

MetricEntry aldinf_entry() {
  return distortion_entry("aldinf", "largest change, the original's largest value being 1", Distortion::largest);
}

}  // namespace galvani
