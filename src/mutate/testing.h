// Images and comparisons for the tests of this room.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "galvani/base/error.h"
#include "galvani/base/rng.h"
#include "galvani/mutate/catalogue.h"

namespace galvani::testing {

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
