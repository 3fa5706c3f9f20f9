// Filters without delay: low-pass, high-pass, and both one after the other.
#include <algorithm>
#include <vector>

#include "mutate/audio/samples.h"
#include "mutate/families.h"

namespace galvani::mutate {
namespace {

constexpr double kPi = 3.14159265358979323846;

// A Butterworth filter of second order (R. Bristow-Johnson's cookbook), applied in place.
void filter_once(std::vector<double>& sound, double hz, double rate, bool high) {
  double angle = 2 * kPi * std::min(hz, 0.49 * rate) / rate;
  double alpha = std::sin(angle) / std::sqrt(2.0);
  double cosine = std::cos(angle);
  double whole = 1 + alpha;
  double b1 = (high ? -(1 + cosine) : 1 - cosine) / whole;
  double b0 = (high ? -b1 : b1) / 2;
  double a1 = -2 * cosine / whole;
  double a2 = (1 - alpha) / whole;
  double x1 = 0, x2 = 0, y1 = 0, y2 = 0;
  for (double& value : sound) {
    double y = b0 * value + b1 * x1 + b0 * x2 - a1 * y1 - a2 * y2;
    x2 = x1;
    x1 = value;
    y2 = y1;
    y1 = y;
    value = y;
  }
}

void filter_sound(std::vector<double>& sound, double hz, double rate, bool high) {
  // A low-pass above half the rate lets everything through.
  if (!high && hz >= rate / 2) return;
  // Once forwards and once backwards: nothing is delayed, and the slope is of fourth order.
  for (int way = 0; way < 2; ++way) {
    filter_once(sound, hz, rate, high);
    std::reverse(sound.begin(), sound.end());
  }
}

class Filter : public SoundMutator {
 public:
  enum Kind { low_pass, high_pass, band_pass };
  explicit Filter(Kind kind) : kind_(kind) {}

 private:
  void run(const double* v, const SoundShape& shape, const std::int16_t* in, std::int16_t* out) const override {
    for (std::size_t c = 0; c < shape.channels; ++c, in += shape.length, out += shape.length) {
      std::vector<double> sound(in, in + shape.length);
      if (kind_ != low_pass) filter_sound(sound, v[0], shape.rate, true);
      if (kind_ != high_pass)
        filter_sound(sound, kind_ == band_pass ? v[0] * std::exp2(v[1]) : v[0], shape.rate, false);
      for (std::size_t i = 0; i < shape.length; ++i) out[i] = to_sample(sound[i]);
    }
  }

  Kind kind_;
};

}  // namespace

Made make_low_pass(const Options&, const MutationContext&) {
  return std::make_unique<Filter>(Filter::low_pass);
}
Made make_high_pass(const Options&, const MutationContext&) {
  return std::make_unique<Filter>(Filter::high_pass);
}
Made make_band_pass(const Options&, const MutationContext&) {
  return std::make_unique<Filter>(Filter::band_pass);
}

}  // namespace galvani::mutate
