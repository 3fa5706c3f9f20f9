// What a campaign tells those who watch it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/fuzz/records.h"
#include "galvani/fuzz/settings.h"

namespace galvani {

enum class CampaignStage { starting, repeating, running, finished };

// Everything there is to show. Totals are those of the campaign, earlier sessions included.
struct CampaignStatus {
  const CampaignRecord* record = nullptr;
  std::string folder;
  Budget budget;
  CampaignStage stage = CampaignStage::starting;
  bool resumed = false;
  std::int64_t repeat_until = 0;  // while repeating: the batch that was stored last

  CampaignCounters counters;
  std::int64_t seeds = 0;
  std::int64_t wrong_seeds = 0;
  std::int64_t tried_seeds = 0;   // picked at least once
  std::int64_t broken_seeds = 0;  // a fault was made of
  std::int64_t not_a_number = 0;  // faults whose scores are not finite
  std::int64_t corpus = 0;
  std::int64_t never_picked = 0;       // entries of the corpus
  double seconds = 0;                  // of work
  double session_seconds = 0;          // of this process
  std::int64_t session_mutants = 0;    // valid ones of this process
  double rate = 0;                     // valid mutants a second, lately
  double since_kept = 0;               // seconds since a mutant was kept last; negative: none in this session
  double since_fault = 0;              // likewise
  std::int64_t picks_since_kept = 0;   // what patience looks at
  std::vector<YieldRecord> kinds;      // of the generator, by name
  std::vector<YieldRecord> classes;    // of the seeds' labels
  std::vector<FaultRecord> recent;     // the newest faults, newest first, at most kRecent
  std::vector<TimelinePoint> history;  // at most kHistory points, evenly thinned, the newest included
  static constexpr std::size_t kRecent = 10;
  static constexpr std::size_t kHistory = 512;
};

class Listener {
 public:
  virtual ~Listener() = default;
  virtual void started(const CampaignStatus&) {}
  // After every batch, once it is stored, repeated ones too. `faults` are its new ones; their files were read back.
  virtual void batch(const CampaignStatus&, const std::vector<FaultRecord>& faults) {}
  // `reason`: "10,000 iterations are done".
  virtual void finished(const CampaignStatus&, const std::string& reason) {}
};

}  // namespace galvani
