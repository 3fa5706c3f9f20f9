#include "galvani/data/labels.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "bounds.h"
#include "galvani/base/error.h"

namespace galvani {

bool Labelled::labelled() const {
  return labels.defined() && labels.numel() > 0 && labels.min().item<std::int64_t>() >= 0;
}

std::int64_t Labelled::classes() const {
  if (!class_names.empty()) return static_cast<std::int64_t>(class_names.size());
  if (!labels.defined() || labels.numel() == 0) return 0;
  return std::max<std::int64_t>(0, labels.max().item<std::int64_t>() + 1);
}

std::string Labelled::class_name(std::int64_t label) const {
  if (label >= 0 && label < static_cast<std::int64_t>(class_names.size()))
    return class_names[static_cast<std::size_t>(label)];
  return label == kUnlabelled ? "unlabelled" : std::to_string(label);
}

std::string Labelled::file(std::int64_t row) const {
  return files.empty() ? "" : files[static_cast<std::size_t>(row)];
}

Labelled subset_of(const Labelled& data, const std::vector<std::int64_t>& indices) {
  Labelled result{
      data.name, data.labels.index_select(0, label_tensor(indices)), data.class_names, {}, data.sorted_classes, {}};
  if (data.answers.defined()) result.answers = data.answers.index_select(0, label_tensor(indices));
  if (data.files.empty()) return result;
  result.files.reserve(indices.size());
  for (std::int64_t index : indices) result.files.push_back(data.files[static_cast<std::size_t>(index)]);
  return result;
}

void validate(const Labelled& data) {
  const std::string& name = data.name;
  if (!data.labels.defined() || data.labels.dim() != 1 || data.labels.scalar_type() != at::kLong)
    bad_input("{}: labels must be an int64 tensor of shape [N]", name);
  if (!data.files.empty() && static_cast<std::int64_t>(data.files.size()) != data.labels.size(0))
    bad_input("{}: there are {} labels but {} file names", name, data.labels.size(0), data.files.size());
  bool answers = !data.answers.defined() || (data.answers.dim() == 2 && data.answers.scalar_type() == at::kFloat &&
                                             data.answers.size(0) == data.labels.size(0));
  if (!answers) bad_input("{}: answers must be a float tensor of shape [N, K]", name);
  if (data.answers.defined() && !at::isfinite(data.answers).all().item<bool>())
    bad_input("{}: there are answers that are no finite numbers", name);
  if (std::set<std::string>(data.class_names.begin(), data.class_names.end()).size() != data.class_names.size())
    bad_input("{}: two classes have the same name", name);
  std::int64_t limit =
      data.class_names.empty() ? Labelled::kMaxClasses : static_cast<std::int64_t>(data.class_names.size());
  auto labels = data.labels.accessor<std::int64_t, 1>();
  for (std::int64_t i = 0; i < labels.size(0); ++i) {
    if (labels[i] < Labelled::kUnlabelled || labels[i] >= limit)
      bad_input("{}: image {} has label {}, but labels are from 0 to {}", name, i, labels[i], limit - 1);
  }
}

}  // namespace galvani
