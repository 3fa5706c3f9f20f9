#include "galvani/model/inputs.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace galvani {

InputNeeds input_needs(const Network& network) {
  const ModelCard& card = network.card();
  return {network.info().input,   card.intake, network.info().path, card.class_names,
          network.info().classes, card.rate,   card.label_shift};
}

DataView open_data_for(const Network& network, const std::string& spec, const std::string& default_split) {
  return OpenedData(spec, default_split).view(input_needs(network));
}

std::string preprocessing_text(const Preprocess& p, SampleKind kind) {
  if (kind == SampleKind::image) return p.str();
  // Samples are as far below 0 as above it.
  std::string text = fmt::format("samples {}..{}", p.low - (p.high - p.low), p.high);
  if (!p.mean.empty()) text += fmt::format(", mean {}", fmt::join(p.mean, " "));
  if (!p.deviation.empty()) text += fmt::format(", std {}", fmt::join(p.deviation, " "));
  return text + (p.channels_last ? ", channels last" : "");
}

std::string preprocessing_text(const Network& network) {
  return preprocessing_text(network.card().preprocess, SampleType::of(network.info().input, 0).kind);
}

void settle_head(Network& network, const DataView& data) {
  constexpr std::int64_t kFirst = 64;
  if (!network.head_settled()) network.settle_head(data.fetch(0, std::min(kFirst, data.size())));
}

}  // namespace galvani
