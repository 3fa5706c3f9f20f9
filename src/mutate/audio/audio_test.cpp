// Known values of the changes of sounds.
#include <gtest/gtest.h>

#include <cmath>

#include "galvani/data/snr.h"
#include "galvani/mutate/engine.h"
#include "mutate/testing.h"

namespace galvani {
namespace {

constexpr double kTurn = 2 * 3.14159265358979323846;

at::Tensor samples(const std::vector<int>& values) {
  return at::tensor(values, at::kInt).to(at::kShort).unsqueeze(0);
}

at::Tensor changed(const std::string& rule, const at::Tensor& sound, std::int64_t rate = 8000) {
  MutatorSet set("gain", {SampleType::of(sound.sizes().vec(), rate), {}});
  return set.apply(set.parse(rule), sound);
}

at::Tensor tone(double hz, std::int64_t length, std::int64_t rate, double loud = 10000) {
  at::Tensor t = at::arange(length, at::kDouble) / static_cast<double>(rate);
  return ((t * (kTurn * hz)).sin() * loud).round().to(at::kShort).unsqueeze(0);
}

double power(const at::Tensor& sound) {
  return sound.to(at::kDouble).square().mean().item<double>();
}

double snr(const at::Tensor& a, const at::Tensor& b) {
  return signal_to_noise(a.data_ptr<std::int16_t>(), b.data_ptr<std::int16_t>(), static_cast<std::size_t>(a.numel()));
}

// How strong a frequency is, by its Fourier coefficient.
double strength(const at::Tensor& sound, double hz, double rate) {
  at::Tensor angle = at::arange(sound.size(1), at::kDouble) * (kTurn * hz / rate);
  at::Tensor x = sound[0].to(at::kDouble);
  return std::hypot((x * angle.cos()).sum().item<double>(), (x * angle.sin()).sum().item<double>());
}

TEST(Sounds, GainIsInDecibels) {
  // 20 dB are ten times, 6.0206 dB twice; what is too loud is cut off.
  EXPECT_TRUE(changed("gain:db=20", samples({1, -7, 3000, 4000})).equal(samples({10, -70, 30000, 32767})));
  EXPECT_TRUE(changed("gain:db=-20", samples({10, -4000})).equal(samples({1, -400})));
}

TEST(Sounds, NoiseIsAsLoudAsItSays) {
  at::Tensor sound = tone(300, 16000, 8000);
  for (const char* colour : {"white", "pink"}) {
    for (int db : {10, 20, 30}) {
      at::Tensor noisy = changed(fmt::format("snr-noise:snr={},colour={},seed=5", db, colour), sound);
      EXPECT_NEAR(snr(sound, noisy), db, 0.05) << colour;
    }
  }
  // Of pink noise there is more below 500 Hz than above 2000 Hz, of white noise a third.
  at::Tensor silence_like = tone(1, 16000, 8000, 1000);
  at::Tensor pink = changed("snr-noise:snr=0,colour=pink,seed=5", silence_like) - silence_like;
  EXPECT_GT(power(changed("low-pass:hz=500", pink)), 2 * power(changed("high-pass:hz=2000", pink)));
}

TEST(Sounds, ShiftsBringSilence) {
  // Two samples at 8000 Hz.
  EXPECT_TRUE(changed("time-shift:seconds=0.00025", samples({1, 2, 3, 4})).equal(samples({0, 0, 1, 2})));
  EXPECT_TRUE(changed("time-shift:seconds=-0.00025", samples({1, 2, 3, 4})).equal(samples({3, 4, 0, 0})));
  at::Tensor masked = changed("time-mask:share=0.25,seed=3", at::ones({2, 100}, at::kShort));
  EXPECT_EQ(masked.sum().item<std::int64_t>(), 150);
  EXPECT_TRUE(masked[0].equal(masked[1]));
}

TEST(Sounds, EchoesDieAway) {
  // One step at 8000 Hz; half as loud each time.
  EXPECT_TRUE(changed("echo:delay=0.000125,decay=0.5", samples({1000, 0, 0, 0})).equal(samples({1000, 500, 250, 125})));
}

TEST(Sounds, ClippingTakesAShareOfTheSamples) {
  // Half of these are as loud as 30 or louder.
  EXPECT_TRUE(changed("clipping:share=0.5", samples({10, -20, 30, -40})).equal(samples({10, -20, 30, -30})));
}

TEST(Sounds, FewerBitsAreMultiplesOfAStep) {
  // Eight bits are steps of 256.
  EXPECT_TRUE(changed("quantise:bits=8", samples({100, 130, -300, 32767})).equal(samples({0, 256, -256, 32512})));
  EXPECT_TRUE(changed("quantise:bits=16", samples({1, -32768, 32767})).equal(samples({1, -32768, 32767})));
  // The telephone's law keeps soft samples better than equal steps do.
  at::Tensor soft = tone(440, 4000, 8000, 300);
  EXPECT_GT(snr(soft, changed("quantise:bits=8,law=mu", soft)), snr(soft, changed("quantise:bits=8", soft)) + 10);
}

TEST(Sounds, FiltersAreSixDecibelsDownAtTheirFrequency) {
  for (const char* rule : {"low-pass:hz=1000", "high-pass:hz=1000"}) {
    at::Tensor at_edge = tone(1000, 32000, 16000);
    at::Tensor filtered = changed(rule, at_edge, 16000);
    EXPECT_NEAR(10 * std::log10(power(filtered) / power(at_edge)), -6.02, 0.1) << rule;
    // Fourth order: 1 / (1 + 2⁴) an octave away.
    bool low = std::string(rule).rfind("low", 0) == 0;
    at::Tensor octave = tone(low ? 2000 : 500, 32000, 16000);
    EXPECT_LT(10 * std::log10(power(changed(rule, octave, 16000)) / power(octave)), -23) << rule;
    at::Tensor inside = tone(low ? 100 : 6000, 32000, 16000);
    // Nothing is delayed, so little differs where it lets through.
    EXPECT_GT(snr(inside, changed(rule, inside, 16000)), 30) << rule;
  }
  at::Tensor low = tone(50, 16000, 16000), middle = tone(800, 16000, 16000);
  EXPECT_LT(power(changed("band-pass:hz=300,octaves=3", low, 16000)), power(low) / 1000);
  EXPECT_GT(power(changed("band-pass:hz=300,octaves=3", middle, 16000)), power(middle) * 0.9);
}

TEST(Sounds, PitchAndSpeedAreApart) {
  if (!make_mutator(Spec{"pitch", {}}, {})->missing().empty()) GTEST_SKIP() << "built without Rubber Band";
  at::Tensor sound = tone(440, 32000, 16000);
  // Twelve semitones are an octave.
  at::Tensor higher = changed("pitch:semitones=12", sound, 16000);
  EXPECT_GT(strength(higher, 880, 16000), 20 * strength(higher, 440, 16000));
  // Half as long: the tone is the same, and the second half is silent.
  at::Tensor faster = changed("time-stretch:factor=0.5", sound, 16000);
  EXPECT_GT(strength(faster, 440, 16000), 20 * strength(faster, 880, 16000));
  EXPECT_EQ(faster.narrow(1, 17000, 15000).abs().max().item<std::int64_t>(), 0);
  EXPECT_GT(power(faster.narrow(1, 0, 15000)), power(sound) / 2);
}

TEST(Sounds, DefaultsChangeNothing) {
  SampleType type = SampleType::audio(2, 500, 8000);
  at::Tensor sound = testing::sound(type);
  for (const char* rule : {"gain", "time-shift", "time-stretch", "pitch", "echo", "clipping", "quantise",
                           "time-mask:seed=1", "low-pass:hz=4000"}) {
    MutatorSet set("gain", {type, {}});
    if (!make_mutator(Spec{Spec::parse(rule).name, {}}, {})->missing().empty()) continue;
    EXPECT_TRUE(set.apply(set.parse(rule), sound).equal(sound)) << rule;
  }
}

TEST(Sounds, ValidMutantsAreLouderThanTheirChange) {
  SampleType type = SampleType::audio(1, 4000, 16000);
  MutationEngine engine("audio", {type, {}});
  std::vector<Parent> parents;
  for (std::uint64_t i = 0; i < 60; ++i) {
    at::Tensor sound = testing::sound(type, i);
    parents.push_back({sound, sound, false, Rng(i)});
  }
  Mutants mutants = engine.mutate(parents);
  int affine = 0;
  for (std::size_t i = 0; i < parents.size(); ++i) {
    auto row = static_cast<std::int64_t>(i);
    if (!mutants.each[i].valid) continue;
    bool moved = engine.set().mutator(mutants.each[i].rule).affine();
    affine += moved ? 1 : 0;
    EXPECT_TRUE(mutants.references[row].equal(moved ? mutants.images[row] : parents[i].image));
    if (!moved) {
      EXPECT_GE(snr(parents[i].image, mutants.images[row]), Validity().snr);
    }
  }
  EXPECT_GT(mutants.valid(), 55);
  EXPECT_GT(affine, 5);
  MutationEngine::Options strict;
  strict.validity.snr = 100;
  EXPECT_EQ(MutationEngine("snr-noise:snr=20", {type, {}}, strict).mutate(parents).valid(), 0);
}

}  // namespace
}  // namespace galvani
