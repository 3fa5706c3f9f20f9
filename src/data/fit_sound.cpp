#include "fit_sound.h"

#ifdef GALVANI_SAMPLERATE
#include <samplerate.h>
#endif

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"

namespace galvani {
namespace {

constexpr std::int64_t kFilterReach = 512;  // samples beyond the end that the resampling filter looks at, and more

// One channel of `sound` as `target` wants it: its own, the only one, or the mean of all.
std::vector<float> channel_of(const Sound& sound, const SampleType& target, std::int64_t channel) {
  auto length = static_cast<std::size_t>(sound.length);
  std::vector<float> result(length);
  bool mix = target.shape[0] == 1 && sound.channels > 1;
  std::int64_t first = mix ? 0 : sound.channels == 1 ? 0 : channel;
  std::int64_t last = mix ? sound.channels - 1 : first;
  for (std::int64_t c = first; c <= last; ++c) {
    const std::int16_t* samples = sound.samples.data() + static_cast<std::size_t>(c) * length;
    for (std::size_t i = 0; i < length; ++i) result[i] += static_cast<float>(samples[i]);
  }
  auto parts = static_cast<float>(last - first + 1);
  for (float& value : result) value /= parts;
  return result;
}

}  // namespace

std::int64_t samples_needed(const SampleType& target, std::int64_t rate) {
  if (rate == target.rate) return target.shape[1];
  double needed = static_cast<double>(target.shape[1]) * static_cast<double>(rate) / static_cast<double>(target.rate);
  return static_cast<std::int64_t>(std::ceil(needed)) + kFilterReach;
}

#ifdef GALVANI_SAMPLERATE

std::vector<float> resampled(const std::vector<float>& samples, std::int64_t from, std::int64_t to,
                             const std::string& what) {
  double ratio = static_cast<double>(to) / static_cast<double>(from);
  if (src_is_valid_ratio(ratio) == 0) bad_input("{}: {} Hz cannot be made {} Hz", what, from, to);
  std::vector<float> result(static_cast<std::size_t>(std::ceil(static_cast<double>(samples.size()) * ratio)) + 1);
  SRC_DATA work{};
  work.data_in = samples.data();
  work.data_out = result.data();
  work.input_frames = static_cast<long>(samples.size());
  work.output_frames = static_cast<long>(result.size());
  work.src_ratio = ratio;
  if (int code = src_simple(&work, SRC_SINC_MEDIUM_QUALITY, 1); code != 0)
    fail(ErrorCode::internal, "{}: cannot be resampled: {}", what, src_strerror(code));
  result.resize(static_cast<std::size_t>(work.output_frames_gen));
  return result;
}

#else

std::vector<float> resampled(const std::vector<float>&, std::int64_t from, std::int64_t to, const std::string& what) {
  fail(ErrorCode::environment,
       "{}: is of {} Hz, and {} Hz are wanted; this build cannot resample: install libsamplerate0-dev and build again",
       what, from, to);
}

#endif

void fit_sound(const Sound& sound, const SampleType& target, std::int16_t* out, const std::string& what) {
  if (sound.channels != target.shape[0] && sound.channels != 1 && target.shape[0] != 1)
    bad_input("{}: has {} channels, but {} are wanted", what, sound.channels, target.shape[0]);
  auto wanted = static_cast<std::size_t>(target.shape[1]);
  for (std::int64_t c = 0; c < target.shape[0]; ++c) {
    std::vector<float> samples = channel_of(sound, target, c);
    if (sound.rate != target.rate) samples = resampled(samples, sound.rate, target.rate, what);
    samples.resize(wanted, 0.0F);
    std::int16_t* channel = out + static_cast<std::size_t>(c) * wanted;
    for (std::size_t i = 0; i < wanted; ++i)
      channel[i] = static_cast<std::int16_t>(std::lrint(std::clamp(samples[i], -32768.0F, 32767.0F)));
  }
}

}  // namespace galvani
