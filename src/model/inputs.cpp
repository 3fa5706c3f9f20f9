#include "galvani/model/inputs.h"

#include <algorithm>

namespace galvani {

InputNeeds input_needs(const Network& network) {
  const ModelCard& card = network.card();
  return {network.info().input, card.intake, network.info().path, card.class_names, network.info().classes, card.rate};
}

DataView open_data_for(const Network& network, const std::string& spec, const std::string& default_split) {
  return OpenedData(spec, default_split).view(input_needs(network));
}

void settle_head(Network& network, const DataView& data) {
  constexpr std::int64_t kFirst = 64;
  if (!network.head_settled()) network.settle_head(data.fetch(0, std::min(kFirst, data.size())));
}

}  // namespace galvani
