// Every mutator, with what its rules fix. A default leaves the input as it is, where there is such a value.
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
        mutate::make_style_net},
       {"gain", "sounds: louder or softer", {real("db", 0, "by how much", -120, 60)}, mutate::make_gain},
       {"snr-noise",
        "sounds: add noise that is so much softer than the sound",
        {real("snr", 20, "dB from the noise up to the sound", -60, 120),
         choice("colour", "white: all frequencies alike; pink: less of the high ones", {"white", "pink"}), seed()},
        mutate::make_snr_noise},
       {"time-shift",
        "sounds: later or earlier, silence before or after",
        {real("seconds", 0, "later by", -3600, 3600)},
        mutate::make_time_shift},
       {"time-stretch",
        "sounds: slower or faster at the same pitch; the length stays",
        {real("factor", 1, "new duration / old duration", 0.25, 4)},
        mutate::make_time_stretch},
       {"pitch",
        "sounds: higher or lower at the same speed",
        {real("semitones", 0, "higher by", -24, 24)},
        mutate::make_pitch},
       {"low-pass",
        "sounds: take out what is above a frequency",
        {real("hz", 8000, "the frequency", 10, 100000)},
        mutate::make_low_pass},
       {"high-pass",
        "sounds: take out what is below a frequency",
        {real("hz", 20, "the frequency", 1, 100000)},
        mutate::make_high_pass},
       {"band-pass",
        "sounds: leave what is between two frequencies, as a telephone does",
        {real("hz", 300, "the lower one", 1, 100000), real("octaves", 3.5, "from it up to the other", 0.1, 16)},
        mutate::make_band_pass},
       {"echo",
        "sounds: repeat it, softer every time",
        {real("delay", 0.1, "seconds between repetitions", 0.0001, 10),
         real("decay", 0, "how loud each is to the one before", 0, 0.95)},
        mutate::make_echo},
       {"clipping",
        "sounds: cut off the loudest samples",
        {real("share", 0, "of the samples that reach the limit", 0, 1)},
        mutate::make_clipping},
       {"time-mask",
        "sounds: silence a stretch of it",
        {real("share", 0, "of the length", 0, 1), seed()},
        mutate::make_time_mask},
       {"quantise",
        "sounds: fewer steps, as simple codecs leave them",
        {whole("bits", 16, "a sample", 1, 16),
         choice("law", "linear: equal steps; mu: finer where it is soft, as on the telephone", {"linear", "mu"})},
        mutate::make_quantise}});
  return registry;
}

}  // namespace galvani
