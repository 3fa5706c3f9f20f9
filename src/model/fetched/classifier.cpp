#include "model/fetched/classifier.h"

#include <algorithm>

#include "galvani/base/error.h"

namespace galvani {

Padding same_padding(std::int64_t side, std::int64_t kernel, std::int64_t stride) {
  std::int64_t left = (side + stride - 1) / stride;
  std::int64_t all = std::max<std::int64_t>(0, (left - 1) * stride + kernel - side);
  return {all / 2, all - all / 2};
}

std::int64_t windowed_side(std::int64_t side, std::int64_t kernel, std::int64_t stride, Padding padding) {
  return (side + padding.before + padding.after - kernel) / stride + 1;
}

std::vector<std::string> distinct_imagenet_names(std::vector<std::string> names) {
  for (std::string& name : names) std::replace(name.begin(), name.end(), '_', ' ');
  auto bird = std::find(names.begin(), names.end(), "crane");
  if (std::count(names.begin(), names.end(), "crane") == 2) *bird = "crane bird";
  auto suit = std::find(names.rbegin(), names.rend(), "maillot");
  if (std::count(names.begin(), names.end(), "maillot") == 2) *suit = "maillot tank suit";
  return names;
}

void LayerNames::add(const std::string& name) {
  bool plain = !name.empty() && name.find_first_of("/.") == std::string::npos;
  if (!plain || !known_.insert(name).second)
    bad_input("{}: the name of layer '{}' is not one of its own", label_, printable(name));
}

std::string finish_classifier(onnx::GraphWriter& writer, const ModelCard& card) {
  writer.metadata("galvani", card.to_json());
  return writer.bytes();
}

}  // namespace galvani
