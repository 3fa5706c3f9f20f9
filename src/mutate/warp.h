// Geometric changes: where each pixel of the result comes from.
#pragma once

#include <cstdint>

#include "galvani/mutate/mutator.h"

namespace galvani::mutate {

// The result's pixel (x, y) is the image's at (xx x + xy y + x0, yx x + yy y + y0).
struct Origin {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
};

// An origin around the image's centre, which stays where it is.
Origin about_centre(const ImageShape& shape, double xx, double xy, double yx, double yy);

// Bilinear between pixels, zero outside the image. Whole-number arithmetic: the same bytes on every machine.
void warp(const Origin& origin, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out);

// By whole pixels, right and down; zero comes in from outside.
void move(std::int64_t right, std::int64_t down, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out);

}  // namespace galvani::mutate
