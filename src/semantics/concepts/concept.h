// The bank of concepts that `dissect` and `formula` know: what can be seen at a place of an image, computed from the
// image itself.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "semantics/concepts/planes.h"

namespace galvani {

// How strong something is at a position; what of it counts is decided by all images together.
enum class Strength {
  edge,
  bright_line,
  dark_line,
  bright_spot,
  dark_spot,
  bright_blob,
  dark_blob,
  corner,
  fine,
  coarse,
  change
};
inline constexpr std::size_t kStrengths = 11;

// Strengths of one image, and directions of edges and lines in eighths of a turn.
struct Strengths {
  std::array<std::vector<float>, kStrengths> values;
  std::vector<std::uint8_t> edge_towards;  // where it gets brighter: 0 right, 1 lower right, 2 down, ... 7
  std::vector<std::uint8_t> line_along;    // 0 horizontal, 1 falling, 2 vertical, 3 rising
};
Strengths strengths_of(const Planes& planes);

// From where on a strength counts: so high a quantile over all images, and no less than a floor.
struct Cutoff {
  double quantile;
  double floor;
};
Cutoff cutoff_of(Strength strength);
using Cutoffs = std::array<float, kStrengths>;

enum class ConceptFamily { colour, edge, line, shape, texture };

struct Concept {
  std::string words;      // "vertical edges"
  std::string adjective;  // of colours: "red"; else empty
  ConceptFamily family;
};

// What is tested at every position of an image.
using Present = std::function<bool(std::size_t position)>;
struct ConceptTest {
  Concept about;
  std::function<Present(const Planes& planes, const Strengths& strengths, const Cutoffs& cutoffs)> on;
};
// All that there are for images in colour, or in grey.
std::vector<ConceptTest> concept_tests(bool colour);

// The families, one file each.
void add_colours(bool colour, std::vector<ConceptTest>& tests);
void add_edges(std::vector<ConceptTest>& tests);
void add_lines(std::vector<ConceptTest>& tests);
void add_shapes(std::vector<ConceptTest>& tests);
void add_textures(std::vector<ConceptTest>& tests);

}  // namespace galvani
