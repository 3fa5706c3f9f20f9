// Read-only access to a campaign's folder, while it runs or after.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "galvani/data/sample.h"
#include "galvani/fuzz/records.h"
#include "galvani/fuzz/settings.h"

namespace galvani {

// From the seed to a candidate: provenances in the order they were applied, and what each step made.
struct Lineage {
  std::int64_t seed = 0;
  std::vector<std::string> rules;
  std::vector<std::int64_t> inputs;  // ids of the kept mutants between seed and end, the end included if it was kept
};

// What its generator measured, by name.
std::map<std::string, double> figures_of(const MutantRecord& mutant);

struct FaultFilter {
  std::optional<std::int64_t> label;  // nothing: any
  std::optional<std::int64_t> predicted;
  bool kept_only = false;
  bool distinct_only = false;
  bool by_turns = false;   // one of every seed, then a second of each, and so on; distinct ones first
  std::int64_t first = 1;  // ids from here on
  std::int64_t most = 0;   // 0: all
};

class CampaignReader {
 public:
  // Error(bad_input) if there is no campaign, or it is damaged. The folder of a run with islands is read as one
  // campaign (merged_view).
  explicit CampaignReader(const std::filesystem::path& where);
  ~CampaignReader();
  CampaignReader(CampaignReader&&) noexcept;

  const std::filesystem::path& folder() const;
  // What it was opened by: the run's folder, where that holds islands.
  const std::filesystem::path& opened() const;
  const CampaignRecord& record() const;
  SampleType type() const;                           // of every input
  std::string class_name(std::int64_t label) const;  // its name, or the number as text; also kNotANumber's
  std::int64_t classes() const { return record().classes; }

  CampaignCounters counters() const;
  double seconds() const;     // of work
  std::string begun() const;  // "2026-11-16 19:05 UTC"; empty: not known
  // At most `points` of them, evenly spaced by batch, the first and the last included; 0: all. The first is the state
  // before the first batch: what the seeds cover.
  std::vector<TimelinePoint> timeline(std::size_t points = 0) const;
  std::vector<YieldRecord> kinds() const;          // of the generator, by name
  std::vector<YieldRecord> by_class() const;       // of the seeds' labels, in order
  std::vector<ConfusionRecord> confusion() const;  // what occurs, by label and verdict

  std::vector<SeedRecord> seeds() const;
  SeedFigures seed_figures() const;
  std::vector<std::int64_t> broken_at() const;     // the iteration in which each broken seed broke, in order
  std::string seed_name(std::int64_t seed) const;  // the file it was in, or "item 17" of the data
  std::vector<WrongSeedRecord> wrong_seeds() const;
  std::vector<FaultRecord> faults(const FaultFilter& filter = {}) const;
  void for_each_fault(const FaultFilter& filter, const std::function<void(const FaultRecord&)>& visit) const;
  FaultRecord fault(std::int64_t id) const;  // usage error if there is none
  void for_each_input(const std::function<void(const InputRecord&)>& visit) const;
  InputRecord input(std::int64_t id) const;

  Lineage lineage(const FaultRecord& fault) const;
  Lineage lineage(const InputRecord& input) const;

  // [C, H, W] uint8. A seed or kept mutant comes from the store, a fault from its file in the folder; Error(bad_input)
  // if it is gone, damaged, not a file of ours, or has other pixels than were recorded. Of faults several at a time.
  at::Tensor image(std::int64_t id) const;
  at::Tensor image(const FaultRecord& fault) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace galvani
