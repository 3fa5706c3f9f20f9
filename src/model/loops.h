// Loops over many numbers, compiled apart from everything else so that the compiler makes vector instructions of them.
// The widest registers the processor has are used; the operations and their order, so the bits, are always the same.
#pragma once

#include <cstdint>

namespace galvani::loops {

// out[i] = in[i] · scale + shift
void scale_pixels(const std::uint8_t* in, float* out, std::int64_t count, float scale, float shift);
void scale_pixels(const std::int16_t* in, float* out, std::int64_t count, float scale, float shift);
void scale_pixels(const float* in, float* out, std::int64_t count, float scale, float shift);

// Numbers of channels that lie side by side, pixel by pixel.
struct Rows {
  const float* x;    // [pixels, channels]
  const float* sum;  // the same, or null
  float* result;     // may be x
  std::int64_t pixels, channels;
  const float *scale, *shift;  // [channels]
};
// result = f(x · scale + shift + sum), where f is:
void normalize(const Rows& rows);                    // nothing
void normalize_relu(const Rows& rows, float slope);  // y, or slope · y if negative
void normalize_clip(const Rows& rows, float low, float high);

}  // namespace galvani::loops
