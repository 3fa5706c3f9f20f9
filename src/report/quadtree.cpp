#include "report/quadtree.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace galvani {
namespace {

constexpr int kDeepest = 40;  // points that are the same cannot be parted
constexpr std::size_t kLeafPoints = 4;

}  // namespace

QuadTree::QuadTree(const std::vector<std::array<double, 2>>& points) : points_(points), order_(points.size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::array<double, 2> low = points.at(0), high = points.at(0);
  for (const auto& point : points) {
    for (std::size_t axis = 0; axis < 2; ++axis) {
      low[axis] = std::min(low[axis], point[axis]);
      high[axis] = std::max(high[axis], point[axis]);
    }
  }
  Square all;
  all.side = std::max(high[0] - low[0], high[1] - low[1]);
  all.end = points.size();
  squares_.push_back(all);
  split(0, low, 0);
}

void QuadTree::split(std::size_t square, std::array<double, 2> low, int depth) {
  auto [first, end, side] = std::tuple(squares_[square].first, squares_[square].end, squares_[square].side);
  std::array<double, 2> centre{0, 0};
  for (std::size_t i = first; i < end; ++i) {
    for (std::size_t axis = 0; axis < 2; ++axis)
      centre[axis] += points_[order_[i]][axis] / static_cast<double>(end - first);
  }
  squares_[square].centre = centre;
  if (end - first <= kLeafPoints || depth == kDeepest || side <= 0) return;
  squares_[square].leaf = false;
  double half = side / 2;
  auto part_of = [&](std::size_t point) {
    return (points_[point][0] >= low[0] + half ? 1 : 0) + (points_[point][1] >= low[1] + half ? 2 : 0);
  };
  auto begin = order_.begin() + static_cast<std::ptrdiff_t>(first),
       last = order_.begin() + static_cast<std::ptrdiff_t>(end);
  std::stable_sort(begin, last, [&](std::size_t a, std::size_t b) { return part_of(a) < part_of(b); });
  std::size_t from = first;
  for (int part = 0; part < 4; ++part) {
    std::size_t to = from;
    while (to < end && part_of(order_[to]) == part) ++to;
    if (to == from) continue;
    Square own;
    own.side = half;
    own.first = from;
    own.end = to;
    squares_[square].parts[static_cast<std::size_t>(part)] = static_cast<std::int64_t>(squares_.size());
    squares_.push_back(own);
    auto right = part % 2, down = part / 2;
    split(squares_.size() - 1, {low[0] + right * half, low[1] + down * half}, depth + 1);
    from = to;
  }
}

QuadTree::Push QuadTree::push(std::size_t point, double theta) const {
  Push result;
  const std::array<double, 2>& own = points_[point];
  std::vector<std::size_t> open{0};
  while (!open.empty()) {
    const Square& square = squares_[open.back()];
    open.pop_back();
    double x = own[0] - square.centre[0], y = own[1] - square.centre[1];
    if (!square.leaf && square.side < theta * std::hypot(x, y)) {
      result.add(own, square.centre, static_cast<double>(square.end - square.first));
    } else if (square.leaf) {
      for (std::size_t i = square.first; i < square.end; ++i) {
        if (order_[i] != point) result.add(own, points_[order_[i]], 1);
      }
    } else {
      for (std::int64_t part : square.parts) {
        if (part > 0) open.push_back(static_cast<std::size_t>(part));
      }
    }
  }
  return result;
}

}  // namespace galvani
