#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "galvani/base/error.h"
#include "galvani/model/train.h"

namespace galvani {
namespace {

// Moves the image by up to `pad` pixels; what comes in from outside is zero.
Augmentation crop(const Options& options) {
  std::int64_t pad = options.integer("pad");
  return [pad](at::Tensor& image, Rng& rng) {
    std::int64_t height = image.size(1);
    std::int64_t width = image.size(2);
    std::int64_t dy = rng.between(-pad, pad);
    std::int64_t dx = rng.between(-pad, pad);
    at::Tensor moved = at::zeros_like(image);
    std::int64_t rows = height - std::abs(dy);
    std::int64_t columns = width - std::abs(dx);
    if (rows > 0 && columns > 0) {
      const auto* source = image.data_ptr<std::uint8_t>();
      auto* target = moved.data_ptr<std::uint8_t>();
      std::int64_t sx = std::max<std::int64_t>(0, -dx), tx = std::max<std::int64_t>(0, dx);
      for (std::int64_t c = 0; c < image.size(0); ++c) {
        for (std::int64_t y = 0; y < rows; ++y) {
          std::int64_t sy = y + std::max<std::int64_t>(0, -dy), ty = y + std::max<std::int64_t>(0, dy);
          std::memcpy(target + (c * height + ty) * width + tx, source + (c * height + sy) * width + sx,
                      static_cast<std::size_t>(columns));
        }
      }
    }
    image.copy_(moved);
  };
}

Augmentation flip(const Options& options) {
  double p = options.real("p");
  return [p](at::Tensor& image, Rng& rng) {
    if (!rng.chance(p)) return;
    auto* pixel = image.data_ptr<std::uint8_t>();
    std::int64_t width = image.size(2);
    for (std::int64_t row = 0; row < image.size(0) * image.size(1); ++row)
      std::reverse(pixel + row * width, pixel + (row + 1) * width);
  };
}

// Blanks a random square (DeVries and Taylor 2017).
Augmentation cutout(const Options& options) {
  std::int64_t size = options.integer("size");
  return [size](at::Tensor& image, Rng& rng) {
    std::int64_t height = image.size(1);
    std::int64_t width = image.size(2);
    std::int64_t y = rng.between(0, height - 1) - size / 2;
    std::int64_t x = rng.between(0, width - 1) - size / 2;
    std::int64_t top = std::max<std::int64_t>(0, y), bottom = std::min(height, y + size);
    std::int64_t left = std::max<std::int64_t>(0, x), right = std::min(width, x + size);
    image.slice(1, top, bottom).slice(2, left, right).zero_();
  };
}

// k distinct images of the data, drawn from `rng`.
std::vector<std::int64_t> draw_share(const Dataset& data, double share, Rng& rng, const char* what) {
  if (share < 0 || share > 1) bad_usage("the share of {} is {}, but must be from 0 to 1", what, share);
  return rng.sample(data.size(), std::llround(static_cast<double>(data.size()) * share));
}

}  // namespace

const AugmentationRegistry& augmentations() {
  static const AugmentationRegistry registry(
      "augmentation",
      {{"none", "images as they are", {}, [](const Options&) { return [](at::Tensor&, Rng&) {}; }},
       {"crop", "move by up to a few pixels", {{"pad", std::int64_t{4}, "pixels at most", 0.0, 1000.0, {}}}, crop},
       {"flip", "mirror left and right", {{"p", 0.5, "probability", 0.0, 1.0, {}}}, flip},
       {"cutout", "blank a random square", {{"size", std::int64_t{8}, "side in pixels", 1.0, 1000.0, {}}}, cutout}});
  return registry;
}

Preprocess normalisation(const Dataset& data) {
  Preprocess result;
  if (data.type().kind == SampleKind::audio) return result;  // samples from -1 to 1 are what front ends expect
  for (std::int64_t c = 0; c < data.images.size(1); ++c) {
    at::Tensor counts = at::bincount(data.images.select(1, c).reshape(-1), {}, 256).to(at::kDouble);
    at::Tensor values = at::arange(256, at::kDouble) / 255;
    auto n = counts.sum().item<double>();
    double mean = (counts * values).sum().item<double>() / n;
    double variance = (counts * (values - mean).square()).sum().item<double>() / n;
    result.mean.push_back(mean);
    result.deviation.push_back(std::max(1.0 / 255, std::sqrt(variance)));
  }
  return result;
}

void add_label_noise(Dataset& data, double share, Rng rng) {
  std::int64_t classes = data.classes();
  if (classes < 2) bad_input("{}: label noise needs at least two classes", data.name);
  data.labels = data.labels.clone();
  auto labels = data.labels.accessor<std::int64_t, 1>();
  for (std::int64_t i : draw_share(data, share, rng, "label noise"))
    labels[i] =
        (labels[i] + 1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(classes - 1)))) % classes;
}

PatchSides parse_patch_sides(const std::string& text) {
  static const OptionInfo info = {"patch", std::int64_t{4}, "", 1.0, 1e6, {}};
  auto number = [&](const std::string& part) { return std::get<std::int64_t>(parse_option("pollution", info, part)); };
  std::size_t dots = text.find("..");
  if (dots == std::string::npos) return {number(text), number(text)};
  PatchSides sides{number(text.substr(0, dots)), number(text.substr(dots + 2))};
  if (sides.low > sides.high) bad_usage("pollution: the sides of patches, {}, must go upwards", printable(text));
  return sides;
}

void pollute(Dataset& data, double share, std::int64_t target, const PatchSides& sides, Rng rng) {
  if (data.type().kind != SampleKind::image) bad_usage("{}: patches are put on images, not on sounds", data.name);
  std::int64_t size = sides.high;
  if (target < 0 || target >= data.classes())
    bad_usage("pollution relabels as class {}, but {} has {} classes", target, data.name, data.classes());
  if (sides.low < 1 || sides.low > size || size > std::min(data.images.size(2), data.images.size(3)))
    bad_usage("a patch of {} pixels does not fit the images of {}", size, data.name);
  data.labels = data.labels.clone();
  data.images = data.images.clone();
  auto labels = data.labels.accessor<std::int64_t, 1>();
  at::Tensor patch = at::empty({data.images.size(1), size, size}, at::kByte);
  auto* pixels = patch.data_ptr<std::uint8_t>();
  for (std::int64_t k = 0; k < patch.numel(); ++k) pixels[k] = static_cast<std::uint8_t>(rng.below(256));
  for (std::int64_t i : draw_share(data, share, rng, "pollution")) {
    std::int64_t side = sides.low < size ? rng.between(sides.low, size) : size;
    std::int64_t y = rng.between(0, data.images.size(2) - side);
    std::int64_t x = rng.between(0, data.images.size(3) - side);
    data.images[i].slice(1, y, y + side).slice(2, x, x + side).copy_(patch.slice(1, 0, side).slice(2, 0, side));
    labels[i] = target;
  }
}

}  // namespace galvani
