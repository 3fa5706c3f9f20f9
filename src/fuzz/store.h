// campaign.db, as the campaign writes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/sqlite.h"
#include "galvani/fuzz/records.h"

namespace galvani {

// A seed or kept mutant with its image.
template <class Record>
struct WithImage {
  Record record;
  std::string png;
};
using NewSeed = WithImage<SeedRecord>;
using NewInput = WithImage<InputRecord>;

// What is known of mutators and classes since the beginning.
struct Yields {
  std::vector<YieldRecord> mutators;  // those that were drawn, by name
  std::vector<YieldRecord> classes;   // by label
};

// What a batch adds.
struct BatchRecord {
  std::vector<std::int64_t> picks;  // entries that were picked
  std::vector<NewInput> inputs;
  std::vector<FaultRecord> faults;
  CampaignCounters counters;  // after it
};

class Store {
 public:
  // Opens campaign.db in a folder.
  explicit Store(const std::filesystem::path& folder);
  // A new one with everything known before the first batch, in one transaction. `classes` has a name for every label.
  static void create(const std::filesystem::path& folder, const std::vector<NewSeed>& seeds,
                     const std::vector<std::string>& seed_hashes, const std::vector<WrongSeedRecord>& wrong,
                     const std::vector<std::string>& classes, const CampaignCounters& counters);

  // One transaction. `pick_counts` has the new number for each of the batch's picks.
  void add(const BatchRecord& batch, const Yields& yields, const std::vector<std::int64_t>& pick_counts,
           double seconds);

  std::int64_t last_batch();
  std::int64_t last_fault();
  double seconds();
  CampaignCounters counters(std::int64_t batch);
  std::vector<SeedRecord> seeds();
  std::int64_t wrong_seeds();
  std::vector<std::string> class_names();
  // Kept mutants and images up to an iteration, in order.
  void for_each_input(std::int64_t last_iteration, const std::function<void(const InputRecord&)>& visit);
  using SeeImage = std::function<void(const std::string& sha256, std::int64_t label, std::int64_t id)>;
  void for_each_fault_image(std::int64_t last_iteration, const SeeImage& visit);
  void for_each_seed_image(const SeeImage& visit);
  std::string image(std::int64_t id);  // PNG

 private:
  Database database_;
  Statement add_input_, add_fault_, add_batch_, add_clock_, add_pick_, add_mutator_, set_class_, input_image_,
      seed_image_;
};

}  // namespace galvani
