#include "galvani/data/dataset.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <set>

#include "galvani/base/error.h"
#include "galvani/base/files.h"

namespace galvani {

bool Dataset::labelled() const {
  return labels.defined() && size() > 0 && labels.min().item<std::int64_t>() >= 0;
}

std::int64_t Dataset::classes() const {
  if (!class_names.empty()) return static_cast<std::int64_t>(class_names.size());
  if (!labels.defined() || labels.numel() == 0) return 0;
  return std::max<std::int64_t>(0, labels.max().item<std::int64_t>() + 1);
}

std::string Dataset::class_name(std::int64_t label) const {
  if (label >= 0 && label < static_cast<std::int64_t>(class_names.size()))
    return class_names[static_cast<std::size_t>(label)];
  return label == kUnlabelled ? "unlabelled" : std::to_string(label);
}

Dataset Dataset::subset(const std::vector<std::int64_t>& indices) const {
  for (std::int64_t index : indices) {
    if (index < 0 || index >= size())
      fail(ErrorCode::internal, "{}: image {} was asked for, but there are {}", name, index, size());
  }
  at::Tensor picked = at::empty({static_cast<std::int64_t>(indices.size())}, at::kLong);
  std::copy(indices.begin(), indices.end(), picked.data_ptr<std::int64_t>());
  return {name, images.index_select(0, picked), labels.index_select(0, picked), class_names};
}

void validate(const Dataset& data) {
  const std::string& name = data.name;
  if (!data.images.defined() || data.images.dim() != 4 || data.images.scalar_type() != at::kByte)
    bad_input("{}: images must be a uint8 tensor of shape [N, C, H, W]", name);
  for (std::int64_t axis = 1; axis < 4; ++axis) {
    if (data.images.size(axis) < 1)
      bad_input("{}: the images have no pixels, their shape is {}", name, data.images.sizes());
  }
  if (!data.labels.defined() || data.labels.dim() != 1 || data.labels.scalar_type() != at::kLong)
    bad_input("{}: labels must be an int64 tensor of shape [N]", name);
  if (data.labels.size(0) != data.size())
    bad_input("{}: there are {} images but {} labels", name, data.size(), data.labels.size(0));
  if (std::set<std::string>(data.class_names.begin(), data.class_names.end()).size() != data.class_names.size())
    bad_input("{}: two classes have the same name", name);
  std::int64_t limit =
      data.class_names.empty() ? Dataset::kMaxClasses : static_cast<std::int64_t>(data.class_names.size());
  auto labels = data.labels.accessor<std::int64_t, 1>();
  for (std::int64_t i = 0; i < labels.size(0); ++i) {
    if (labels[i] < Dataset::kUnlabelled || labels[i] >= limit)
      bad_input("{}: image {} has label {}, but labels are from 0 to {}", name, i, labels[i], limit - 1);
  }
}

std::string content_hash(const Dataset& data) {
  at::Tensor images = data.images.contiguous();
  at::Tensor labels = data.labels.contiguous();
  auto bytes = [](const at::Tensor& t) {
    return std::string_view(static_cast<const char*>(t.data_ptr()), static_cast<std::size_t>(t.nbytes()));
  };
  return sha256(fmt::format("{} {} {}", fmt::join(images.sizes(), "x"), sha256(bytes(images)), sha256(bytes(labels))));
}

Dataset concatenate(const std::vector<Dataset>& parts) {
  if (parts.size() == 1) return parts.front();
  Dataset result;
  std::vector<at::Tensor> images;
  std::vector<at::Tensor> labels;
  const Dataset* named = nullptr;
  for (const Dataset& part : parts) {
    if (part.images.sizes().slice(1) != parts.front().images.sizes().slice(1))
      bad_input("{} and {} cannot be joined: their images are {} and {}", parts.front().name, part.name,
                parts.front().images.sizes().slice(1), part.images.sizes().slice(1));
    if (named != nullptr && !part.class_names.empty() && part.class_names != named->class_names)
      bad_input("{} and {} cannot be joined: their classes are {} and {}", named->name, part.name,
                printable(fmt::format("{}", fmt::join(named->class_names, ", "))),
                printable(fmt::format("{}", fmt::join(part.class_names, ", "))));
    if (named == nullptr && !part.class_names.empty()) named = &part;
    result.name += (result.name.empty() ? "" : "+") + part.name;
    images.push_back(part.images);
    labels.push_back(part.labels);
  }
  if (named != nullptr) result.class_names = named->class_names;
  result.images = at::cat(images);
  result.labels = at::cat(labels);
  validate(result);
  return result;
}

}  // namespace galvani
