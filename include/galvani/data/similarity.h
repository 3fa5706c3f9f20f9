// How alike two images look.
#pragma once

#include <cstdint>

namespace galvani {

// Structural similarity (Wang et al. 2004): Gaussian window of 11, σ 1.5, K1 0.01, K2 0.03, data range 255; at most 1.
// [channels, height, width] bytes each; the mean over channels.
double structural_similarity(const std::uint8_t* a, const std::uint8_t* b, std::int64_t channels, std::int64_t height,
                             std::int64_t width);

}  // namespace galvani
