#include "galvani/generate/examples.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/data/similarity.h"

namespace galvani {
namespace {

// What is a warning (docs/cagfuzz.md): round numbers well away from what a useful generator has.
constexpr double kLeastChange = 0.5;      // grey levels: below, nearly every pixel is rounded to what it was
constexpr double kMostUnchanged = 0.5;    // share of examples that are their originals
constexpr double kMostAlike = 0.98;       // SSIM of the transformed: nothing was transformed
constexpr double kLeastSpread = 0.25;     // of the originals' deviation
constexpr double kLeastSimilarity = 0.5;  // SSIM: the way back was not learned
constexpr double kLeastVariety = 0.05;    // grey levels

std::vector<double> similarities(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor left = a.contiguous(), right = b.contiguous();
  std::int64_t bytes = left[0].numel();
  std::vector<double> result(static_cast<std::size_t>(left.size(0)));
  workers().run(left.size(0), [&](std::int64_t i, int) {
    result[static_cast<std::size_t>(i)] =
        structural_similarity(left.data_ptr<std::uint8_t>() + i * bytes, right.data_ptr<std::uint8_t>() + i * bytes,
                              left.size(1), left.size(2), left.size(3));
  });
  return result;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double mean_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kFloat) - b.to(at::kFloat)).abs().mean().item<double>();
}

// Deviation of a pixel over the images, root mean square over pixels.
double deviation(const at::Tensor& images) {
  return std::sqrt(images.to(at::kFloat).var(0, /*unbiased=*/false).mean().item<double>());
}

}  // namespace

ImageToImage::ImageToImage(Network& network) : network_(network) {
  const NetworkInfo& info = network.info();
  if (info.input.size() != 3 || info.outputs.empty() || info.outputs[0].shape != info.input)
    bad_input("{}: makes {} of an image of {}, so it is no generator of examples (galvani train-generator makes one)",
              info.path, info.outputs.empty() ? "nothing" : fmt::format("{}", fmt::join(info.outputs[0].shape, "x")),
              fmt::format("{}", fmt::join(info.input, "x")));
}

at::Tensor ImageToImage::to_file_unit(const at::Tensor& value) const {
  const Preprocess& p = network_.card().preprocess;
  // The inverse of what is done to the input, without the order of channels, which is undone last.
  at::Tensor result = value;
  auto along_channels = [](const std::vector<double>& numbers) {
    return at::tensor(numbers, at::kFloat).view({-1, 1, 1});
  };
  if (!p.deviation.empty()) result = result * along_channels(p.deviation);
  if (!p.mean.empty()) result = result + along_channels(p.mean);
  result = (result - p.low) * (255 / (p.high - p.low));
  return p.bgr ? result.flip(1) : result;
}

ImageToImage::Made ImageToImage::make(const at::Tensor& images, const Application& how) const {
  std::vector<at::Tensor> values = network_.apply(images, how);
  Made made{to_file_unit(values[0]), {}};
  const NetworkInfo& info = network_.info();
  if (values.size() > 1 && info.outputs[1].shape == info.input) made.transformed = to_file_unit(values[1]);
  return made;
}

at::Tensor to_bytes(const at::Tensor& images) {
  return images.nan_to_num(0, 255, 0).round().clamp(0, 255).to(at::kByte);
}

ExampleFigures measure_examples(const at::Tensor& originals, const at::Tensor& transformed, const at::Tensor& examples,
                                const at::Tensor& again) {
  if (originals.size(0) == 0) bad_usage("there are no images to measure examples of");
  ExampleFigures figures;
  figures.images = originals.size(0);
  std::vector<double> alike = similarities(originals, examples);
  figures.similarity = mean(alike);
  std::sort(alike.begin(), alike.end());
  for (std::size_t i = 0; i < figures.quantiles.size(); ++i) {
    auto last = static_cast<double>(alike.size() - 1);
    figures.quantiles[i] = alike[static_cast<std::size_t>(std::lround(ExampleFigures::kShares[i] * last))];
  }
  figures.change = mean_difference(originals, examples);
  figures.unchanged = originals.eq(examples).flatten(1).all(1).to(at::kFloat).mean().item<double>();
  const at::Tensor& on_the_way = transformed.defined() ? transformed : examples;
  figures.transformed_similarity = mean(similarities(originals, on_the_way));
  figures.spread = deviation(on_the_way) / std::max(deviation(originals), 1e-9);
  figures.variety = mean_difference(examples, again);
  return figures;
}

ExampleFigures measure_examples(const ImageToImage& translator, const at::Tensor& originals, std::uint64_t seed) {
  auto made = [&](std::uint64_t draw) {
    Application how;
    how.random = RandomLayers{seed, static_cast<std::int64_t>(draw) * originals.size(0)};
    return translator.make(originals, how);
  };
  ImageToImage::Made once = made(0);
  at::Tensor transformed = once.transformed.defined() ? to_bytes(once.transformed) : at::Tensor();
  return measure_examples(originals, transformed, to_bytes(once.examples), to_bytes(made(1).examples));
}

std::vector<std::string> complaints(const ExampleFigures& f) {
  std::vector<std::string> result;
  if (f.spread < kLeastSpread)
    result.push_back(
        fmt::format("it collapsed: transformed images vary {:.2f} times as much as the originals, so most look alike; "
                    "train with another --seed, a lower learning rate or a larger --cycle",
                    f.spread));
  if (f.similarity < kLeastSimilarity)
    result.push_back(fmt::format("it has not learned the way back: the mean SSIM of examples is {:.3f}; train longer",
                                 f.similarity));
  if (f.change < kLeastChange || f.unchanged > kMostUnchanged) {
    result.push_back(
        fmt::format("it has learned the identity: examples differ from their originals by {:.2f} grey levels on "
                    "average and {:.0f}% not at all; choose domains that differ (--domains), or stop earlier",
                    f.change, f.unchanged * 100));
  } else if (f.transformed_similarity > kMostAlike) {
    result.push_back(
        fmt::format("the way out does next to nothing: the mean SSIM of transformed images is {:.3f}; choose domains "
                    "that differ (--domains)",
                    f.transformed_similarity));
  }
  if (f.variety < kLeastVariety)
    result.push_back(
        fmt::format("examples of one image differ by {:.3f} grey levels only, so more than one is of no "
                    "use; raise dropout (--translator resnet:dropout=0.5)",
                    f.variety));
  return result;
}

Json as_json(const ExampleFigures& f) {
  Json quantiles = Json::array();
  for (std::size_t i = 0; i < f.quantiles.size(); ++i)
    quantiles.push_back({{"share", ExampleFigures::kShares[i]}, {"ssim", f.quantiles[i]}});
  return {{"images", f.images}, {"ssim", f.similarity},     {"ssim_quantiles", quantiles},
          {"change", f.change}, {"unchanged", f.unchanged}, {"transformed_ssim", f.transformed_similarity},
          {"spread", f.spread}, {"variety", f.variety},     {"complaints", complaints(f)}};
}

}  // namespace galvani
