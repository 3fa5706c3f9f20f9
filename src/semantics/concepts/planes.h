// What filters say about one image, on a grid: what concepts are read off.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace galvani {

// Where concepts and masks are compared: the image itself, or a smaller one of its shape.
struct Grid {
  static constexpr std::int64_t kLongestSide = 112;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t positions() const { return height * width; }
  static Grid of(std::int64_t image_height, std::int64_t image_width);
};

// One number a position each, row by row. Brightness is 0..1; lengths are in positions of the grid.
struct Planes {
  Grid grid;
  bool colour = false;
  std::vector<float> red, green, blue;              // of colour images
  std::vector<float> light;                         // brightness
  std::vector<float> gradient_x, gradient_y;        // of the brightness, blurred by 1
  std::vector<float> change;                        // the gradient's length, blurred by 2
  std::vector<float> curve_xx, curve_xy, curve_yy;  // second derivatives, blurred by 1.5
  std::vector<float> wide_xx, wide_xy, wide_yy;     // blurred by 3
  std::vector<float> corner;                        // Harris' measure
  std::vector<float> fine;                          // energy of detail finer than 1, around the position
  std::vector<float> coarse;                        // between 1 and 4
};

// image [C, H, W] uint8, C 1 or 3 (others: the mean of the channels).
Planes make_planes(const at::Tensor& image, const Grid& grid);

}  // namespace galvani
