// Every mutator, with what its rules fix. A default leaves the image as it is, where there is such a value.
#include "mutate/families.h"

namespace galvani {
namespace {

OptionInfo whole(const char* name, std::int64_t fallback, const char* help, double low, double high) {
  return {name, fallback, help, low, high, {}};
}
OptionInfo real(const char* name, double fallback, const char* help, double low, double high) {
  return {name, fallback, help, low, high, {}};
}
OptionInfo choice(const char* name, const char* help, std::vector<std::string> choices) {
  std::string first = choices.front();
  return {name, std::move(first), help, {}, {}, std::move(choices)};
}
OptionInfo strength() {
  return real("strength", 0.6, "0: as it was, 1: the style alone", 0, 1);
}
OptionInfo image() {
  return whole("image", 0, "which of the style source", 0, 1e9);
}
OptionInfo seed() {
  return whole("seed", 0, "of what is random in it", 0, 4294967295.0);
}

}  // namespace

const MutatorRegistry& mutators() {
  static const MutatorRegistry registry(
      "mutator",
      {{"translation",
        "move by whole pixels",
        {whole("x", 0, "pixels to the right", -32768, 32768), whole("y", 0, "pixels down", -32768, 32768)},
        mutate::make_translation},
       {"shift",
        "move by a share of the size, to whole pixels",
        {real("x", 0, "of the width, to the right", -1, 1), real("y", 0, "of the height, down", -1, 1)},
        mutate::make_shift},
       {"scale",
        "enlarge or shrink about the centre",
        {real("ratio", 1, "new size / old size", 0.05, 20)},
        mutate::make_scale},
       {"rotation",
        "turn about the centre",
        {real("angle", 0, "degrees, counter-clockwise", -360, 360)},
        mutate::make_rotation},
       {"shear",
        "push rows sideways, the lower the further",
        {real("angle", 0, "degrees from the vertical", -80, 80),
         real("factor", 0, "pixels a row, added to the tangent of the angle", -5, 5)},
        mutate::make_shear},
       {"contrast",
        "multiply values, or their distance from the mean",
        {real("gain", 1, "what by", 0, 20), choice("about", "what stays as it is", {"zero", "mean"})},
        mutate::make_contrast},
       {"brightness",
        "add to values",
        {real("offset", 0, "how much, of 255", -255, 255), real("factor", 1, "multiplied in before", 0, 20)},
        mutate::make_brightness},
       {"blur",
        "average over a neighbourhood",
        {choice("kind", "which average", {"box", "gaussian", "median", "bilateral"}),
         whole("size", 3, "side of the neighbourhood in pixels", 1, 31),
         real("sigma", 75, "bilateral: how far colours and places reach", 1, 1000)},
        mutate::make_blur},
       {"pixel-change",
        "give some pixels a random colour",
        {whole("count", 1, "how many", 0, 1e6), seed()},
        mutate::make_pixel_change},
       {"noise",
        "add a random number to every value",
        {real("sigma", 8, "deviation, at white where it varies", 0, 255),
         choice("kind", "salt-pepper: some black, some white; shot, speckle: more where it is bright",
                {"gaussian", "salt-pepper", "shot", "speckle"}),
         real("share", 0.004, "salt-pepper: of the pixels", 0, 1), seed()},
        mutate::make_noise},
       {"colour-transfer",
        "take mean and deviation of the colours from another image",
        {image(), strength()},
        mutate::make_colour_transfer},
       {"fourier-transfer",
        "take the amplitude of low frequencies from another image",
        {image(), strength(), real("band", 0.1, "how low: share of the shorter side", 0, 0.5)},
        mutate::make_fourier_transfer},
       {"fog", "a light veil of varying thickness", {strength(), seed()}, mutate::make_fog},
       {"rain", "slanted streaks", {strength(), seed()}, mutate::make_rain},
       {"snow", "flakes", {strength(), seed()}, mutate::make_snow},
       {"frost", "ice that grows from the border", {strength(), seed()}, mutate::make_frost},
       {"style-net",
        "a style network of your own",
        {strength(), choice("output", "the values it gives", {"0..255", "0..1", "-1..1"}),
         OptionInfo{"model", std::string(), "an ONNX file: image in, image of the same size out", {}, {}, {}}},
        mutate::make_style_net}});
  return registry;
}

}  // namespace galvani
