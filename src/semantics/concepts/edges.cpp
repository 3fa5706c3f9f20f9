// Edges by orientation, the upright and level ones also by the side that is bright.
#include "semantics/concepts/concept.h"

namespace galvani {
namespace {

// `towards`: directions, as eighths of a turn, one bit each.
ConceptTest edge_test(const char* words, unsigned towards) {
  return {{words, "", ConceptFamily::edge},
          [towards](const Planes&, const Strengths& strengths, const Cutoffs& cutoffs) -> Present {
            const auto& strength = strengths.values[static_cast<std::size_t>(Strength::edge)];
            float cutoff = cutoffs[static_cast<std::size_t>(Strength::edge)];
            return [&strength, &strengths, cutoff, towards](std::size_t i) {
              return strength[i] >= cutoff && (towards >> strengths.edge_towards[i] & 1U) != 0;
            };
          }};
}

}  // namespace

void add_edges(std::vector<ConceptTest>& tests) {
  constexpr unsigned kRight = 1, kLowerRight = 2, kDown = 4, kLowerLeft = 8, kLeft = 16, kUpperLeft = 32, kUp = 64,
                     kUpperRight = 128;
  tests.push_back(edge_test("vertical edges", kRight | kLeft));
  tests.push_back(edge_test("horizontal edges", kUp | kDown));
  tests.push_back(edge_test("rising diagonal edges", kLowerRight | kUpperLeft));
  tests.push_back(edge_test("falling diagonal edges", kUpperRight | kLowerLeft));
  tests.push_back(edge_test("vertical edges with the bright side right", kRight));
  tests.push_back(edge_test("vertical edges with the bright side left", kLeft));
  tests.push_back(edge_test("horizontal edges with the bright side below", kDown));
  tests.push_back(edge_test("horizontal edges with the bright side above", kUp));
}

}  // namespace galvani
