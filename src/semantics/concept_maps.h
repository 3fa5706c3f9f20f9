// Which concepts are where in a set of images, as bits on a grid.
#pragma once

#include <cstdint>
#include <vector>

#include "semantics/concepts/planes.h"

namespace galvani {

class ConceptMaps {
 public:
  ConceptMaps() = default;
  ConceptMaps(const Grid& grid, std::int64_t images, std::size_t concepts);

  const Grid& grid() const { return grid_; }
  std::int64_t images() const { return images_; }
  std::size_t concepts() const { return concepts_; }
  std::size_t words() const { return words_; }  // of 64 bits, that one concept of one image takes

  const std::uint64_t* bits(std::int64_t image, std::size_t which) const {
    return bits_.data() + (static_cast<std::size_t>(image) * concepts_ + which) * words_;
  }
  std::uint64_t* bits(std::int64_t image, std::size_t which) {
    return bits_.data() + (static_cast<std::size_t>(image) * concepts_ + which) * words_;
  }
  static bool has(const std::uint64_t* bits, std::size_t position) {
    return (bits[position / 64] >> (position % 64) & 1U) != 0;
  }
  static void set(std::uint64_t* bits, std::size_t position) {
    bits[position / 64] |= std::uint64_t{1} << (position % 64);
  }

  // To be called when all bits are set.
  void count();
  std::int64_t area(std::size_t which) const { return area_[which]; }  // over all images
  // How many of the images have the concept at a position, as a share: [positions].
  const float* mean(std::size_t which) const {
    return mean_.data() + which * static_cast<std::size_t>(grid_.positions());
  }
  // How much of an image has the concept.
  double share(std::int64_t image, std::size_t which) const;

  // On a coarser grid, where a neuron of so small a map looks: a cell has the concept if it has much of it, so that
  // the concept covers about as large a share of all images as before.
  ConceptMaps pooled(const Grid& grid) const;

 private:
  Grid grid_;
  std::int64_t images_ = 0;
  std::size_t concepts_ = 0;
  std::size_t words_ = 0;
  std::vector<std::uint64_t> bits_;  // [images, concepts, words]
  std::vector<std::int64_t> area_;
  std::vector<float> mean_;  // [concepts, positions]
};

}  // namespace galvani
