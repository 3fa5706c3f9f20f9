// What a campaign is: everything its result depends on, as campaign.toml records it, and what may change between runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "galvani/model/card.h"
#include "galvani/model/network.h"

namespace galvani {

// What a user chooses. Specs are as written on the command line until a campaign resolves them.
struct CampaignSettings {
  std::string guide = "kmnc";
  std::string scheduler = "decay";
  std::string mutators = "nsgen";
  std::int64_t seeds = 1000;  // inputs the model gets right
  std::int64_t energy = 64;   // mutants a pick
  std::int64_t batch = 16;    // picks that are evaluated together
  double alpha = 0.2;         // validity (Validity)
  double beta = 0.4;
  std::int64_t max_tries = 50;   // for a valid mutant
  std::int64_t patience = 200;   // picks without a kept mutant after which a guide counts as saturated
  bool stop_at_kept = false;     // a pick ends with its first kept mutant (NSGen's algorithm 1)
  bool reset_when_full = false;  // a saturated guide starts again from nothing (NSGen 7.3)
  std::uint64_t seed = 0;
  std::string taps = "default";
  std::string neurons = "channel";
};

// What the machine makes of a few inputs, taken when a campaign begins and again whenever it is gone on with.
struct Probe {
  std::string model;     // scores, traces and gains of the first seeds
  std::string mutation;  // the first seed after rules of every family
};

// Where the settings were applied. Hashes are SHA-256.
struct CampaignRecord {
  CampaignSettings settings;
  std::string version;  // of Galvani
  std::string model;    // absolute path
  std::string model_sha256;
  std::string input;       // "1,28,28"
  CardFlags preprocess;    // resolved: every field is set
  std::int64_t classes{};  // the model's
  Execution execution;
  std::string data;  // its spec
  std::string data_sha256;
  std::string profile;         // where it came from; empty: none was needed
  std::string profile_sha256;  // of what it holds
  std::string style;           // the style source's spec; empty: the seeds
  std::string style_sha256;
  std::string style_network_sha256;  // of the networks that mutators name; empty: none does
  Probe probe;

  std::string to_toml() const;
  static CampaignRecord from_toml(const std::filesystem::path& path);
  // SHA-256 of every value but paths and versions: what the store is tied to.
  std::string identity() const;
  // What the user chose, as (name, text), in the order of the file.
  std::vector<std::pair<std::string, std::string>> choices() const;
  // One sentence a difference that matters, such as "guide is kmnc:k=100 there and nc:threshold=0.75 here"; empty: it
  // is the same campaign. Paths and versions do not matter, content does.
  std::vector<std::string> differences(const CampaignRecord& wanted) const;
};

// When to stop; the first one reached counts, at the end of a batch. Not part of a campaign's identity.
struct Budget {
  std::int64_t iterations = 0;  // 0: no such limit
  double seconds = 0;           // of work, earlier sessions included
  std::int64_t outputs = 0;     // kept mutants
  std::int64_t faults = 0;
};

// "90", "90s", "15m", "6h", "1.5h", "1d" → seconds; usage error otherwise.
double parse_duration(const std::string& text);

}  // namespace galvani
