// Annotation vectors (NSGen eq. 6 and 7): what an encoder of images sees where a neuron is active. The encoder is the
// bank of concepts, so that no file is needed; beside what lies under the mask there is what lies around it, and where
// and of what form the mask is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "galvani/base/archive.h"
#include "semantics/concepts/concept.h"

namespace galvani {

class Annotator {
 public:
  Annotator();
  // Learns from where on strengths count. Images [N, 3, side, side] uint8, as fitted() gives them.
  void learn(const at::Tensor& images);

  std::int64_t width() const;  // D
  // Images [C, H, W] uint8 and masks [H, W] of any size, as the encoder takes them.
  static at::Tensor fitted(const at::Tensor& image);
  static at::Tensor fitted_mask(const at::Tensor& mask);
  // What the encoder sees everywhere: image [3, side, side] uint8 → [maps, positions] float.
  at::Tensor see(const at::Tensor& image) const;
  // seen [..., maps, positions], masks [..., positions] float with as many → [..., D].
  at::Tensor annotate(const at::Tensor& seen, const at::Tensor& masks) const;

  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  std::vector<ConceptTest> tests_;
  Cutoffs cutoffs_{};
};

}  // namespace galvani
