#include "galvani/model/inputs.h"

namespace galvani {

InputNeeds input_needs(const Network& network) {
  const ModelCard& card = network.card();
  return {network.info().input, card.intake, network.info().path, card.class_names, network.info().classes, card.rate};
}

DataView open_data_for(const Network& network, const std::string& spec, const std::string& default_split) {
  return OpenedData(spec, default_split).view(input_needs(network));
}

}  // namespace galvani
