// Fog, rain, snow and frost: a veil over the image, drawn from the rule's seed.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "galvani/base/rng.h"
#include "mutate/families.h"
#include "mutate/tone.h"

namespace galvani::mutate {
namespace {

// How much of each pixel is covered, 0 to 1, row by row.
using Veil = std::vector<float>;

struct Colour {
  double channel[3];
  double of(int c, int channels) const {
    return channels == 1 ? (channel[0] + channel[1] + channel[2]) / 3 : channel[c];
  }
};

// The cell a position is in, and how far on the way to the next, eased at both ends.
std::pair<std::size_t, float> smooth_position(double position) {
  auto cell = static_cast<std::size_t>(position);
  double way = position - static_cast<double>(cell);
  return {cell, static_cast<float>(way * way * (3 - 2 * way))};
}

// Smooth noise from 0 to 1 in several sizes, the largest about half the image.
Veil clouds(const ImageShape& shape, Rng& rng) {
  Veil result(shape.plane(), 0.0F);
  double cell = std::max(shape.height, shape.width) / 2.0;
  double weight = 0.5, total = 0;
  for (int octave = 0; octave < 4 && cell >= 1; ++octave) {
    auto columns = static_cast<std::size_t>(shape.width / cell) + 2;
    auto rows = static_cast<std::size_t>(shape.height / cell) + 2;
    std::vector<float> lattice(columns * rows);
    rng.fill_uniform(lattice.data(), lattice.size());
    // Every row interpolates at the same columns.
    std::vector<std::pair<std::size_t, float>> across(static_cast<std::size_t>(shape.width));
    for (std::size_t x = 0; x < across.size(); ++x) across[x] = smooth_position(static_cast<double>(x) / cell);
    float* out = result.data();
    for (int y = 0; y < shape.height; ++y) {
      auto [row, down] = smooth_position(y / cell);
      for (const auto& [column, right] : across) {
        const float* at = &lattice[row * columns + column];
        float top = at[0] + right * (at[1] - at[0]);
        float bottom = at[columns] + right * (at[columns + 1] - at[columns]);
        *out++ += static_cast<float>(weight) * (top + down * (bottom - top));
      }
    }
    total += weight;
    cell /= 2;
    weight /= 2;
  }
  // The extremes of a sum of noise are rare: stretch what is left in the middle.
  for (float& value : result) {
    float scaled = total > 0 ? value / static_cast<float>(total) : 0.5F;
    value = std::clamp((scaled - 0.5F) * 1.6F + 0.5F, 0.0F, 1.0F);
  }
  return result;
}

void cover(Veil& veil, const ImageShape& shape, int x, int y, double amount) {
  if (x < 0 || y < 0 || x >= shape.width || y >= shape.height) return;
  float& at = veil[static_cast<std::size_t>(y) * static_cast<std::size_t>(shape.width) + static_cast<std::size_t>(x)];
  at = std::min(1.0F, at + static_cast<float>(amount));
}

class Weather : public ImageMutator {
 public:
  Weather() : ImageMutator({MutatorGroup::style}) {}

