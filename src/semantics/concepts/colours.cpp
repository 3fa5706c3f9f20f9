// Colours by hue, saturation and value, with the names that people give them; of grey images black, grey and white.
#include <algorithm>

#include "semantics/concepts/concept.h"

namespace galvani {
namespace {

constexpr float kDark = 0.2F;    // below: black
constexpr float kLight = 0.8F;   // above: white, if there is no colour
constexpr float kPale = 0.15F;   // saturation below: no colour
constexpr float kClear = 0.25F;  // above: a colour with a name

enum class Hue { none, black, grey, white, red, orange, brown, yellow, green, cyan, blue, purple, pink };

Hue hue_of(float r, float g, float b) {
  float value = std::max({r, g, b});
  float range = value - std::min({r, g, b});
  float saturation = value > 0 ? range / value : 0;
  if (value < kDark) return Hue::black;
  if (saturation < kPale) return value > kLight ? Hue::white : Hue::grey;
  if (saturation < kClear) return Hue::none;
  float hue = 0;  // in degrees
  if (value == r) {
    hue = 60 * (g - b) / range;
  } else if (value == g) {
    hue = 120 + 60 * (b - r) / range;
  } else {
    hue = 240 + 60 * (r - g) / range;
  }
  if (hue < 0) hue += 360;
  if (hue < 15 || hue >= 345) return saturation < 0.5F && value > 0.7F ? Hue::pink : Hue::red;
  if (hue < 45) return value < 0.6F ? Hue::brown : Hue::orange;
  if (hue < 70) return Hue::yellow;
  if (hue < 165) return Hue::green;
  if (hue < 195) return Hue::cyan;
  if (hue < 260) return Hue::blue;
  return hue < 295 ? Hue::purple : Hue::pink;
}

ConceptTest colour_test(const char* name, Hue wanted) {
  return {{std::string(name) + " areas", name, ConceptFamily::colour},
          [wanted](const Planes& planes, const Strengths&, const Cutoffs&) -> Present {
            return [&planes, wanted](std::size_t i) {
              return hue_of(planes.red[i], planes.green[i], planes.blue[i]) == wanted;
            };
          }};
}

ConceptTest grey_test(const char* name, float low, float high) {
  return {{std::string(name) + " areas", name, ConceptFamily::colour},
          [low, high](const Planes& planes, const Strengths&, const Cutoffs&) -> Present {
            return [&planes, low, high](std::size_t i) { return planes.light[i] >= low && planes.light[i] < high; };
          }};
}

}  // namespace

void add_colours(bool colour, std::vector<ConceptTest>& tests) {
  if (!colour) {
    tests.push_back(grey_test("black", -1, kDark));
    tests.push_back(grey_test("grey", kDark, kLight));
    tests.push_back(grey_test("white", kLight, 2));
    return;
  }
  const std::vector<std::pair<const char*, Hue>> kNames = {
      {"black", Hue::black},   {"grey", Hue::grey},   {"white", Hue::white},   {"red", Hue::red},
      {"orange", Hue::orange}, {"brown", Hue::brown}, {"yellow", Hue::yellow}, {"green", Hue::green},
      {"cyan", Hue::cyan},     {"blue", Hue::blue},   {"purple", Hue::purple}, {"pink", Hue::pink}};
  for (const auto& [name, hue] : kNames) tests.push_back(colour_test(name, hue));
}

}  // namespace galvani
