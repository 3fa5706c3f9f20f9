// Points of the plane in squares within squares, so that far ones can be taken together (Barnes and Hut 1986).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace galvani {

class QuadTree {
 public:
  // The points must outlive it.
  explicit QuadTree(const std::vector<std::array<double, 2>>& points);

  // What others do to a point in t-SNE: Σ (x - y) / (1 + d²)² and Σ 1 / (1 + d²).
  struct Push {
    std::array<double, 2> force{0, 0};
    double closeness = 0;
    void add(const std::array<double, 2>& point, const std::array<double, 2>& other, double count) {
      double x = point[0] - other[0], y = point[1] - other[1];
      double near = 1 / (1 + x * x + y * y);
      closeness += count * near;
      force[0] += count * near * near * x;
      force[1] += count * near * near * y;
    }
  };
  // Squares whose side is below theta times their distance count as one point. REQUIRES theta <= 0.7, so that no square
  // with the point in it is among them.
  Push push(std::size_t point, double theta) const;

 private:
  struct Square {
    std::array<double, 2> centre{0, 0};  // of its points
    double side = 0;
    std::size_t first = 0, end = 0;       // its points
    std::array<std::int64_t, 4> parts{};  // 0: none
    bool leaf = true;
  };
  void split(std::size_t square, std::array<double, 2> low, int depth);

  const std::vector<std::array<double, 2>>& points_;
  std::vector<std::size_t> order_;
  std::vector<Square> squares_;
};

}  // namespace galvani
