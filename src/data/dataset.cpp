#include "galvani/data/dataset.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include "bounds.h"
#include "galvani/base/error.h"

namespace galvani {

SampleType Dataset::type() const {
  return SampleType::of(images.sizes().slice(1).vec(), rate);
}

Dataset Dataset::subset(const std::vector<std::int64_t>& indices) const {
  for (std::int64_t index : indices) {
    if (index < 0 || index >= size())
      fail(ErrorCode::internal, "{}: input {} was asked for, but there are {}", name, index, size());
  }
  return {subset_of(*this, indices), images.index_select(0, label_tensor(indices)), rate};
}

void validate(const Dataset& data) {
  const std::string& name = data.name;
  bool images = data.images.defined() && data.images.dim() == 4 && data.images.scalar_type() == at::kByte;
  bool sounds = data.images.defined() && data.images.dim() == 3 && data.images.scalar_type() == at::kShort;
  if (!images && !sounds)
    bad_input("{}: images must be a uint8 tensor of shape [N, C, H, W], sounds an int16 one of [N, channels, length]",
              name);
  for (std::int64_t axis = 1; axis < data.images.dim(); ++axis) {
    if (data.images.size(axis) < 1)
      bad_input("{}: the {} have no {}, their shape is {}", name, data.type().noun(), images ? "pixels" : "samples",
                data.images.sizes());
  }
  if (sounds && data.rate < 1) bad_input("{}: sounds need a rate, samples a second", name);
  if (data.labels.defined() && data.labels.dim() == 1 && data.labels.size(0) != data.size())
    bad_input("{}: there are {} {} but {} labels", name, data.size(), data.type().noun(), data.labels.size(0));
  validate(static_cast<const Labelled&>(data));
}

}  // namespace galvani
