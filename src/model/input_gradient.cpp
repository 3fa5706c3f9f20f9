#include "model/input_gradient.h"

#include <algorithm>
#include <cstring>

namespace galvani {
namespace {

constexpr std::int64_t kVectors = 2;  // of a row, that are summed up together
constexpr std::int64_t kMostLanes = 16;
constexpr std::int64_t kMostRows = 4;

// Numbers that one instruction works on; at any address.
template <std::int64_t Lanes>
struct Wide;
template <>
struct Wide<4> {
  using Vector = float __attribute__((vector_size(16), aligned(4), may_alias));
};
template <>
struct Wide<8> {
  using Vector = float __attribute__((vector_size(32), aligned(4), may_alias));
};
template <>
struct Wide<16> {
  using Vector = float __attribute__((vector_size(64), aligned(4), may_alias));
};

// Sums that do not wait for each other, as many as registers hold.
constexpr std::int64_t rows_of(std::int64_t channels) {
  return channels == 1 ? kMostRows : channels == 4 ? 1 : 2;
}

// The convolution backwards is one with the kernel turned around, over what came out and a margin of zeros.
template <std::int64_t Lanes, std::int64_t Channels, std::int64_t Rows = rows_of(Channels)>
[[gnu::always_inline]] inline void block(const InputGradient& g, std::int64_t y, std::int64_t x, float* sums) {
  using Vector = typename Wide<Lanes>::Vector;
  static_assert(sizeof(Vector) == Lanes * sizeof(float));
  Vector sum[Channels][Rows][kVectors] = {};
  std::int64_t width = g.padded_width(), plane = g.padded_height() * width, kernel = g.kernel_height * g.kernel_width;
  for (std::int64_t o = 0; o < g.outputs; ++o) {
    const float* weight = g.weight + o * Channels * kernel;
    const float* from = g.padded + o * plane + y * width + x;
    for (std::int64_t ky = 0; ky < g.kernel_height; ++ky) {
      for (std::int64_t kx = 0; kx < g.kernel_width; ++kx) {
        const float* at = from + (g.kernel_height - 1 - ky) * width + (g.kernel_width - 1 - kx);
        for (std::int64_t r = 0; r < Rows; ++r) {
          for (std::int64_t v = 0; v < kVectors; ++v) {
            Vector value = *reinterpret_cast<const Vector*>(at + r * width + v * Lanes);
            for (std::int64_t c = 0; c < Channels; ++c)
              sum[c][r][v] += value * weight[c * kernel + ky * g.kernel_width + kx];
          }
        }
      }
    }
  }
  std::memcpy(sums, sum, sizeof sum);
}

template <std::int64_t Lanes, std::int64_t Channels, std::int64_t Rows = rows_of(Channels)>
[[gnu::always_inline]] inline void all_samples(const InputGradient& g) {
  constexpr std::int64_t kBlock = Lanes * kVectors;
  std::int64_t width = g.padded_width(), plane = g.padded_height() * width;
  std::int64_t top = g.kernel_height - 1 - g.top, left = g.kernel_width - 1 - g.left;
  std::int64_t out_height = g.out_height(), out_width = g.out_width();
  float sums[Channels * Rows * kBlock];
  for (std::int64_t i = 0; i < g.count; ++i) {
    const float* from = g.of_output + i * g.outputs * out_height * out_width;
    for (std::int64_t o = 0; o < g.outputs; ++o) {
      for (std::int64_t y = 0; y < out_height; ++y)
        std::copy_n(from + (o * out_height + y) * out_width, out_width,
                    g.padded + o * plane + (top + y) * width + left);
    }
    float* to = g.of_input + i * Channels * g.height * g.width;
    for (std::int64_t y = 0; y < g.height; y += Rows) {
      for (std::int64_t x = 0; x < g.width; x += kBlock) {
        block<Lanes, Channels>(g, y, x, sums);
        for (std::int64_t c = 0; c < Channels; ++c) {
          for (std::int64_t r = 0; r < std::min(Rows, g.height - y); ++r)
            std::copy_n(sums + (c * Rows + r) * kBlock, std::min(kBlock, g.width - x),
                        to + (c * g.height + y + r) * g.width + x);
        }
      }
    }
  }
}

template <std::int64_t Lanes>
[[gnu::always_inline]] inline void compute_all(const InputGradient& g) {
  switch (g.channels) {
    case 1:
      return all_samples<Lanes, 1>(g);
    case 2:
      return all_samples<Lanes, 2>(g);
    case 3:
      return all_samples<Lanes, 3>(g);
    default:
      return all_samples<Lanes, 4>(g);
  }
}

#ifdef __x86_64__
[[gnu::target("avx512f")]] void compute_wide(const InputGradient& g) {
  compute_all<16>(g);
}
[[gnu::target("avx2,fma")]] void compute_half_wide(const InputGradient& g) {
  compute_all<8>(g);
}
#endif

}  // namespace

std::int64_t InputGradient::padded_height() const {
  return (height + kMostRows - 1) / kMostRows * kMostRows + kernel_height - 1;
}

std::int64_t InputGradient::padded_width() const {
  constexpr std::int64_t kMost = kMostLanes * kVectors;
  return (width + kMost - 1) / kMost * kMost + kernel_width - 1;
}

std::int64_t InputGradient::widest() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return 16;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 8;
#endif
  return 4;
}

void InputGradient::compute(std::int64_t lanes) const {
#ifdef __x86_64__
  if (lanes == 16) return compute_wide(*this);
  if (lanes == 8) return compute_half_wide(*this);
#endif
  compute_all<4>(*this);
}

}  // namespace galvani
