#include "semantics/places.h"

namespace galvani {

bool Place::holds(const Grid& grid, std::size_t position) const {
  auto across = static_cast<std::size_t>(grid.width);
  std::size_t row = position / across;
  double y = (static_cast<double>(row) + 0.5) / static_cast<double>(grid.height);
  double x = (static_cast<double>(position % across) + 0.5) / static_cast<double>(grid.width);
  return (y >= top && y < bottom && x >= left && x < right) != inverted;
}

const std::vector<Place>& places() {
  constexpr double kA = 1.0 / 3;
  constexpr double kB = 2.0 / 3;
  static const std::vector<Place> all = {
      {"at the top left", 0, kA, 0, kA},     {"at the top", 0, kA, kA, kB},
      {"at the top right", 0, kA, kB, 1},    {"on the left", kA, kB, 0, kA},
      {"in the centre", kA, kB, kA, kB},     {"on the right", kA, kB, kB, 1},
      {"at the bottom left", kB, 1, 0, kA},  {"at the bottom", kB, 1, kA, kB},
      {"at the bottom right", kB, 1, kB, 1}, {"at the top left", 0, .5, 0, .5},
      {"at the top right", 0, .5, .5, 1},    {"at the bottom left", .5, 1, 0, .5},
      {"at the bottom right", .5, 1, .5, 1}, {"in the upper half", 0, .5, 0, 1},
      {"in the lower half", .5, 1, 0, 1},    {"in the left half", 0, 1, 0, .5},
      {"in the right half", 0, 1, .5, 1},    {"at the top", 0, kA, 0, 1},
      {"at the bottom", kB, 1, 0, 1},        {"on the left", 0, 1, 0, kA},
      {"on the right", 0, 1, kB, 1},         {"along the border", 1.0 / 6, 5.0 / 6, 1.0 / 6, 5.0 / 6, true}};
  return all;
}

}  // namespace galvani
