// Why inputs were picked: what the network wavers between, and what in it changes with the input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/data/view.h"
#include "galvani/model/network.h"

namespace galvani {

// Changes of neurons are in units of their tap's standard deviation over the picks, so that taps can be compared.
struct LayerChange {
  std::string tap;
  double change = 0;         // mean over its neurons and the picks
  std::int64_t neuron = -1;  // that changes most over the picks
  double most = 0;           // by how much
};

struct PickReason {
  std::int64_t row = 0;
  std::int64_t second = -1;  // the class after the verdict; -1: there is none
  double confidence = 0;     // in it
  std::string against;       // the rule of the mutant it is compared with, or "original"; empty: nothing
  std::int64_t verdict = 0;  // on that
  std::string tap;           // where the neuron is that changes most
  std::int64_t neuron = -1;
  double change = 0;
};

struct SelectionReasons {
  std::vector<LayerChange> layers;  // the most sensitive first; empty: nothing was compared
  std::vector<PickReason> picks;    // in the order of the rows
};

struct ReasonRequest {
  std::vector<std::int64_t> rows;       // of the pool
  const DataView* originals = nullptr;  // what the pool was made of; else mutants are compared with
  std::string mutators = "nss";
  std::uint64_t seed = 0;
};

// Sounds without originals are compared with nothing.
SelectionReasons explain_picks(Network& network, const DataView& pool, const ReasonRequest& request);

}  // namespace galvani
