#include "galvani/data/snr.h"

#include <cmath>
#include <limits>

namespace galvani {

double signal_to_noise(const std::int16_t* signal, const std::int16_t* changed, std::size_t n) {
  std::uint64_t power = 0;
  std::uint64_t noise = 0;
  // Squares of 2^16 at most, so 2^32 samples fit.
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t value = signal[i];
    std::int64_t step = changed[i] - value;
    power += static_cast<std::uint64_t>(value * value);
    noise += static_cast<std::uint64_t>(step * step);
  }
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (noise == 0) return kInfinite;
  if (power == 0) return -kInfinite;
  return 10 * std::log10(static_cast<double>(power) / static_cast<double>(noise));
}

}  // namespace galvani
