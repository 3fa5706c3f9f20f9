// Handwriting-like digits, drawn from nothing: a data set that is always there.
//
// Every image is a pure function of (split, index): a pen skeleton is chosen, its points are jittered and warped, the
// whole is slanted, turned and scaled, and a round pen of varying width and pressure follows it. White on black, as
// MNIST. Some writers are sloppy enough for a digit to be mistaken.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "galvani/base/rng.h"
#include "galvani/data/source.h"

namespace galvani {

constexpr std::int64_t kDigitSide = 28;
constexpr std::int64_t kDigitsTrain = 60000;
constexpr std::int64_t kDigitsTest = 10000;
constexpr std::int64_t kDigitsPool = 10000000;  // to choose from: more than most memories hold

// Draws one digit (0..9) into kDigitSide x kDigitSide bytes.
void draw_digit(int digit, Rng rng, std::uint8_t* out);

// `split` is "train", "test" or "pool". Every ten consecutive images hold each digit once, in random order.
std::unique_ptr<Source> open_digits(const std::string& split);

}  // namespace galvani