 private:
  // A veil of full strength is never opaque; `strength` may also thicken it.
  virtual Veil draw(double strength, const ImageShape& shape, Rng& rng) const = 0;
  virtual Colour colour() const = 0;

  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    Rng rng(static_cast<std::uint64_t>(v[1]));
    Veil veil = draw(v[0], shape, rng);
    for (int c = 0; c < shape.channels; ++c) {
      double towards = colour().of(c, shape.channels);
      for (std::size_t i = 0; i < veil.size(); ++i, ++in, ++out) *out = to_byte(*in + veil[i] * (towards - *in));
    }
  }
};

class Fog : public Weather {
  Colour colour() const override { return {{222, 224, 226}}; }
  Veil draw(double strength, const ImageShape& shape, Rng& rng) const override {
    Veil veil = clouds(shape, rng);
    for (float& value : veil) value = static_cast<float>(strength * (0.45 + 0.45 * value));
    return veil;
  }
};

class Rain : public Weather {
  Colour colour() const override { return {{200, 206, 212}}; }
  Veil draw(double strength, const ImageShape& shape, Rng& rng) const override {
    Veil veil(shape.plane(), static_cast<float>(0.08 * strength));  // the air is gray too
    double length = std::max(2.0, shape.height / 5.0);
    double slant = rng.uniform(-0.35, 0.35);
    auto streaks = static_cast<std::int64_t>(std::ceil(strength * static_cast<double>(shape.plane()) / (6 * length)));
    for (; streaks > 0; --streaks) {
      double x = rng.uniform(-0.1, 1.1) * shape.width;
      double y = rng.uniform(-0.2, 1.0) * shape.height;
      double amount = strength * rng.uniform(0.3, 0.7);
      double reach = length * rng.uniform(0.6, 1.2);
      for (int k = 0; k < reach; ++k) {
        // A column and its neighbour share the streak, so that a slanted one is smooth.
        double column = x + slant * k;
        int left = static_cast<int>(std::floor(column));
        double right = column - left;
        cover(veil, shape, left, static_cast<int>(std::floor(y + k)), amount * (1 - right));
        cover(veil, shape, left + 1, static_cast<int>(std::floor(y + k)), amount * right);
      }
    }
    for (float& value : veil) value = std::min(value, static_cast<float>(strength));
    return veil;
  }
};

class Snow : public Weather {
  Colour colour() const override { return {{250, 251, 253}}; }
  Veil draw(double strength, const ImageShape& shape, Rng& rng) const override {
    Veil veil(shape.plane(), static_cast<float>(0.12 * strength));
    double size = std::max(shape.height, shape.width) / 45.0;
    auto flakes = static_cast<std::int64_t>(
        std::ceil(strength * static_cast<double>(shape.plane()) / (14 * std::max(1.0, size * size))));
    for (; flakes > 0; --flakes) {
      double x = rng.uniform() * shape.width;
      double y = rng.uniform() * shape.height;
      double radius = std::max(0.7, size * rng.uniform(0.6, 1.5));
      double amount = rng.uniform(0.5, 1.0);
      auto reach = static_cast<int>(std::ceil(radius));
      for (int dy = -reach; dy <= reach; ++dy) {
        for (int dx = -reach; dx <= reach; ++dx) {
          int px = static_cast<int>(x) + dx;
          int py = static_cast<int>(y) + dy;
          double distance = std::hypot(px + 0.5 - x, py + 0.5 - y) / radius;
          if (distance < 1) cover(veil, shape, px, py, amount * (1 - distance * distance));
        }
      }
    }
    for (float& value : veil) value = std::min(value, static_cast<float>(strength));
    return veil;
  }
};

// Ridges of ice, growing from the border inwards with the strength.
class Frost : public Weather {
  Colour colour() const override { return {{214, 230, 244}}; }
  Veil draw(double strength, const ImageShape& shape, Rng& rng) const override {
    Veil veil = clouds(shape, rng);
    Veil fine = clouds(shape, rng);
    std::size_t at = 0;
    for (int y = 0; y < shape.height; ++y) {
      double v = shape.height > 1 ? 2.0 * y / (shape.height - 1) - 1 : 1;
      for (int x = 0; x < shape.width; ++x, ++at) {
        double u = shape.width > 1 ? 2.0 * x / (shape.width - 1) - 1 : 1;
        double border = std::max(std::abs(u), std::abs(v));
        double ridge = 1 - std::abs(2 * static_cast<double>(veil[at]) - 1);
        double ice = ridge * (0.6 + 0.4 * fine[at]);
        double crystal = 0.35 + 0.65 * ice * std::sqrt(ice);
        double grown = std::clamp(border + strength - 0.75 + 0.5 * (fine[at] - 0.5), 0.0, 1.0);
        veil[at] = static_cast<float>(strength * crystal * grown);
      }
    }
    return veil;
  }
};

}  // namespace

Made make_fog(const Options&, const MutationContext&) {
  return std::make_unique<Fog>();
}
Made make_rain(const Options&, const MutationContext&) {
  return std::make_unique<Rain>();
}
Made make_snow(const Options&, const MutationContext&) {
  return std::make_unique<Snow>();
}
Made make_frost(const Options&, const MutationContext&) {
  return std::make_unique<Frost>();
}

}  // namespace galvani::mutate
