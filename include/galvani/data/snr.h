// How loud a sound is against what was added to it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace galvani {

// 10·log10(Σ signal² / Σ (changed - signal)²) in dB over n samples, summed in whole numbers, so the same everywhere.
// Infinite where nothing changed, minus infinite where silence did.
double signal_to_noise(const std::int16_t* signal, const std::int16_t* changed, std::size_t n);

}  // namespace galvani
