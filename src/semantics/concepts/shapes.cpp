// Spots, blobs and corners.
#include "semantics/concepts/concept.h"

namespace galvani {
namespace {

ConceptTest strength_test(const char* words, ConceptFamily family, Strength which) {
  return {{words, "", family}, [which](const Planes&, const Strengths& strengths, const Cutoffs& cutoffs) -> Present {
            const auto& strength = strengths.values[static_cast<std::size_t>(which)];
            float cutoff = cutoffs[static_cast<std::size_t>(which)];
            return [&strength, cutoff](std::size_t i) { return strength[i] >= cutoff; };
          }};
}

}  // namespace

void add_shapes(std::vector<ConceptTest>& tests) {
  tests.push_back(strength_test("bright spots", ConceptFamily::shape, Strength::bright_spot));
  tests.push_back(strength_test("dark spots", ConceptFamily::shape, Strength::dark_spot));
  tests.push_back(strength_test("bright blobs", ConceptFamily::shape, Strength::bright_blob));
  tests.push_back(strength_test("dark blobs", ConceptFamily::shape, Strength::dark_blob));
  tests.push_back(strength_test("corners", ConceptFamily::shape, Strength::corner));
}

void add_textures(std::vector<ConceptTest>& tests) {
  tests.push_back(strength_test("fine texture", ConceptFamily::texture, Strength::fine));
  tests.push_back(strength_test("coarse texture", ConceptFamily::texture, Strength::coarse));
  tests.push_back({{"smooth areas", "smooth", ConceptFamily::texture},
                   [](const Planes&, const Strengths& strengths, const Cutoffs& cutoffs) -> Present {
                     const auto& change = strengths.values[static_cast<std::size_t>(Strength::change)];
                     float cutoff = cutoffs[static_cast<std::size_t>(Strength::change)];
                     return [&change, cutoff](std::size_t i) { return change[i] <= cutoff; };
                   }});
}

}  // namespace galvani
