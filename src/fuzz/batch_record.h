// What a campaign adds to its store: at the beginning, and with every batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/fuzz/records.h"

namespace galvani {

template <class Record>
struct WithImage {
  Record record;
  std::string encoded;
};
using NewSeed = WithImage<SeedRecord>;
using NewInput = WithImage<InputRecord>;

// What is known of the generator's kinds and of classes since the beginning.
struct Yields {
  std::vector<YieldRecord> kinds;    // in any order; those that were never drawn are not stored
  std::vector<YieldRecord> classes;  // by label
};

// Rows in the order of their numbers. `totals` is totals_value (chain.h) after them, `counters` likewise.
struct Beginning {
  std::string identity;  // CampaignRecord::identity
  std::vector<NewSeed> seeds;
  std::vector<WrongSeedRecord> wrong;
  std::vector<std::string> classes;  // a name for every label
  CampaignCounters counters;
  std::string totals;
  std::string absorbed;  // the guide's state after other data than the seeds were absorbed; empty: none were
};
struct BatchRecord {
  std::vector<std::int64_t> picks;  // entries that were picked; not read back, for the store keeps totals of them
  std::vector<NewInput> inputs;
  std::vector<FaultRecord> faults;
  std::vector<std::string> fault_images;  // a PNG each; empty: it shares the file of an earlier one. Not read back
  CampaignCounters counters;
  std::string totals;
};

}  // namespace galvani
