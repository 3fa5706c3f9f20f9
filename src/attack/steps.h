// A step of a search along a gradient.
#pragma once

#include <cstdint>

#include "galvani/attack/search.h"

namespace galvani {

// Moves a row by `length` in the direction of steepest ascent of its norm: the gradient's sign, or the gradient at
// length 1; then back into the ball.
void ascend(const Search& search, float* x, const float* gradient, double length, std::int64_t row);

}  // namespace galvani
