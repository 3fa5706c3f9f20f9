#include <algorithm>
#include <cmath>

#include "semantics/concepts/concept.h"

namespace galvani {
namespace {

// Of a symmetric 2x2 matrix: the eigenvalue of larger magnitude, the other one, and the direction of the first.
struct Curvature {
  float strong, weak;
  float angle;
};

Curvature curvature(float xx, float xy, float yy) {
  float middle = (xx + yy) / 2;
  float spread = std::sqrt((xx - yy) * (xx - yy) / 4 + xy * xy);
  float high = middle + spread;
  float low = middle - spread;
  float angle = std::atan2(2 * xy, xx - yy) / 2;  // of the eigenvector of `high`
  if (std::abs(high) >= std::abs(low)) return {high, low, angle};
  return {low, high, angle + static_cast<float>(M_PI) / 2};
}

// An angle in `steps` equal parts of `turn`, the first one around 0.
std::uint8_t sector(float angle, float turn, int steps) {
  auto step = static_cast<int>(std::floor(angle / turn * static_cast<float>(steps) + 0.5F));
  return static_cast<std::uint8_t>(((step % steps) + steps) % steps);
}

// A spot bends the same way in both directions, a line in one of them.
constexpr float kRound = 0.5F;

}  // namespace

Strengths strengths_of(const Planes& planes) {
  Strengths result;
  std::size_t n = planes.light.size();
  for (auto& plane : result.values) plane.assign(n, 0);
  result.edge_towards.resize(n);
  result.line_along.resize(n);
  auto set = [&](Strength which, std::size_t i, float value) {
    result.values[static_cast<std::size_t>(which)][i] = value;
  };
  const auto half_turn = static_cast<float>(M_PI);
  for (std::size_t i = 0; i < n; ++i) {
    float x = planes.gradient_x[i];
    float y = planes.gradient_y[i];
    set(Strength::edge, i, std::sqrt(x * x + y * y));
    result.edge_towards[i] = sector(std::atan2(y, x), 2 * half_turn, 8);
    Curvature near = curvature(planes.curve_xx[i], planes.curve_xy[i], planes.curve_yy[i]);
    bool line = std::abs(near.weak) < kRound * std::abs(near.strong);
    bool round = near.weak * near.strong > 0 && !line;
    // A line runs across the direction it bends in.
    result.line_along[i] = sector(near.angle + half_turn / 2, half_turn, 4);
    if (line) set(near.strong < 0 ? Strength::bright_line : Strength::dark_line, i, std::abs(near.strong));
    if (round) set(near.strong < 0 ? Strength::bright_spot : Strength::dark_spot, i, std::abs(near.weak));
    Curvature wide = curvature(planes.wide_xx[i], planes.wide_xy[i], planes.wide_yy[i]);
    bool wide_round = wide.weak * wide.strong > 0 && std::abs(wide.weak) >= kRound * std::abs(wide.strong);
    if (wide_round) set(wide.strong < 0 ? Strength::bright_blob : Strength::dark_blob, i, std::abs(wide.weak));
    set(Strength::corner, i, std::max(0.0F, planes.corner[i]));
    set(Strength::fine, i, planes.fine[i]);
    set(Strength::coarse, i, planes.coarse[i]);
    set(Strength::change, i, planes.change[i]);
  }
  return result;
}

Cutoff cutoff_of(Strength strength) {
  switch (strength) {
    case Strength::edge:
      return {0.85, 0.04};
    case Strength::bright_line:
    case Strength::dark_line:
      return {0.92, 0.01};
    case Strength::bright_spot:
    case Strength::dark_spot:
      return {0.97, 0.005};
    case Strength::bright_blob:
    case Strength::dark_blob:
      return {0.95, 0.002};
    case Strength::corner:
      return {0.97, 1e-6};
    case Strength::fine:
      return {0.85, 0.02};
    case Strength::coarse:
      return {0.85, 0.03};
    case Strength::change:
      return {0.2, 0.005};
  }
  return {1, 0};
}

std::vector<ConceptTest> concept_tests(bool colour) {
  std::vector<ConceptTest> tests;
  add_colours(colour, tests);
  add_edges(tests);
  add_lines(tests);
  add_shapes(tests);
  add_textures(tests);
  return tests;
}

}  // namespace galvani
