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
  std::string scheduler;  // empty: what the guide's paper uses; see completed()
  std::string generator;  // likewise
  std::int64_t seeds = 1000;
  std::int64_t energy = 0;  // 0: what one search of the generator takes, or 64
  std::int64_t batch = 16;
  std::int64_t patience = 200;
  bool stop_at_kept = false;     // NSGen's algorithm 1
  bool reset_when_full = false;  // NSGen 7.3
  std::string absorb = "seeds";
  std::string wrong_seeds = "leave";
  std::string labels;           // empty: the data's; "model": its own verdicts on the originals
  std::string island;           // "2/4": the second of four; empty: the campaign is the whole
  std::int64_t exchange = 0;    // iterations after which islands tell each other what they found; 0: never
  std::int64_t keep_files = 0;  // of so many faults, the first; 0: of all
  std::uint64_t seed = 0;
  std::string taps = "default";
  std::string neurons = "channel";
};

// With the scheduler, the generator and the energy that were left open. A campaign does this with what it is given.
CampaignSettings completed(CampaignSettings settings);

// One of several campaigns with the same settings and seeds, each of which starts from a share of them.
struct Island {
  std::int64_t number = 1;  // from 1
  std::int64_t of = 1;
  std::string str() const;
  bool has_seed(std::int64_t id) const { return (id - 1) % of == number - 1; }
};
// "" → 1/1. Usage error unless it is one island: "1,3/4" are several that were merged.
Island parse_island(const std::string& text);
// Iterations between two exchanges, whole batches of them; 0: there are none.
std::int64_t exchange_interval(const CampaignSettings& settings);

// How a setting is called on the command line and in campaign.toml, and what it is.
struct SettingInfo {
  const char* name;
  const char* help;
  double low = 0;  // of numbers
  double high = 0;
  std::vector<std::string> choices = {};  // of texts; empty: anything
};

// visit(info, value) for every setting, in the order of campaign.toml. `seed`, `taps` and `neurons` are shared with
// other verbs, whose flags set them.
template <class Settings, class Visit>
void for_each_setting(Settings& s, Visit&& visit) {
  constexpr double kMany = 1LL << 40;
  constexpr double kBatch = 1 << 20;
  visit(SettingInfo{"guide", "which candidates to keep (see --list)"}, s.guide);
  visit(SettingInfo{"scheduler", "which input to pick next (see --list)"}, s.scheduler);
  visit(SettingInfo{"generator", "how candidates are made (see --list)"}, s.generator);
  visit(SettingInfo{"seeds", "how many inputs to start from", 1, kMany}, s.seeds);
  visit(SettingInfo{"energy", "candidates of an input that was picked", 1, kBatch}, s.energy);
  visit(SettingInfo{"batch", "picks evaluated together", 1, kBatch}, s.batch);
  visit(SettingInfo{"patience", "picks without a kept candidate that count as full", 1, kMany}, s.patience);
  visit(SettingInfo{"stop-at-kept", "an input that was picked gives no more once a candidate is kept (NSGen's loop)"},
        s.stop_at_kept);
  visit(SettingInfo{"reset-when-full", "forget what is covered when nothing more can be, and go on"},
        s.reset_when_full);
  visit(SettingInfo{"absorb", "what counts as covered at the start", 0, 0, {"seeds", "train"}}, s.absorb);
  visit(SettingInfo{"wrong-seeds", "inputs that the model gets wrong as they are", 0, 0, {"leave", "keep"}},
        s.wrong_seeds);
  visit(SettingInfo{"labels",
                    "what is right: the model's own verdict on the original (default: the data's labels)",
                    0,
                    0,
                    {"model"}},
        s.labels);
  visit(SettingInfo{"island", "work on this island alone, such as 2/4 (a job of its own each, no exchange)"}, s.island);
  visit(SettingInfo{"exchange", "picks after which islands tell each other what they found; 0: never", 0, kMany},
        s.exchange);
  visit(
      SettingInfo{"keep-files",
                  "the first so many distinct faults get a file in faults/, the others lie in campaign.db, from where "
                  "every verb reads them and export writes them (0: all get one)",
                  0, kMany},
      s.keep_files);
  visit(SettingInfo{"seed", "of all random numbers"}, s.seed);
  visit(SettingInfo{"taps", "the layers looked at"}, s.taps);
  visit(SettingInfo{"neurons", "what counts as one", 0, 0, {"channel", "unit"}}, s.neurons);
}

// What the machine makes of a few inputs, taken when a campaign begins and again whenever it is gone on with.
struct Probe {
  std::string model;      // scores, traces and gains of the first seeds
  std::string generator;  // what it makes of the first seed
};

// Where the settings were applied. Hashes are SHA-256.
struct CampaignRecord {
  // Of the file. Version 2 knew mutators only, as settings of their own; a campaign keeps the version it began with.
  static constexpr int kNewest = 3;
  int format = kNewest;
  CampaignSettings settings;
  std::string version;  // of Galvani
  std::string model;    // absolute path
  std::string model_sha256;
  std::string input;                // "1,28,28"
  CardFlags preprocess;             // resolved: every field is set
  bool preprocess_assumed = false;  // nobody stated it
  std::int64_t classes{};           // the model's
  Execution execution;
  std::string data;  // its spec
  std::string data_sha256;
  std::string profile;         // where it came from; empty: none was needed
  std::string profile_sha256;  // of what it holds
  std::string style;           // the style source's spec; empty: the seeds
  std::string style_sha256;
  std::string generator_sha256;  // of the files it needs, such as style networks; empty: none
  std::string guide_sha256;      // likewise
  Probe probe;

  std::string to_toml() const;  // REQUIRES the newest format
  static CampaignRecord from_toml(const std::filesystem::path& path);
  // SHA-256 of every value but paths and versions: what the store is tied to.
  std::string identity() const;
  // What the network was asked (galvani/model/task.h), and whether that is by reference.
  Task task() const;
  bool by_reference() const;
  // What the user chose, as (name, text), in the order of for_each_setting.
  std::vector<std::pair<std::string, std::string>> choices() const;
  // What to type for the same campaign in another folder.
  std::string command() const;
  // One sentence a difference that matters, such as "guide is kmnc:k=100 there and nc:threshold=0.75 here"; empty: it
  // is the same campaign. Paths and versions do not matter, content does.
  std::vector<std::string> differences(const CampaignRecord& wanted) const;

 private:
  // Version 2's settings of mutation, as they stand in its file.
  struct Mutation {
    std::string mutators;
    double alpha = 0;
    double beta = 0;
    std::int64_t max_tries = 0;
  };
  template <class Record, class Visit>
  static void for_each_value(Record& record, Visit&& visit);
  Mutation mutation_;
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
