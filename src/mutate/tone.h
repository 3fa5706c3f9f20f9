// A change of every value that depends on the value alone.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace galvani::mutate {

// To the nearest byte, halves to the even one, saturating.
inline std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::lrint(std::clamp(value, 0.0, 255.0)));
}

template <class Tone>
void map_tones(const std::uint8_t* in, std::uint8_t* out, std::size_t n, Tone tone) {
  std::array<std::uint8_t, 256> table;
  for (std::size_t value = 0; value < table.size(); ++value) table[value] = to_byte(tone(static_cast<double>(value)));
  for (std::size_t i = 0; i < n; ++i) out[i] = table[in[i]];
}

}  // namespace galvani::mutate
