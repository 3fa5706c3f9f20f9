// Whether this machine computes what the one did on which a campaign began.
#pragma once

#include <string>

#include "fuzz/batch.h"
#include "galvani/fuzz/settings.h"

namespace galvani {

// One micro-batch of seeds through the network in the campaign's own form and alone, and through a guide that has seen
// nothing; what the generator makes of the first seed. Each process of a crew takes it by itself: Error(environment) if
// they differ.
Probe take_probe(const BatchRunner& runner, Network& network, Guide& fresh, Corpus& corpus, const Generator& generator);

// Error(environment) that says what is computed otherwise, and the likely causes.
void check_probe(const Probe& then, const Probe& now, const std::string& folder);

}  // namespace galvani
