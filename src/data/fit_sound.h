// One sound made into an input of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "audio_file.h"
#include "galvani/data/sample.h"

namespace galvani {

// How many samples at `rate` are enough for `target`.
std::int64_t samples_needed(const SampleType& target, std::int64_t rate);

// [target.length] at another rate, by libsamplerate (SRC_SINC_MEDIUM_QUALITY). Error(environment) naming `what` if this
// build has it not.
std::vector<float> resampled(const std::vector<float>& samples, std::int64_t from, std::int64_t to,
                             const std::string& what);

// Writes target.values() samples: channels are averaged to one, or one is repeated; then the rate is changed; then the
// end is cut off, or silence is added. Error(bad_input) naming `what` for channels that cannot be matched.
void fit_sound(const Sound& sound, const SampleType& target, std::int16_t* out, const std::string& what);

}  // namespace galvani
