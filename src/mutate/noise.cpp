// Pixel change and noise.
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "galvani/base/rng.h"
#include "mutate/families.h"
#include "mutate/tone.h"

namespace galvani::mutate {
namespace {

enum class NoiseKind { gaussian, salt_pepper, shot, speckle };

// The standard normal's quantiles at (i + 1/2) / 2^16: a normal number from 16 random bits.
const std::vector<float>& normal_quantiles() {
  static const std::vector<float> table = [] {
    constexpr std::size_t kHalf = 1 << 15;
    std::vector<float> values(2 * kHalf);
    double z = 0;
    for (std::size_t i = 0; i < kHalf; ++i) {
      double upper = (static_cast<double>(kHalf - i) - 0.5) / (2 * kHalf);
      // Newton's method from the neighbour before it.
      for (int step = 0; step < 4; ++step) {
        double density = std::exp(-z * z / 2) / std::sqrt(2 * 3.14159265358979323846);
        z += (std::erfc(z / std::sqrt(2.0)) / 2 - upper) / density;
      }
      values[kHalf + i] = static_cast<float>(z);
      values[kHalf - 1 - i] = static_cast<float>(-z);
    }
    return values;
  }();
  return table;
}

// A few places get a random colour. Places may coincide, and a colour may be the old one.
class PixelChange : public ImageMutator {
 public:
  PixelChange() : ImageMutator({MutatorGroup::differentiable}) {}

 private:
  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    std::memcpy(out, in, shape.bytes());
    Rng rng(static_cast<std::uint64_t>(v[1]));
    for (auto left = static_cast<std::int64_t>(v[0]); left > 0; --left) {
      std::size_t place = rng.below(shape.plane());
      for (int c = 0; c < shape.channels; ++c, place += shape.plane())
        out[place] = static_cast<std::uint8_t>(rng.below(256));
    }
  }
};

class Noise : public ImageMutator {
 public:
  Noise() : ImageMutator({MutatorGroup::differentiable}) {}

 private:
  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    Rng rng(static_cast<std::uint64_t>(v[3]));
    auto kind = static_cast<NoiseKind>(static_cast<int>(v[1]));
    if (kind == NoiseKind::salt_pepper) {
      add_salt_and_pepper(v[2], rng, shape, in, out);
      return;
    }
    // The deviation at each gray level; sigma is that of white.
    std::array<float, 256> deviation;
    for (std::size_t value = 0; value < deviation.size(); ++value) {
      double share = static_cast<double>(value) / 255;
      double factor = kind == NoiseKind::gaussian ? 1 : kind == NoiseKind::shot ? std::sqrt(share) : share;
      deviation[value] = static_cast<float>(v[0] * factor);
    }
    const std::vector<float>& normal = normal_quantiles();
    std::size_t n = shape.bytes();
    for (std::size_t i = 0; i < n;) {
      std::uint32_t bits = rng.next_u32();
      for (int half = 0; half < 2 && i < n; ++half, ++i, bits >>= 16) {
        float value = static_cast<float>(in[i]) + deviation[in[i]] * normal[bits & 0xffff];
        out[i] = static_cast<std::uint8_t>(std::lrintf(std::min(255.0F, std::max(0.0F, value))));
      }
    }
  }

  static void add_salt_and_pepper(double share, Rng& rng, const ImageShape& shape, const std::uint8_t* in,
                                  std::uint8_t* out) {
    std::memcpy(out, in, shape.bytes());
    auto count = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(shape.plane())));
    for (; count > 0; --count) {
      std::size_t place = rng.below(shape.plane());
      auto colour = static_cast<std::uint8_t>(count % 2 == 0 ? 0 : 255);
      for (int c = 0; c < shape.channels; ++c, place += shape.plane()) out[place] = colour;
    }
  }
};

}  // namespace

Made make_pixel_change(const Options&, const MutationContext&) {
  return std::make_unique<PixelChange>();
}
Made make_noise(const Options&, const MutationContext&) {
  return std::make_unique<Noise>();
}

}  // namespace galvani::mutate
