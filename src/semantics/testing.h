// Networks whose neurons were planted, and pictures to look at them with, for tests.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "galvani/base/error.h"
#include "galvani/data/dataset.h"
#include "galvani/model/network.h"
#include "galvani/semantics/descriptions.h"

namespace galvani::testing {

// Coloured rectangles and discs on grounds of other colours, 3x32x32; the class is the kind of the largest shape's
// colour: warm, cold or grey.
Dataset scenes(std::int64_t n, std::uint64_t seed);

// Neurons of `planted.conv`, in order: red, vertical edges that get brighter to the right, horizontal edges that get
// brighter downwards, blue, brightness in the upper left quarter alone, nothing at all. Three classes by the mean of
// red and blue.
std::unique_ptr<Network> planted_network();

// A neuron for each of seven colours, eight directions in which it gets brighter, and nine places, in that order; what
// should be said of each.
std::unique_ptr<Network> planted_bank();
std::vector<std::string> bank_words();
// Drawn scenes, and halves that are brighter than the other, in all directions. One class.
Dataset bank_scenes();

// Words of our own for the neurons of the planted network: the layer and a number, but for "red", "blue" and "cold".
Descriptions numbered_words(const Network& network);

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace galvani::testing
