// The pen skeletons of the ten digits, several ways to write each.
#pragma once

#include <vector>

namespace galvani {

struct PenPoint {
  float x;  // 0 left .. 1 right
  float y;  // 0 top .. 1 bottom
};

// Points that a smooth curve passes through; a point given twice is a corner.
using PenStroke = std::vector<PenPoint>;

struct DigitShape {
  double weight;  // how often it is written this way, relative to the digit's other shapes
  std::vector<PenStroke> strokes;
};

const std::vector<DigitShape>& digit_shapes(int digit);

}  // namespace galvani
