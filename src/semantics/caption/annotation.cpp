#include "semantics/caption/annotation.h"

#include <ATen/ATen.h>

#include <cmath>
#include <mutex>

#include "galvani/base/parallel.h"
#include "semantics/caption/scenes.h"
#include "semantics/quantile.h"

namespace galvani {
namespace {

constexpr std::int64_t kSide = kSceneSide;
constexpr Grid kSceneGrid{kSide, kSide};
constexpr std::int64_t kPlaceSide = 6;  // where the mask is
constexpr std::int64_t kFormSide = 8;   // what it looks like, wherever it is
constexpr double kEmpty = 1e-6;

// A mask moved to the middle and enlarged until it fills the picture: its form. [N, positions] → [N, form].
at::Tensor forms(const at::Tensor& masks) {
  at::Tensor planes = masks.view({-1, kSide, kSide});
  at::Tensor result = at::zeros({planes.size(0), kFormSide * kFormSide});
  for (std::int64_t i = 0; i < planes.size(0); ++i) {
    at::Tensor set = (planes[i] > 0).nonzero();
    if (set.size(0) == 0) continue;
    at::Tensor least = std::get<0>(set.min(0));
    at::Tensor most = std::get<0>(set.max(0));
    auto top = least[0].item<std::int64_t>();
    auto left = least[1].item<std::int64_t>();
    std::int64_t height = most[0].item<std::int64_t>() + 1 - top;
    std::int64_t width = most[1].item<std::int64_t>() + 1 - left;
    at::Tensor box = planes[i].narrow(0, top, height).narrow(1, left, width);
    result[i] = at::adaptive_avg_pool2d(box.unsqueeze(0).unsqueeze(0), {kFormSide, kFormSide}).flatten();
  }
  return result;
}

}  // namespace

Annotator::Annotator() : tests_(concept_tests(/*colour=*/true)) {}

void Annotator::learn(const at::Tensor& images) {
  std::array<QuantileSketch, kStrengths> sketches;
  std::mutex mutex;
  workers().run(images.size(0), [&](std::int64_t i, int) {
    Strengths strengths = strengths_of(make_planes(images[i], kSceneGrid));
    std::lock_guard<std::mutex> lock(mutex);  // counts are added up, so that their order does not matter
    for (std::size_t s = 0; s < kStrengths; ++s)
      sketches[s].add(strengths.values[s].data(), static_cast<std::int64_t>(strengths.values[s].size()));
  });
  for (std::size_t s = 0; s < kStrengths; ++s) {
    Cutoff cutoff = cutoff_of(static_cast<Strength>(s));
    cutoffs_[s] = std::max(sketches[s].at(cutoff.quantile).value, static_cast<float>(cutoff.floor));
  }
}

std::int64_t Annotator::width() const {
  auto maps = static_cast<std::int64_t>(tests_.size()) + 3;
  return 2 * maps + kPlaceSide * kPlaceSide + kFormSide * kFormSide + 2;
}

at::Tensor Annotator::fitted(const at::Tensor& image) {
  at::Tensor colour = image.size(0) == 3 ? image : image.to(at::kFloat).mean(0, true).expand({3, -1, -1});
  if (colour.size(1) == kSide && colour.size(2) == kSide) return colour.round().to(at::kByte).contiguous();
  at::Tensor whole = colour.to(at::kFloat).unsqueeze(0);
  bool smaller = colour.size(1) >= kSide && colour.size(2) >= kSide;
  at::Tensor sized =
      smaller ? at::adaptive_avg_pool2d(whole, {kSide, kSide}) : at::upsample_bilinear2d(whole, {kSide, kSide}, false);
  return sized[0].round().clamp(0, 255).to(at::kByte).contiguous();
}

at::Tensor Annotator::fitted_mask(const at::Tensor& mask) {
  at::Tensor whole = mask.to(at::kFloat).unsqueeze(0).unsqueeze(0);
  bool smaller = mask.size(0) >= kSide && mask.size(1) >= kSide;
  at::Tensor sized =
      smaller ? at::adaptive_avg_pool2d(whole, {kSide, kSide}) : at::upsample_bilinear2d(whole, {kSide, kSide}, false);
  return sized.flatten();
}

at::Tensor Annotator::see(const at::Tensor& image) const {
  Planes planes = make_planes(image, kSceneGrid);
  Strengths strengths = strengths_of(planes);
  auto positions = static_cast<std::size_t>(kSceneGrid.positions());
  at::Tensor result = at::empty({static_cast<std::int64_t>(tests_.size()) + 3, kSceneGrid.positions()});
  auto* row = result.data_ptr<float>();
  for (const ConceptTest& test : tests_) {
    Present present = test.on(planes, strengths, cutoffs_);
    for (std::size_t p = 0; p < positions; ++p) row[p] = present(p) ? 1 : 0;
    row += positions;
  }
  for (const std::vector<float>* plane : {&planes.red, &planes.green, &planes.blue}) {
    std::copy(plane->begin(), plane->end(), row);
    row += positions;
  }
  return result;
}

at::Tensor Annotator::annotate(const at::Tensor& seen, const at::Tensor& masks) const {
  std::vector<std::int64_t> shape(masks.sizes().begin(), masks.sizes().end() - 1);
  std::int64_t positions = masks.size(-1);
  at::Tensor flat = masks.reshape({-1, positions});
  at::Tensor maps = seen.reshape({flat.size(0), -1, positions});
  at::Tensor area = flat.sum(1, true);
  at::Tensor under = at::bmm(maps, flat.unsqueeze(2)).squeeze(2);
  at::Tensor around = maps.sum(2) - under;
  at::Tensor place = at::adaptive_avg_pool2d(flat.view({-1, 1, kSide, kSide}), {kPlaceSide, kPlaceSide}).flatten(1);
  std::vector<at::Tensor> parts = {under / (area + kEmpty),
                                   around / (static_cast<double>(positions) + kEmpty - area),
                                   place / (place.sum(1, true) + kEmpty),
                                   forms(flat),
                                   area / static_cast<double>(positions),
                                   (area + 1).log()};
  at::Tensor result = at::cat(parts, 1);
  shape.push_back(result.size(1));
  return result.view(shape);
}

void Annotator::save(ArchiveWriter& out) const {
  out.put(std::vector<float>(cutoffs_.begin(), cutoffs_.end()));
}

void Annotator::load(ArchiveReader& in) {
  std::vector<float> cutoffs = in.get_vector<float>(kStrengths);
  std::copy(cutoffs.begin(), cutoffs.end(), cutoffs_.begin());
}

}  // namespace galvani
