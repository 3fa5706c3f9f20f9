// What a campaign knows between two batches, and its snapshots.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>

#include "fuzz/batch_record.h"
#include "fuzz/chain.h"
#include "fuzz/staging.h"
#include "galvani/fuzz/corpus.h"
#include "galvani/fuzz/guide.h"
#include "galvani/fuzz/records.h"
#include "galvani/fuzz/scheduler.h"

namespace galvani {

// Which images were seen, by 128 bits of their SHA-256 and their label.
class SeenImages {
 public:
  // The number of the first one that was like this: `id` itself if there was none.
  std::int64_t first(const std::string& sha256, std::int64_t label, std::int64_t id);

 private:
  struct Key {
    std::uint64_t a, b;
    bool operator==(const Key& other) const { return a == other.a && b == other.b; }
  };
  struct Hash {
    std::size_t operator()(const Key& key) const { return key.a; }
  };
  std::unordered_map<Key, std::int64_t, Hash> ids_;
};

struct CampaignState {
  CampaignState(Corpus entries, std::unique_ptr<Guide> deciding, std::unique_ptr<Scheduler> picking)
      : corpus(std::move(entries)), guide(std::move(deciding)), scheduler(std::move(picking)) {}

  Corpus corpus;
  std::unique_ptr<Guide> guide;
  std::unique_ptr<Scheduler> scheduler;
  CampaignCounters counters;
  Yields yields;                     // every kind and class there is, drawn or not
  std::int64_t last_kept = 0;        // iteration in which a candidate was kept, or the guide was reset
  std::int64_t never_picked = 0;     // entries
  SeenImages seen_kept, seen_fault;  // the seeds are among the kept
  PickSum picks;                     // of all entries
  std::vector<char> broken;          // by seed: whether a fault was made of it
  std::int64_t broken_seeds = 0;
  std::int64_t tried_seeds = 0;  // picked at least once
  // Entries of other islands by packed_origin: the number they have here.
  std::unordered_map<std::int64_t, std::int64_t> adopted;

  void break_seed(std::int64_t id) {
    char& known = broken[static_cast<std::size_t>(id - 1)];
    broken_seeds += known == 0 ? 1 : 0;
    known = 1;
  }
  bool is_seed(std::int64_t id) const { return id <= static_cast<std::int64_t>(broken.size()); }
};

// Snapshots in state/ of a campaign's folder: what does not follow from the store alone. `campaign` tells campaigns
// apart.
class Snapshots {
 public:
  Snapshots(const std::filesystem::path& folder, std::string campaign);

  // `chain` is the store's chain value of the state's batch.
  void save(const CampaignState& state, const std::string& chain) const;
  // Error(bad_input) unless the snapshot of a batch is whole, of this campaign, and of the state with this chain value.
  void check(std::int64_t batch, const std::string& chain) const;
  // Batches of which there are snapshots, newest first.
  std::vector<std::int64_t> batches() const;
  // What a snapshot holds besides the guide's state. Error(bad_input) if it is damaged, or not of the batch that has
  // this chain value.
  struct Loaded {
    CampaignCounters counters;
    Yields yields;
    std::int64_t last_kept = 0;
    std::vector<std::int64_t> picks;
  };
  Loaded load(std::int64_t batch, const std::string& chain, Guide& guide) const;

 private:
  std::filesystem::path path(std::int64_t batch) const;
  void read_head(ArchiveReader& in, std::uint32_t version, std::int64_t batch, const std::string& chain,
                 CampaignCounters& counters) const;

  std::filesystem::path folder_;
  Staging staging_;
  std::string campaign_;
};

}  // namespace galvani
