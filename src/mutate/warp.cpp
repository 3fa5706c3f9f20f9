#include "mutate/warp.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace galvani::mutate {
namespace {

constexpr int kFraction = 16;  // bits of a position behind the point
constexpr double kOne = 1 << kFraction;
constexpr std::int64_t kHalfStep = 1 << (kFraction - 9);  // rounds a position to the eight bits that are used

// Eight bits of the fraction weigh the four neighbours; the weights sum to 2^16.
struct Weights {
  int left_top, right_top, left_bottom, right_bottom;
  Weights(std::int64_t x, std::int64_t y) {
    int right = static_cast<int>(x >> (kFraction - 8)) & 255;
    int bottom = static_cast<int>(y >> (kFraction - 8)) & 255;
    right_bottom = right * bottom;
    right_top = (right << 8) - right_bottom;
    left_bottom = (bottom << 8) - right_bottom;
    left_top = 65536 - right_top - left_bottom - right_bottom;
  }
};

// A pixel whose neighbours may lie outside.
std::uint8_t sample(const std::uint8_t* plane, const ImageShape& shape, std::int64_t x, std::int64_t y) {
  std::int64_t column = x >> kFraction;
  std::int64_t row = y >> kFraction;
  auto at = [&](std::int64_t c, std::int64_t r) -> int {
    return c < 0 || r < 0 || c >= shape.width || r >= shape.height ? 0 : plane[r * shape.width + c];
  };
  Weights w(x, y);
  int sum = w.left_top * at(column, row) + w.right_top * at(column + 1, row) + w.left_bottom * at(column, row + 1) +
            w.right_bottom * at(column + 1, row + 1);
  return static_cast<std::uint8_t>((sum + 32768) >> 16);
}

// Pixels [first, last) of a row, all of whose neighbours are inside.
template <int Channels>
void inner_pixels(const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out, int first, int last,
                  std::int64_t x, std::int64_t y, std::int64_t step_x, std::int64_t step_y) {
  const std::size_t plane = shape.plane();
  const std::ptrdiff_t width = shape.width;
  for (int column = first; column < last; ++column, x += step_x, y += step_y) {
    const std::uint8_t* top = in + (y >> kFraction) * width + (x >> kFraction);
    Weights w(x, y);
    for (int c = 0; c < Channels; ++c, top += plane) {
      int sum =
          w.left_top * top[0] + w.right_top * top[1] + w.left_bottom * top[width] + w.right_bottom * top[width + 1];
      out[static_cast<std::size_t>(c) * plane + static_cast<std::size_t>(column)] =
          static_cast<std::uint8_t>((sum + 32768) >> 16);
    }
  }
}

}  // namespace

Origin about_centre(const ImageShape& shape, double xx, double xy, double yx, double yy) {
  double cx = (shape.width - 1) / 2.0;
  double cy = (shape.height - 1) / 2.0;
  return {xx, xy, cx - xx * cx - xy * cy, yx, yy, cy - yx * cx - yy * cy};
}

void warp(const Origin& origin, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) {
  const std::int64_t step_x = std::llrint(origin.xx * kOne);
  const std::int64_t step_y = std::llrint(origin.yx * kOne);
  const std::int64_t inner_x = static_cast<std::int64_t>(shape.width - 1) << kFraction;
  const std::int64_t inner_y = static_cast<std::int64_t>(shape.height - 1) << kFraction;
  for (int row = 0; row < shape.height; ++row) {
    const std::int64_t x = std::llrint((origin.xy * row + origin.x0) * kOne) + kHalfStep;
    const std::int64_t y = std::llrint((origin.yy * row + origin.y0) * kOne) + kHalfStep;
    auto inside = [&](int column) {
      std::int64_t px = x + column * step_x;
      std::int64_t py = y + column * step_y;
      return px >= 0 && py >= 0 && px < inner_x && py < inner_y;
    };
    // A line crosses the image in one piece.
    int first = 0;
    while (first < shape.width && !inside(first)) ++first;
    int last = shape.width;
    while (last > first && !inside(last - 1)) --last;
    std::uint8_t* line = out + static_cast<std::size_t>(row) * static_cast<std::size_t>(shape.width);
    for (int c = 0; c < shape.channels; ++c) {
      const std::uint8_t* plane = in + static_cast<std::size_t>(c) * shape.plane();
      std::uint8_t* to = line + static_cast<std::size_t>(c) * shape.plane();
      for (int column = 0; column < first; ++column)
        to[column] = sample(plane, shape, x + column * step_x, y + column * step_y);
      for (int column = last; column < shape.width; ++column)
        to[column] = sample(plane, shape, x + column * step_x, y + column * step_y);
    }
    auto inner = shape.channels == 1 ? inner_pixels<1> : inner_pixels<3>;
    inner(shape, in, line, first, last, x + first * step_x, y + first * step_y, step_x, step_y);
  }
}

void move(std::int64_t right, std::int64_t down, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) {
  std::memset(out, 0, shape.bytes());
  std::int64_t columns = shape.width - std::abs(right);
  std::int64_t rows = shape.height - std::abs(down);
  if (columns <= 0 || rows <= 0) return;
  std::int64_t width = shape.width;
  std::int64_t from = std::max<std::int64_t>(0, -down) * width + std::max<std::int64_t>(0, -right);
  std::int64_t to = std::max<std::int64_t>(0, down) * width + std::max<std::int64_t>(0, right);
  for (int c = 0; c < shape.channels; ++c) {
    std::int64_t plane = static_cast<std::int64_t>(shape.plane()) * c;
    for (std::int64_t row = 0; row < rows; ++row)
      std::memcpy(out + plane + to + row * width, in + plane + from + row * width, static_cast<std::size_t>(columns));
  }
}

}  // namespace galvani::mutate
