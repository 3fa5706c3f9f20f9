#include "galvani/generate/examples.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/data/similarity.h"
#include "galvani/model/translator.h"

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
  auto names = [&](const std::vector<const char*>& wanted) {
    return info.outputs.size() >= wanted.size() &&
           std::equal(wanted.begin(), wanted.end(), info.outputs.begin(),
                      [](const char* name, const GraphOutput& output) { return output.name == name; });
  };
  two_ways_ = names({kExample, kTransformed, kExampleOfSecond, kTransformedOfSecond, kDomainScore});
  if (!two_ways_ && network.card().architecture.rfind(kCycleOf, 0) == 0)
    bad_input(
        "{}: was trained by an earlier build of galvani, which makes the examples of both domains by way of the first; "
        "train it again with galvani train-generator",
        info.path);
  if (!two_ways_) return;
  at::Tensor weight = network.parameter("domain.weight").flatten().to(at::kDouble).contiguous();
  weight_.assign(weight.data_ptr<double>(), weight.data_ptr<double>() + weight.numel());
  bias_ = network.parameter("domain.bias").item<double>();
  auto values = std::accumulate(info.input.begin(), info.input.end(), std::size_t{1}, std::multiplies<>());
  if (weight_.size() != values)
    bad_input("{}: its layer 'domain' has {} weights for images of {} values", info.path, weight_.size(), values);
}

std::vector<char> ImageToImage::domains(const at::Tensor& images, const std::vector<std::string>& classes) const {
  std::vector<char> result(static_cast<std::size_t>(images.size(0)), 0);
  if (!two_ways_) return result;
  auto names = [](const std::vector<std::string>& all, const std::string& name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  const ModelCard& card = network_.card();
  for (std::size_t i = 0; i < result.size(); ++i) {
    bool first = !classes.empty() && names(card.first_domain, classes[i]);
    bool second = !classes.empty() && names(card.second_domain, classes[i]);
    if (!first && !second) {
      at::Tensor input = card.preprocess.apply(images.narrow(0, static_cast<std::int64_t>(i), 1)).contiguous();
      const auto* x = input.data_ptr<float>();
      double score = bias_;
      for (std::size_t v = 0; v < weight_.size(); ++v) score += weight_[v] * static_cast<double>(x[v]);
      second = score > 0;
    }
    result[i] = second ? 1 : 0;
  }
  return result;
}

std::string ImageToImage::rule() const {
  if (!two_ways_) return "";
  const ModelCard& card = network_.card();
  if (card.first_domain.empty())
    return "images nearer to the mean of the first domain become Q(P(x)), those nearer to that of the second P(Q(y))";
  return fmt::format("images of class {} become Q(P(x)), those of class {} P(Q(y)), all others go by the nearer mean",
                     fmt::join(card.first_domain, ", "), fmt::join(card.second_domain, ", "));
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
  Application own = how;
  const NetworkInfo& info = network_.info();
  if (own.outputs.empty()) own.outputs = {0};
  if (!two_ways_ && info.outputs.size() > 1 && info.outputs[1].shape == info.input) own.outputs = {0, 1};
  std::vector<at::Tensor> values = network_.apply(images, own);
  return {to_file_unit(values[0]), values.size() > 1 ? to_file_unit(values[1]) : at::Tensor()};
}

ImageToImage::Made ImageToImage::make(const at::Tensor& images, const std::vector<char>& domains,
                                      const Application& how) const {
  if (!two_ways_) return make(images, how);
  Made made{at::empty(images.sizes(), at::kFloat), at::empty(images.sizes(), at::kFloat)};
  for (std::size_t domain : {0, 1}) {
    std::vector<std::int64_t> rows;
    for (std::size_t i = 0; i < domains.size(); ++i) {
      if (domains[i] == static_cast<char>(domain)) rows.push_back(static_cast<std::int64_t>(i));
    }
    if (rows.empty()) continue;
    Application own = how;
    own.outputs = domain == 0 ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{2, 3};
    if (own.random) {
      // What a row draws follows from its number among all, not among those of its domain.
      own.random->rows.clear();
      for (std::int64_t row : rows) own.random->rows.push_back(how.random->number(row));
    }
    at::Tensor places = at::tensor(rows, at::kLong);
    Made part = make(images.index_select(0, places), own);
    made.examples.index_copy_(0, places, part.examples);
    made.transformed.index_copy_(0, places, part.transformed);
  }
  return made;
}

std::vector<std::string> class_names_of(const Labelled& data) {
  std::vector<std::string> names;
  const auto* labels = data.labels.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < data.labels.numel(); ++i)
    names.push_back(labels[i] == Labelled::kUnlabelled ? "" : data.class_name(labels[i]));
  return names;
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

ExampleFigures measure_examples(const ImageToImage& translator, const Dataset& originals, std::uint64_t seed) {
  std::vector<char> domains = translator.domains(originals.images, class_names_of(originals));
  auto made = [&](std::uint64_t draw) {
    Application how;
    how.random = RandomLayers{seed, static_cast<std::int64_t>(draw) * originals.size(), {}};
    return translator.make(originals.images, domains, how);
  };
  ImageToImage::Made once = made(0);
  at::Tensor transformed = once.transformed.defined() ? to_bytes(once.transformed) : at::Tensor();
  return measure_examples(originals.images, transformed, to_bytes(once.examples), to_bytes(made(1).examples));
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
