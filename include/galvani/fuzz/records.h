// The rows of a campaign's store (docs/campaigns.md has the tables).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/data/sample.h"

namespace galvani {

// Seeds and kept mutants share one row of numbers, the seeds first, from 1. Iterations (picks) and batches count from
// 1, too; slots of a pick from 0.
struct SeedRecord {
  std::int64_t id = 0;
  std::int64_t item = 0;  // index in the data
  std::int64_t label = 0;
  double confidence = 0;
  double gain = 0;  // what it covered when the campaign began
  std::int64_t picks = 0;
  std::string sha256;  // of the pixels
  std::string source;  // the file it was in; empty: none of its own
  // Of a task by reference (galvani/model/task.h): the numbers that answers are held against, "0.25,-1".
  std::string reference = {};
};

// What became of the seeds. A campaign that began before changes were measured does not know the smallest ones.
struct SeedFigures {
  std::int64_t seeds = 0;
  std::int64_t tried = 0;        // picked at least once
  std::int64_t broken = 0;       // a fault was made of it
  std::vector<double> smallest;  // of each broken seed the smallest change (FaultRecord) that did it, in order
  std::int64_t looked_at = 0;    // inputs that were judged to choose the seeds
  std::int64_t right = 0;        // of them
  double share() const { return tried > 0 ? static_cast<double>(broken) / static_cast<double>(tried) : 0; }
  double accuracy() const { return looked_at > 0 ? static_cast<double>(right) / static_cast<double>(looked_at) : 0; }
  // The share of the tried seeds that a change of at most this size broke.
  double broken_by(double change) const;
};

// Not a seed, because the model gets it wrong without any help.
struct WrongSeedRecord {
  std::int64_t item = 0;
  std::int64_t label = 0;
  std::int64_t predicted = 0;  // kNotANumber: scores that are not finite
  double confidence = 0;
  std::string source;  // the file it was in; empty: none of its own
};

// An island and the number there, as one: island × 2^40 + id. Of rows that came from another island, or were merged.
constexpr std::int64_t kOriginStep = std::int64_t{1} << 40;
constexpr std::int64_t packed_origin(std::int64_t island, std::int64_t id) {
  return island * kOriginStep + id;
}

// How a candidate came to be and what the model said.
struct MutantRecord {
  std::int64_t id = 0;
  std::int64_t parent = 0;  // a seed or a kept mutant
  std::int64_t seed = 0;    // where the lineage starts
  std::int64_t iteration = 0;
  std::int64_t slot = 0;
  std::string rule;     // its provenance: what was done to the parent
  bool affine = false;  // its generator has a memo of the lineage: of mutation, the affine step it has had
  std::int64_t label = 0;
  std::int64_t predicted = 0;  // kNotANumber: scores that are not finite; such a mutant is a fault and never kept
  double confidence = 0;       // of the predicted class
  bool distinct = true;        // the first of its kind with these pixels and this label
  std::string sha256;          // of the pixels
  std::int64_t origin = 0;     // where it was found (packed_origin); 0: here
  bool unrepeatable = false;   // the provenance alone cannot make it again
  std::string figures;         // the generator's own, as a JSON object; empty: none
  std::string metadata;        // the guide's, likewise
};

struct InputRecord : MutantRecord {  // kept
  double gain = 0;
  bool fault = false;
  std::int64_t picks = 0;
};

struct FaultRecord : MutantRecord {  // ids of their own, from 1
  std::int64_t input = 0;            // its id among the kept; 0: not kept
  std::string file;                  // relative to the campaign's folder
  double change = 0;                 // from the seed: root mean square of all values, 1 is full scale; 0: not known
  bool kept() const { return input != 0; }
};

// "00000012-3-5.png", or "00000012-3-nan.png" where the verdict is not a number.
std::string fault_name(std::int64_t id, std::int64_t label, std::int64_t predicted, const SampleType& type);

// Faults of one class with one verdict.
struct ConfusionRecord {
  std::int64_t label = 0;
  std::int64_t predicted = 0;
  std::int64_t faults = 0;
};

// Totals since the beginning.
struct CampaignCounters {
  std::int64_t batches = 0;
  std::int64_t iterations = 0;
  std::int64_t mutants = 0;  // asked for
  std::int64_t valid = 0;    // judged by the model
  std::int64_t kept = 0;     // the papers' outputs
  std::int64_t distinct_kept = 0;
  std::int64_t faults = 0;
  std::int64_t distinct_faults = 0;
  std::int64_t kept_faults = 0;
  std::int64_t resets = 0;
  std::int64_t reexamined = 0;  // verdicts that were decided in canonical form
  double covered = 0;           // in the guide's unit
  double coverable = 0;         // 0: without end
  std::int64_t passes = 0;  // of inputs through the network: candidates, and what generator and guide ran themselves
  double coverage() const { return coverable > 0 ? covered / coverable : covered; }
};

// visit(column of the store, name for people and machines, value) for every counter, in the order of the table.
template <class Counters, class Visit>
void for_each_counter(Counters& c, Visit&& visit) {
  visit("batch", "batches", c.batches);
  visit("iterations", "iterations", c.iterations);
  visit("mutants", "mutants", c.mutants);
  visit("valid", "valid", c.valid);
  visit("kept", "outputs", c.kept);
  visit("distinct_kept", "distinct_outputs", c.distinct_kept);
  visit("faults", "faults", c.faults);
  visit("distinct_faults", "distinct_faults", c.distinct_faults);
  visit("kept_faults", "kept_faults", c.kept_faults);
  visit("resets", "resets", c.resets);
  visit("reexamined", "reexamined", c.reexamined);
  visit("covered", "covered", c.covered);
  visit("coverable", "coverable", c.coverable);
  visit("passes", "passes", c.passes);
}

struct TimelinePoint : CampaignCounters {
  double seconds = 0;  // of work until then
};

// What came of the mutants of one mutator or of one class.
struct YieldRecord {
  std::string name;
  std::int64_t mutants = 0;
  std::int64_t valid = 0;
  std::int64_t kept = 0;
  std::int64_t faults = 0;
  std::int64_t kept_faults = 0;
};

}  // namespace galvani
