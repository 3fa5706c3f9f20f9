// Is a campaign's folder what the campaign wrote, and what of it is still good?
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace galvani {

struct CheckOptions {
  bool lineages = true;  // make every mutant again from its parent
};

// One kind of thing that was looked at one by one.
struct CheckedPart {
  const char* name;  // "faults"
  std::int64_t all = 0;
  std::int64_t intact = 0;
};

struct CheckReport {
  std::vector<CheckedPart> parts;   // batches, seeds, outputs, faults, snapshots
  std::vector<std::string> damage;  // a sentence each that names a file or row
  std::vector<std::string> notes;   // what was not looked at, and why
  bool sound() const { return damage.empty(); }
};

// Reads everything and writes nothing: campaign.toml against the store, the store as a database, its rows against the
// chain of batches, totals and clock, every image, every fault's file, lineages, snapshots, profile and the seal of the
// last session. Error(bad_input) if there is no campaign or it cannot be read at all, Error(environment) while a
// process works in the folder. With a progress bar; Ctrl-C is honoured.
// Of a run with islands each of them is looked at.
CheckReport check_campaign(const std::filesystem::path& folder, const CheckOptions& options = {});

}  // namespace galvani
