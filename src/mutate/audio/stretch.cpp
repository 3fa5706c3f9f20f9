// Speed and pitch, each without the other, by the Rubber Band library.
#ifdef GALVANI_RUBBERBAND
#include <rubberband/rubberband-c.h>
#endif

#include <memory>
#include <vector>

#include "mutate/audio/samples.h"
#include "mutate/families.h"

namespace galvani::mutate {
namespace {

#ifdef GALVANI_RUBBERBAND

constexpr bool kHasRubberBand = true;
// The library chooses its windows by the rate and does not come to an end on rates that no sound has, nor on a sound
// that is shorter than a window.
constexpr double kLeastRate = 8000;
constexpr double kMostRate = 192000;
constexpr std::size_t kShortest = 1024;

// One channel; the result is cut or followed by silence to the same length.
void stretch_channel(const std::int16_t* in, std::size_t length, double rate, double duration, double pitch,
                     std::int16_t* out) {
  if (length < kShortest) {
    std::copy(in, in + length, out);
    return;
  }
  rate = std::clamp(rate, kLeastRate, kMostRate);
  using Stretcher = std::unique_ptr<RubberBandState_, void (*)(RubberBandState)>;
  Stretcher stretcher(rubberband_new(static_cast<unsigned>(rate), 1,
                                     RubberBandOptionProcessOffline | RubberBandOptionThreadingNever, duration, pitch),
                      rubberband_delete);
  auto n = static_cast<unsigned>(length);
  std::vector<float> samples(length);
  for (std::size_t i = 0; i < length; ++i) samples[i] = static_cast<float>(in[i]) / 32768;
  const float* channels = samples.data();
  rubberband_set_expected_input_duration(stretcher.get(), n);
  rubberband_set_max_process_size(stretcher.get(), n);
  rubberband_study(stretcher.get(), &channels, n, 1);
  rubberband_process(stretcher.get(), &channels, n, 1);
  std::size_t got = 0;
  std::vector<float> piece(4096);
  float* target = piece.data();
  while (got < length) {
    int ready = rubberband_available(stretcher.get());
    if (ready <= 0) break;
    unsigned taken = rubberband_retrieve(stretcher.get(), &target,
                                         std::min(static_cast<unsigned>(ready), static_cast<unsigned>(piece.size())));
    if (taken == 0) break;
    for (unsigned i = 0; i < taken && got < length; ++i) out[got++] = to_sample(static_cast<double>(piece[i]) * 32768);
  }
  std::fill(out + got, out + length, std::int16_t{0});
}

#else

constexpr bool kHasRubberBand = false;

void stretch_channel(const std::int16_t* in, std::size_t length, double, double, double, std::int16_t* out) {
  std::copy(in, in + length, out);
}

#endif

class Stretch : public SoundMutator {
 public:
  explicit Stretch(bool pitch) : SoundMutator(/*affine=*/true), pitch_(pitch) {}

  std::string missing() const override {
    return kHasRubberBand ? ""
                          : "needs the Rubber Band library, which this build has not: install librubberband-dev "
                            "and build again";
  }

 private:
  void run(const double* v, const SoundShape& shape, const std::int16_t* in, std::int16_t* out) const override {
    double duration = pitch_ ? 1 : v[0];
    double pitch = pitch_ ? std::pow(2, v[0] / 12) : 1;
    if (duration == 1 && pitch == 1) {
      std::copy(in, in + shape.channels * shape.length, out);
      return;
    }
    for (std::size_t c = 0; c < shape.channels; ++c)
      stretch_channel(in + c * shape.length, shape.length, shape.rate, duration, pitch, out + c * shape.length);
  }

  bool pitch_;
};

}  // namespace

Made make_time_stretch(const Options&, const MutationContext&) {
  return std::make_unique<Stretch>(false);
}
Made make_pitch(const Options&, const MutationContext&) {
  return std::make_unique<Stretch>(true);
}

}  // namespace galvani::mutate
