// When it is heard: time-shift, time-mask, echo.
#include <vector>

#include "galvani/base/rng.h"
#include "mutate/audio/samples.h"
#include "mutate/families.h"

namespace galvani::mutate {
namespace {

class TimeShift : public SoundMutator {
 public:
  TimeShift() : SoundMutator(/*affine=*/true) {}

 private:
  void run(const double* v, const SoundShape& shape, const std::int16_t* in, std::int16_t* out) const override {
    auto length = static_cast<std::int64_t>(shape.length);
    auto later = static_cast<std::int64_t>(std::nearbyint(v[0] * shape.rate));
    for (std::size_t c = 0; c < shape.channels; ++c, in += length, out += length) {
      for (std::int64_t i = 0; i < length; ++i) {
        std::int64_t from = i - later;
        out[i] = from >= 0 && from < length ? in[from] : std::int16_t{0};
      }
    }
  }
};

class TimeMask : public SoundMutator {
  void run(const double* v, const SoundShape& shape, const std::int16_t* in, std::int16_t* out) const override {
    std::copy(in, in + shape.channels * shape.length, out);
    auto silent = static_cast<std::size_t>(std::nearbyint(v[0] * static_cast<double>(shape.length)));
    std::size_t first = Rng(static_cast<std::uint64_t>(v[1])).below(shape.length - silent + 1);
    for (std::size_t c = 0; c < shape.channels; ++c)
      std::fill_n(out + c * shape.length + first, silent, std::int16_t{0});
  }
};

class Echo : public SoundMutator {
  void run(const double* v, const SoundShape& shape, const std::int16_t* in, std::int16_t* out) const override {
    auto delay = std::max<std::size_t>(1, static_cast<std::size_t>(std::nearbyint(v[0] * shape.rate)));
    std::vector<double> heard(shape.length);
    for (std::size_t c = 0; c < shape.channels; ++c, in += shape.length, out += shape.length) {
      for (std::size_t i = 0; i < shape.length; ++i) {
        heard[i] = in[i] + (i >= delay ? v[1] * heard[i - delay] : 0);
        out[i] = to_sample(heard[i]);
      }
    }
  }
};

}  // namespace

Made make_time_shift(const Options&, const MutationContext&) {
  return std::make_unique<TimeShift>();
}
Made make_time_mask(const Options&, const MutationContext&) {
  return std::make_unique<TimeMask>();
}
Made make_echo(const Options&, const MutationContext&) {
  return std::make_unique<Echo>();
}

}  // namespace galvani::mutate
