// A campaign's faults once more: read from their files and judged again, by its own model or another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "galvani/base/gate.h"
#include "galvani/fuzz/reader.h"
#include "galvani/model/network.h"

namespace galvani {

// The network a campaign was run on, loaded as it was then; Error(bad_input) if its file is gone or has changed.
std::unique_ptr<Network> load_campaign_model(const CampaignRecord& record);

// One fault as it is judged now.
struct ReplayedFault {
  std::int64_t id = 0;
  std::int64_t seed = 0;
  std::string file;
  std::int64_t label = 0;
  std::int64_t before = 0;  // what it was taken for
  std::int64_t now = 0;
  bool fails() const { return now != label; }
};

struct Replay {
  bool same_model = true;  // the one the faults were found with
  std::int64_t faults = 0;
  std::int64_t fail = 0;          // the verdict is not the seed's label
  std::int64_t as_before = 0;     // and it is the same one
  std::int64_t not_a_number = 0;  // and it is no class
  std::int64_t seed_right = 0;    // of another model: it gets the fault's seed right
  std::int64_t seed_right_fail = 0;
  std::vector<std::string> unreadable;  // a sentence each
  std::vector<std::string> healed;      // files of faults that do not fail
  std::vector<ReplayedFault> each;      // those that could be read, by id

  // Every file was read and, by the model they were found with, every fault fails again.
  bool good() const { return unreadable.empty() && (!same_model || healed.empty()); }
  double transfer_rate() const;             // share of the faults that fail
  double seed_right_transfer_rate() const;  // of those whose seed the model gets right
};

// Verdicts are canonical: every image alone. Usage error if the network has another number of classes or its input does
// not fit. With a progress bar; Ctrl-C is honoured.
Replay replay_faults(const CampaignReader& reader, Network& network);

Figures figures_of(const Replay& replay);

}  // namespace galvani
