// 16-bit samples from numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace galvani::mutate {

inline std::int16_t to_sample(double value) {
  return static_cast<std::int16_t>(std::lrint(std::clamp(value, -32768.0, 32767.0)));
}

}  // namespace galvani::mutate
