// What an input looks like: an image as it is, a sound as its waveform above its spectrogram.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "galvani/data/sample.h"

namespace galvani {

struct PictureSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

// Of a sound's picture; that of an image is its own.
PictureSize picture_size(const SampleType& type);

// [C, H, W] uint8 of a sample of that type. Of a sound [3, H, W]: the loudest and the softest sample at every moment,
// and below it, low frequencies at the bottom, 80 dB from black to white.
at::Tensor picture_of(const at::Tensor& sample, const SampleType& type);

}  // namespace galvani
