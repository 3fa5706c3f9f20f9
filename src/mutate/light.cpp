// Contrast and brightness.
#include <numeric>

#include "mutate/families.h"
#include "mutate/tone.h"

namespace galvani::mutate {
namespace {

class Contrast : public ImageMutator {
 public:
  Contrast() : ImageMutator({MutatorGroup::differentiable}) {}

 private:
  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    std::size_t n = shape.bytes();
    double pivot = 0;
    if (v[1] == 1) {
      auto sum = std::accumulate(in, in + n, std::uint64_t{0});
      pivot = static_cast<double>(sum) / static_cast<double>(n);
    }
    map_tones(in, out, n, [&](double value) { return pivot + v[0] * (value - pivot); });
  }
};

class Brightness : public ImageMutator {
 public:
  Brightness() : ImageMutator({MutatorGroup::differentiable, false, 0}) {}

 private:
  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    map_tones(in, out, shape.bytes(), [&](double value) { return v[1] * value + v[0]; });
  }
};

}  // namespace

Made make_contrast(const Options&, const MutationContext&) {
  return std::make_unique<Contrast>();
}
Made make_brightness(const Options&, const MutationContext&) {
  return std::make_unique<Brightness>();
}

}  // namespace galvani::mutate
