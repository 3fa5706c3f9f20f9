// Data as a network takes them.
#pragma once

#include <string>

#include "galvani/data/view.h"
#include "galvani/model/network.h"

namespace galvani {

// What the network wants: the shape of its input, how images get it, its classes.
InputNeeds input_needs(const Network& network);

// Images made into the network's input, labels matched to its classes by name (docs/data.md); what was done is logged.
DataView open_data_for(const Network& network, const std::string& spec, const std::string& default_split = "test");

// What becomes of the values of a file, for people: "range 0..1, rgb, nchw", of sounds "samples -1..1".
std::string preprocessing_text(const Preprocess& preprocess, SampleKind kind);
std::string preprocessing_text(const Network& network);

// Network::settle_head on the first of them.
void settle_head(Network& network, const DataView& data);

}  // namespace galvani
