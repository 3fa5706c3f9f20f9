// How loud samples are, and how finely they are told apart: gain, clipping, quantise.
#include <vector>

#include "mutate/audio/samples.h"
#include "mutate/families.h"

namespace galvani::mutate {
namespace {

class Gain : public SoundMutator {
 public:
  Gain() : SoundMutator(/*affine=*/true) {}

 private:
  void run(const double* v, const SoundShape& shape, const std::int16_t* in, std::int16_t* out) const override {
    double factor = std::pow(10, v[0] / 20);
    for (std::size_t i = 0; i < shape.channels * shape.length; ++i) out[i] = to_sample(in[i] * factor);
  }
};

// The limit is the loudness that the given share of all samples reaches.
class Clipping : public SoundMutator {
  void run(const double* v, const SoundShape& shape, const std::int16_t* in, std::int16_t* out) const override {
    std::size_t n = shape.channels * shape.length;
    std::vector<int> loudness(n);
    for (std::size_t i = 0; i < n; ++i) loudness[i] = std::abs(int{in[i]});
    auto rank = static_cast<std::size_t>(v[0] * static_cast<double>(n));
    int limit = 32768;
    if (rank > 0) {
      auto nth = loudness.begin() + static_cast<std::ptrdiff_t>(n - std::min(n, rank));
      std::nth_element(loudness.begin(), nth, loudness.end());
      limit = *nth;
    }
    for (std::size_t i = 0; i < n; ++i) out[i] = to_sample(std::clamp(int{in[i]}, -limit, limit));
  }
};

class Quantise : public SoundMutator {
  void run(const double* v, const SoundShape& shape, const std::int16_t* in, std::int16_t* out) const override {
    constexpr double kMu = 255;  // of ITU-T G.711
    double steps = std::pow(2, v[0] - 1);
    bool linear = v[1] == 0;
    auto rounded = [&](double share) { return std::clamp(std::nearbyint(share * steps), -steps, steps - 1) / steps; };
    for (std::size_t i = 0; i < shape.channels * shape.length; ++i) {
      double share = in[i] / 32768.0;
      if (linear) {
        share = rounded(share);
      } else {
        double level = rounded(std::copysign(std::log1p(kMu * std::abs(share)) / std::log1p(kMu), share));
        share = std::copysign(std::expm1(std::abs(level) * std::log1p(kMu)) / kMu, level);
      }
      out[i] = to_sample(share * 32768);
    }
  }
};

}  // namespace

Made make_gain(const Options&, const MutationContext&) {
  return std::make_unique<Gain>();
}
Made make_clipping(const Options&, const MutationContext&) {
  return std::make_unique<Clipping>();
}
Made make_quantise(const Options&, const MutationContext&) {
  return std::make_unique<Quantise>();
}

}  // namespace galvani::mutate
