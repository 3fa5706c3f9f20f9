// The nearest point of a plane inside a box.
#pragma once

#include <cstdint>

namespace galvani {

// The shortest d, in L∞ or L2, with <w, d> = c and low <= x + d <= high; if no point of the box reaches the plane, the
// nearest to it. x, w, d: n floats. Gives the length of d.
double step_to_plane(const float* x, const float* w, double c, bool linf, float low, float high, std::int64_t n,
                     float* d);

}  // namespace galvani
