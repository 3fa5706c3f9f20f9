// Points of a ball.
#pragma once

#include <cstddef>

#include "galvani/quality/clever.h"

namespace galvani {

// A uniform point of the unit ball, `n` values.
void unit_ball_point(CleverNorm norm, Rng rng, float* point, std::size_t n);

}  // namespace galvani
