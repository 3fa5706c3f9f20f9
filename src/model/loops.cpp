#include "model/loops.h"

// The passes of the next loop do not depend on each other.
#ifdef __clang__
#define GALVANI_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define GALVANI_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace galvani::loops {
namespace {

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

template <class Pixel>
[[gnu::always_inline]] inline void scale_each(const Pixel* in, float* out, std::int64_t count, float scale,
                                              float shift) {
  GALVANI_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]) * scale + shift;
}

template <class Pixel>
[[gnu::target("avx2")]] void scale_each_wide(const Pixel* in, float* out, std::int64_t count, float scale,
                                             float shift) {
  scale_each(in, out, count, scale, shift);
}

// NaN stays NaN in all of them.
struct Identity {
  float operator()(float y) const { return y; }
};
struct Relu {
  float operator()(float y) const { return y < 0 ? 0.0F : y; }
};
struct Leaky {
  float slope;
  float operator()(float y) const { return y < 0 ? y * slope : y; }
};
struct Clip {
  float low, high;
  float operator()(float y) const {
    y = y < low ? low : y;
    return y > high ? high : y;
  }
};

template <class Activation>
[[gnu::always_inline]] inline void normalize_each(const Rows& rows, Activation activation) {
  const float* scale = rows.scale;
  const float* shift = rows.shift;
  std::int64_t channels = rows.channels;
  for (std::int64_t pixel = 0; pixel < rows.pixels; ++pixel) {
    const float* x = rows.x + pixel * channels;
    float* result = rows.result + pixel * channels;
    if (rows.sum == nullptr) {
      GALVANI_INDEPENDENT
      for (std::int64_t c = 0; c < channels; ++c) result[c] = activation(x[c] * scale[c] + shift[c]);
    } else {
      const float* sum = rows.sum + pixel * channels;
      GALVANI_INDEPENDENT
      for (std::int64_t c = 0; c < channels; ++c) result[c] = activation(x[c] * scale[c] + shift[c] + sum[c]);
    }
  }
}

template <class Activation>
[[gnu::target("avx2")]] void normalize_wide(const Rows& rows, Activation activation) {
  normalize_each(rows, activation);
}

template <class Activation>
void normalize_with(const Rows& rows, Activation activation) {
  has_avx2() ? normalize_wide(rows, activation) : normalize_each(rows, activation);
}

}  // namespace

void scale_pixels(const std::uint8_t* in, float* out, std::int64_t count, float scale, float shift) {
  has_avx2() ? scale_each_wide(in, out, count, scale, shift) : scale_each(in, out, count, scale, shift);
}

void scale_pixels(const std::int16_t* in, float* out, std::int64_t count, float scale, float shift) {
  has_avx2() ? scale_each_wide(in, out, count, scale, shift) : scale_each(in, out, count, scale, shift);
}

void scale_pixels(const float* in, float* out, std::int64_t count, float scale, float shift) {
  has_avx2() ? scale_each_wide(in, out, count, scale, shift) : scale_each(in, out, count, scale, shift);
}

void normalize(const Rows& rows) {
  normalize_with(rows, Identity());
}

void normalize_relu(const Rows& rows, float slope) {
  slope == 0 ? normalize_with(rows, Relu()) : normalize_with(rows, Leaky{slope});
}

void normalize_clip(const Rows& rows, float low, float high) {
  normalize_with(rows, Clip{low, high});
}

}  // namespace galvani::loops
