#include "semantics/concept_maps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "galvani/base/parallel.h"

namespace galvani {

ConceptMaps::ConceptMaps(const Grid& grid, std::int64_t images, std::size_t concepts)
    : grid_(grid),
      images_(images),
      concepts_(concepts),
      words_(static_cast<std::size_t>((grid.positions() + 63) / 64)),
      bits_(static_cast<std::size_t>(images) * concepts * words_),
      area_(concepts),
      mean_(concepts * static_cast<std::size_t>(grid.positions())) {}

void ConceptMaps::count() {
  auto positions = static_cast<std::size_t>(grid_.positions());
  workers().run(static_cast<std::int64_t>(concepts_), [&](std::int64_t index, int) {
    auto which = static_cast<std::size_t>(index);
    float* mean = mean_.data() + which * positions;
    std::fill(mean, mean + positions, 0.0F);
    for (std::int64_t image = 0; image < images_; ++image) {
      const std::uint64_t* of_image = bits(image, which);
      for (std::size_t p = 0; p < positions; ++p) mean[p] += has(of_image, p) ? 1.0F : 0.0F;
    }
    area_[which] = static_cast<std::int64_t>(std::accumulate(mean, mean + positions, 0.0));
    for (std::size_t p = 0; p < positions; ++p) mean[p] /= static_cast<float>(images_);
  });
}

double ConceptMaps::share(std::int64_t image, std::size_t which) const {
  const std::uint64_t* of_image = bits(image, which);
  std::int64_t count = 0;
  for (std::size_t w = 0; w < words_; ++w) count += __builtin_popcountll(of_image[w]);
  return static_cast<double>(count) / static_cast<double>(grid_.positions());
}

ConceptMaps ConceptMaps::pooled(const Grid& grid) const {
  ConceptMaps result(grid, images_, concepts_);
  auto cells = static_cast<std::size_t>(grid.positions());
  auto positions = static_cast<std::size_t>(grid_.positions());
  std::vector<std::uint32_t> cell_of(positions);
  std::vector<float> size(cells, 0);
  for (std::size_t p = 0; p < positions; ++p) {
    std::int64_t y = static_cast<std::int64_t>(p) / grid_.width * grid.height / grid_.height;
    std::int64_t x = static_cast<std::int64_t>(p) % grid_.width * grid.width / grid_.width;
    cell_of[p] = static_cast<std::uint32_t>(y * grid.width + x);
    size[cell_of[p]] += 1;
  }
  workers().run(static_cast<std::int64_t>(concepts_), [&](std::int64_t index, int) {
    auto which = static_cast<std::size_t>(index);
    std::vector<float> shares(static_cast<std::size_t>(images_) * cells, 0);
    for (std::int64_t image = 0; image < images_; ++image) {
      const std::uint64_t* of_image = bits(image, which);
      float* own = shares.data() + static_cast<std::size_t>(image) * cells;
      for (std::size_t p = 0; p < positions; ++p) own[cell_of[p]] += has(of_image, p) ? 1 : 0;
      for (std::size_t c = 0; c < cells; ++c) own[c] /= std::max(1.0F, size[c]);
    }
    double covered = static_cast<double>(area_[which]) / static_cast<double>(images_ * grid_.positions());
    auto wanted = static_cast<std::size_t>(std::llround(covered * static_cast<double>(shares.size())));
    if (wanted == 0) return;
    std::vector<float> sorted = shares;
    auto place = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() - wanted);
    std::nth_element(sorted.begin(), place, sorted.end());
    float cutoff = *place;
    if (cutoff <= 0) cutoff = std::numeric_limits<float>::min();
    for (std::int64_t image = 0; image < images_; ++image) {
      const float* own = shares.data() + static_cast<std::size_t>(image) * cells;
      std::uint64_t* out = result.bits(image, which);
      for (std::size_t c = 0; c < cells; ++c) {
        if (own[c] >= cutoff) set(out, c);
      }
    }
  });
  result.count();
  return result;
}

}  // namespace galvani
