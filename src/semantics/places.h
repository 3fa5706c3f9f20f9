// Parts of a picture that have a name.
#pragma once

#include <cstddef>
#include <vector>

#include "semantics/concepts/planes.h"

namespace galvani {

// Bounds are shares of the sides.
struct Place {
  const char* words;
  double top, bottom, left, right;
  bool inverted = false;  // all but that
  bool holds(const Grid& grid, std::size_t position) const;
};

// Ninths, quarters, halves, thirds, and the border. Several may share a name.
const std::vector<Place>& places();

}  // namespace galvani
