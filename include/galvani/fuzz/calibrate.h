// From which similarity on the reasons of a decision count as others: NSGen's threshold (4.3.4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/data/view.h"
#include "galvani/model/network.h"
#include "galvani/semantics/path.h"

namespace galvani {

struct CalibrateOptions {
  double share = 0.01;             // of the inputs of each class, at least `least` of it
  std::int64_t least = 1;          // of each class
  std::int64_t most = 0;           // inputs in all; 0: no limit
  double quantile = 0.25;          // of the similarities: the threshold
  std::string mutators = "nsgen";  // a catalogue whose rules can be listed: each is tried on each input
  std::uint64_t seed = 0;
};

struct Calibrated {
  Calibration record;
  std::vector<double> similarity;  // of every mutant to its original, input by input, in the order of the rules
  std::vector<char> wrong;         // is the mutant's verdict another class than the label?
  std::vector<std::string> rules;
};

// With a progress bar; Ctrl-C is honoured. Inputs without a label count as what the network takes them for.
Calibrated calibrate(PathFinder& finder, Network& network, const DataView& data, const CalibrateOptions& options);

}  // namespace galvani
