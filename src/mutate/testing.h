// Images and comparisons for the tests of this room.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <vector>

#include "galvani/base/error.h"
#include "galvani/base/rng.h"
#include "galvani/mutate/catalogue.h"

namespace galvani::testing {

// The type of images of a shape.
inline SampleType image_type(const ImageShape& shape) {
  return SampleType::image(shape.channels, shape.height, shape.width);
}

// [1, H, W] from rows of equal length.
inline at::Tensor gray(const std::vector<std::vector<int>>& rows) {
  at::Tensor image =
      at::empty({1, static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())}, at::kByte);
  auto* pixel = image.data_ptr<std::uint8_t>();
  for (const auto& row : rows) {
    for (int value : row) *pixel++ = static_cast<std::uint8_t>(value);
  }
  return image;
}

// Something like a picture: a bright slanted stripe, a dark corner, some texture; repeatable.
inline at::Tensor picture(const ImageShape& shape, std::uint64_t seed = 1) {
  at::Tensor image = at::empty({shape.channels, shape.height, shape.width}, at::kByte);
  auto* pixel = image.data_ptr<std::uint8_t>();
  Rng rng(seed);
  for (int c = 0; c < shape.channels; ++c) {
    for (int y = 0; y < shape.height; ++y) {
      for (int x = 0; x < shape.width; ++x) {
        int stripe = (x + 2 * y + 5 * c) % 11 < 4 ? 150 : 20;
        int corner = x + y < 3 ? 0 : stripe;
        *pixel++ = static_cast<std::uint8_t>(corner + static_cast<int>(rng.below(40)));
      }
    }
  }
  return image;
}

// Something like a sound: a few tones that come and go, some noise; repeatable.
inline at::Tensor sound(const SampleType& type, std::uint64_t seed = 1) {
  at::Tensor result = at::empty(type.shape, at::kShort);
  auto* sample = result.data_ptr<std::int16_t>();
  Rng rng(seed);
  for (std::int64_t c = 0; c < type.shape[0]; ++c) {
    for (std::int64_t i = 0; i < type.shape[1]; ++i) {
      double t = static_cast<double>(i) / static_cast<double>(type.rate);
      double tones =
          std::sin(2 * 3.14159265 * 220 * t) + 0.5 * std::sin(2 * 3.14159265 * 1300 * t + static_cast<double>(c));
      double value = 6000 * tones * (0.6 + 0.4 * std::sin(20 * t)) + static_cast<double>(rng.below(600)) - 300;
      *sample++ = static_cast<std::int16_t>(std::lround(value));
    }
  }
  return result;
}

// A picture or a sound of the type.
inline at::Tensor input_of(const SampleType& type, std::uint64_t seed = 1) {
  if (type.kind == SampleKind::audio) return sound(type, seed);
  return picture({static_cast<int>(type.shape[0]), static_cast<int>(type.shape[1]), static_cast<int>(type.shape[2])},
                 seed);
}

inline std::vector<int> values(const at::Tensor& image) {
  at::Tensor flat = image.contiguous().reshape(-1);
  const auto* first = flat.data_ptr<std::uint8_t>();
  return {first, first + flat.numel()};
}

// The rule's text applied to the image.
inline at::Tensor mutated(const std::string& rule, const at::Tensor& image, const MutationContext& context = {}) {
  MutatorSet set("rotation", context);
  return set.apply(set.parse(rule), image);
}

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return e.code() == ErrorCode::usage ? e.what() : std::string("not a usage error: ") + e.what();
  }
  return "";
}

}  // namespace galvani::testing
