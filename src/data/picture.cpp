#include "galvani/data/picture.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace galvani {
namespace {

constexpr std::int64_t kSoundWidth = 144;
constexpr std::int64_t kWaveHeight = 32;
constexpr std::int64_t kSpectrumHeight = 64;
constexpr double kRange = 80;  // dB that are told apart

using Colour = std::array<double, 3>;
constexpr Colour kWave = {110, 190, 255};
constexpr Colour kGround = {16, 18, 28};

// From dark blue over red to pale yellow.
Colour heat_colour(double share) {
  static constexpr std::array<Colour, 5> kStops = {
      {{16, 18, 28}, {60, 20, 110}, {180, 45, 90}, {245, 140, 50}, {252, 250, 200}}};
  double place = std::clamp(share, 0.0, 1.0) * (kStops.size() - 1);
  auto low = std::min(static_cast<std::size_t>(place), kStops.size() - 2);
  double part = place - static_cast<double>(low);
  Colour result;
  for (std::size_t c = 0; c < 3; ++c) result[c] = kStops[low][c] * (1 - part) + kStops[low + 1][c] * part;
  return result;
}

void paint(at::Tensor& picture, std::int64_t y, std::int64_t x, const Colour& colour) {
  auto* pixels = picture.data_ptr<std::uint8_t>();
  std::int64_t plane = picture.size(1) * picture.size(2);
  for (std::size_t c = 0; c < 3; ++c)
    pixels[static_cast<std::int64_t>(c) * plane + y * picture.size(2) + x] =
        static_cast<std::uint8_t>(std::lround(colour[c]));
}

void draw_wave(const at::Tensor& sound, at::Tensor& picture) {
  const auto* samples = sound.data_ptr<float>();
  std::int64_t length = sound.numel();
  for (std::int64_t x = 0; x < kSoundWidth; ++x) {
    std::int64_t first = std::min(length - 1, x * length / kSoundWidth);
    std::int64_t end = std::max(first + 1, (x + 1) * length / kSoundWidth);
    auto [low, high] = std::minmax_element(samples + first, samples + std::min(length, end));
    auto row = [](float value) {
      return std::clamp<std::int64_t>(std::lround((1 - static_cast<double>(value)) / 2 * (kWaveHeight - 1)), 0,
                                      kWaveHeight - 1);
    };
    for (std::int64_t y = row(*high); y <= row(*low); ++y) paint(picture, y, x, kWave);
  }
}

// The loudest of the moments and frequencies that share a pixel.
void draw_spectrum(const at::Tensor& sound, at::Tensor& picture) {
  constexpr std::int64_t kWindow = 256;
  std::int64_t step = std::max<std::int64_t>(1, sound.numel() / (2 * kSoundWidth));
  at::Tensor padded = at::constant_pad_nd(sound, {kWindow / 2, kWindow / 2});
  at::Tensor frames = padded.unfold(0, kWindow, step) * at::hann_window(kWindow);
  at::Tensor levels = at::fft_rfft(frames).abs().clamp_min(1e-6).log10().mul(20).contiguous();  // [moments, 129]
  double loudest = std::max(levels.max().item<double>(), -60.0);
  const auto* level = levels.data_ptr<float>();
  std::int64_t moments = levels.size(0);
  std::int64_t bins = levels.size(1);
  for (std::int64_t x = 0; x < kSoundWidth; ++x) {
    std::int64_t first = std::min(moments - 1, x * moments / kSoundWidth);
    std::int64_t end = std::clamp((x + 1) * moments / kSoundWidth, first + 1, moments);
    for (std::int64_t y = 0; y < kSpectrumHeight; ++y) {
      std::int64_t low = y * bins / kSpectrumHeight;
      std::int64_t high = std::max(low + 1, (y + 1) * bins / kSpectrumHeight);
      float found = level[first * bins + low];
      for (std::int64_t t = first; t < end; ++t) {
        for (std::int64_t f = low; f < high; ++f) found = std::max(found, level[t * bins + f]);
      }
      paint(picture, kWaveHeight + kSpectrumHeight - 1 - y, x,
            heat_colour((static_cast<double>(found) - loudest + kRange) / kRange));
    }
  }
}

}  // namespace

PictureSize picture_size(const SampleType& type) {
  if (type.kind == SampleKind::image) return {type.shape[1], type.shape[2]};
  return {kWaveHeight + kSpectrumHeight, kSoundWidth};
}

at::Tensor picture_of(const at::Tensor& sample, const SampleType& type) {
  if (type.kind == SampleKind::image) return sample;
  at::Tensor sound = sample.to(at::kFloat).mean(0).div(static_cast<double>(type.full())).contiguous();
  at::Tensor picture = at::empty({3, kWaveHeight + kSpectrumHeight, kSoundWidth}, at::kByte);
  for (std::int64_t y = 0; y < kWaveHeight; ++y) {
    for (std::int64_t x = 0; x < kSoundWidth; ++x) paint(picture, y, x, kGround);
  }
  draw_wave(sound, picture);
  draw_spectrum(sound, picture);
  return picture;
}

}  // namespace galvani
