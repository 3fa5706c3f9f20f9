// What a campaign has found, as it writes it: rows in campaign.db and the files that belong to them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/batch_record.h"
#include "fuzz/fault_files.h"
#include "fuzz/news.h"
#include "fuzz/sqlite.h"
#include "galvani/fuzz/records.h"

namespace galvani {

class Store {
 public:
  // Opens what is in a folder, and brings to its end what a process that was killed had begun.
  // `keep_files`: as in CampaignSettings.
  explicit Store(const std::filesystem::path& folder, std::int64_t keep_files = 0);
  // A new one with everything known before the first batch, in one transaction.
  static void create(const std::filesystem::path& folder, const Beginning& beginning);

  // Files are made and read back, rows are stored in one transaction, then the files go to their places: once this
  // returns, the batch is there for good. `pick_counts` has the new number for each of the batch's picks.
  void add(const BatchRecord& batch, const Yields& yields, const std::vector<std::int64_t>& pick_counts,
           double seconds);
  // What is not as it was when this batch was stored, as one sentence; empty: it came out the same. Nothing is written.
  std::string repeated_otherwise(const BatchRecord& batch);

  // Takes everything from the log into campaign.db itself; false: a reader is in the way.
  bool checkpoint();

  std::int64_t last_batch();
  std::int64_t iterations();
  std::int64_t last_fault();
  double seconds();
  std::string absorbed();                 // Beginning::absorbed
  std::string chain(std::int64_t batch);  // empty: there is no such batch
  std::vector<SeedRecord> seeds();
  std::int64_t wrong_seeds();
  std::vector<std::string> class_names();
  // Kept mutants and images up to an iteration, in order.
  void for_each_input(std::int64_t last_iteration, const std::function<void(const InputRecord&)>& visit);
  using SeeImage = std::function<void(const std::string& sha256, std::int64_t label, std::int64_t id)>;
  void for_each_fault_image(std::int64_t last_iteration, const SeeImage& visit);
  void for_each_seed_image(const SeeImage& visit);
  // Seeds that a fault was made of up to an iteration.
  void for_each_broken_seed(std::int64_t last_iteration, const std::function<void(std::int64_t seed)>& visit);
  std::string image(std::int64_t id);  // PNG
  // What was found here after one iteration and up to another, and what that was made of. Of island `number`.
  News news(std::int64_t number, std::int64_t after, std::int64_t last);

  // Faults whose file is gone or empty, and how to put it back.
  std::vector<FaultRecord> lost_files();
  void restore_file(const FaultRecord& fault, std::string_view png) { files_.restore(fault, png); }

 private:
  void settle_files();
  std::int64_t distinct_faults();

  FaultFiles files_;
  std::string file_;  // for messages
  Database database_;
  std::int64_t files_left_;  // of faults that are still to come; below 0: all get one
  std::string chain_;        // of the last batch
  Statement add_input_, add_fault_, add_batch_, add_clock_, add_pick_, add_kind_, set_class_, input_image_, seed_image_;
};

}  // namespace galvani
