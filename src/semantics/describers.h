// The entries of the table of describers, and what they share.
#pragma once

#include "galvani/semantics/describer.h"

namespace galvani {

using DescriberEntry = DescriberRegistry::Entry;
DescriberEntry dissect_entry();
DescriberEntry formula_entry();
DescriberEntry captioner_entry();

// Of a neuron whose value never changes.
NeuronWords never_active();
// The places of the exemplars' layers in the network.
std::vector<int> taps_of(const Network& network, const Exemplars& exemplars);

}  // namespace galvani
