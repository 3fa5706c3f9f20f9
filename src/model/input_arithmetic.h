// What a graph does to the values of its input before anything else: foreign files often hold their own preprocessing.
#pragma once

#include <optional>

#include "galvani/model/network.h"

namespace galvani {

// value → scale · value + shift, the mean over channels.
struct InputArithmetic {
  double scale = 1;
  double shift = 0;
};

// Additions, products and a batch norm with numbers of the file that the input goes through as a whole; nothing if
// there is none.
std::optional<InputArithmetic> input_arithmetic(Network& network);

// Whether it makes small numbers of bytes 0..255, such as 0..1 or those of a mean and a deviation.
bool takes_bytes_as_they_are(const InputArithmetic& arithmetic);

}  // namespace galvani
