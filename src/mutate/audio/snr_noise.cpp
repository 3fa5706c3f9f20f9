// Noise at a signal-to-noise ratio.
#include <vector>

#include "galvani/base/rng.h"
#include "mutate/audio/samples.h"
#include "mutate/families.h"

namespace galvani::mutate {
namespace {

// White noise becomes pink, -3 dB an octave, by Paul Kellet's filter of three poles.
void make_pink(std::vector<float>& noise) {
  float a = 0, b = 0, c = 0;
  for (float& value : noise) {
    a = 0.99765F * a + value * 0.0990460F;
    b = 0.96300F * b + value * 0.2965164F;
    c = 0.57000F * c + value * 1.0526913F;
    value = a + b + c + value * 0.1848F;
  }
}

class SnrNoise : public SoundMutator {
  void run(const double* v, const SoundShape& shape, const std::int16_t* in, std::int16_t* out) const override {
    std::size_t n = shape.channels * shape.length;
    std::vector<float> noise(n);
    Rng(static_cast<std::uint64_t>(v[2])).fill_normal(noise.data(), n);
    if (v[1] == 1) make_pink(noise);
    double signal_power = 0, noise_power = 0;
    for (std::size_t i = 0; i < n; ++i) {
      signal_power += static_cast<double>(in[i]) * in[i];
      noise_power += static_cast<double>(noise[i]) * noise[i];
    }
    double factor = noise_power > 0 ? std::sqrt(signal_power / noise_power / std::pow(10, v[0] / 10)) : 0;
    for (std::size_t i = 0; i < n; ++i) out[i] = to_sample(in[i] + factor * static_cast<double>(noise[i]));
  }
};

}  // namespace

Made make_snr_noise(const Options&, const MutationContext&) {
  return std::make_unique<SnrNoise>();
}

}  // namespace galvani::mutate
