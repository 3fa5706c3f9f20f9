// Bright and dark lines by orientation: strokes.
#include "semantics/concepts/concept.h"

namespace galvani {
namespace {

ConceptTest line_test(const char* words, Strength bright_or_dark, std::uint8_t along) {
  return {{words, "", ConceptFamily::line},
          [bright_or_dark, along](const Planes&, const Strengths& strengths, const Cutoffs& cutoffs) -> Present {
            const auto& strength = strengths.values[static_cast<std::size_t>(bright_or_dark)];
            float cutoff = cutoffs[static_cast<std::size_t>(bright_or_dark)];
            return [&strength, &strengths, cutoff, along](std::size_t i) {
              return strength[i] >= cutoff && strengths.line_along[i] == along;
            };
          }};
}

}  // namespace

void add_lines(std::vector<ConceptTest>& tests) {
  tests.push_back(line_test("bright horizontal strokes", Strength::bright_line, 0));
  tests.push_back(line_test("bright falling strokes", Strength::bright_line, 1));
  tests.push_back(line_test("bright vertical strokes", Strength::bright_line, 2));
  tests.push_back(line_test("bright rising strokes", Strength::bright_line, 3));
  tests.push_back(line_test("dark horizontal lines", Strength::dark_line, 0));
  tests.push_back(line_test("dark falling lines", Strength::dark_line, 1));
  tests.push_back(line_test("dark vertical lines", Strength::dark_line, 2));
  tests.push_back(line_test("dark rising lines", Strength::dark_line, 3));
}

}  // namespace galvani
