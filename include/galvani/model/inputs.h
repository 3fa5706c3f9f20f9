// Data as a network takes them, and their labels as what it is asked.
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

// Brings together what the network is asked and what data say is right: rows of 0 and 1 with a single 1 become classes,
// other rows of 0 and 1 make a network with a score for each a question of several labels, classes become the answers
// of a task by reference where they can. Error(bad_input) where they do not fit.
void settle_task(Network& network, Labelled& data);

// Of a task by reference, what is right of every input: [N, outputs], as the data say; undefined: they do not.
at::Tensor stated_references(const Network& network, const Labelled& data);

}  // namespace galvani
