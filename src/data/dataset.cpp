#include "galvani/data/dataset.h"

#include <ATen/ATen.h>

#include "bounds.h"
#include "galvani/base/error.h"

namespace galvani {

Dataset Dataset::subset(const std::vector<std::int64_t>& indices) const {
  for (std::int64_t index : indices) {
    if (index < 0 || index >= size())
      fail(ErrorCode::internal, "{}: image {} was asked for, but there are {}", name, index, size());
  }
  return {subset_of(*this, indices), images.index_select(0, label_tensor(indices))};
}

void validate(const Dataset& data) {
  const std::string& name = data.name;
  if (!data.images.defined() || data.images.dim() != 4 || data.images.scalar_type() != at::kByte)
    bad_input("{}: images must be a uint8 tensor of shape [N, C, H, W]", name);
  for (std::int64_t axis = 1; axis < 4; ++axis) {
    if (data.images.size(axis) < 1)
      bad_input("{}: the images have no pixels, their shape is {}", name, data.images.sizes());
  }
  if (data.labels.defined() && data.labels.dim() == 1 && data.labels.size(0) != data.size())
    bad_input("{}: there are {} images but {} labels", name, data.size(), data.labels.size(0));
  validate(static_cast<const Labelled&>(data));
}

}  // namespace galvani
