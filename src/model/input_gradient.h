// The gradient of a convolution with respect to an input of few channels, in steps of one: what libraries, made for
// many channels, are slow at. Compiled apart from everything else, for the widest registers the processor has; as with
// any matrix product, last bits depend on the processor.
#pragma once

#include <cstdint>

namespace galvani {

struct InputGradient {
  static constexpr std::int64_t kMostChannels = 4;

  const float* of_output;  // [count, outputs, out_height, out_width]
  const float* weight;     // [outputs, channels, kernel_height, kernel_width]
  float* of_input;         // [count, channels, height, width]
  std::int64_t count, outputs, channels, height, width, kernel_height, kernel_width;
  std::int64_t top, left;  // padding, on both sides: less than the kernel
  float* padded;           // padded_numbers() zeros

  std::int64_t out_height() const { return height + 2 * top - kernel_height + 1; }
  std::int64_t out_width() const { return width + 2 * left - kernel_width + 1; }
  // One sample's gradient with a margin, in whole blocks.
  std::int64_t padded_height() const;
  std::int64_t padded_width() const;
  std::int64_t padded_numbers() const { return outputs * padded_height() * padded_width(); }

  // Numbers that one instruction of this processor works on: 4, 8 or 16.
  static std::int64_t widest();
  void compute(std::int64_t lanes = widest()) const;
};

}  // namespace galvani
