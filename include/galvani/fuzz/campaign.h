// A fuzz campaign: a folder that can be left and gone on with at any time.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "galvani/coverage/profile.h"
#include "galvani/data/dataset.h"
#include "galvani/fuzz/listener.h"
#include "galvani/fuzz/settings.h"
#include "galvani/model/network.h"
#include "galvani/trace/trace.h"

namespace galvani {

struct News;

// What a campaign works on. The tracer's network is the one under test.
struct CampaignSubject {
  Tracer& tracer;
  const Dataset& data;
  std::shared_ptr<const Profile> profile;  // null where the guide needs none
  std::string profile_source;              // for the record
  const Dataset* style = nullptr;          // null: the seeds
  const Dataset* train = nullptr;          // what the guide absorbs at the beginning, where settings say so
};

struct CampaignOptions {
  std::int64_t cache_bytes = std::int64_t{256} << 20;  // of corpus images in memory
  double snapshot_seconds = 20;                        // between snapshots, once it has run for a while
};

class Campaign {
 public:
  // Makes the folder, or opens the campaign that is there. Usage error if the folder holds something else or a campaign
  // with other settings; Error(environment) if it cannot be written or another process works in it.
  Campaign(const std::filesystem::path& folder, const CampaignSettings& settings, const CampaignSubject& subject,
           const CampaignOptions& options = {});
  ~Campaign();
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  const CampaignRecord& record() const;

  // Works until the budget is used up and says why it stopped. Ctrl-C ends it after the batch with Error(interrupted).
  std::string run(const Budget& budget, const std::vector<Listener*>& listeners);

  // The same in pieces, for islands (galvani/fuzz/islands.h). work() goes on until so many iterations are done (0: as
  // far as the budget goes); why it may not go further, or "".
  void begin(const Budget& budget, const std::vector<Listener*>& listeners);
  std::string work(std::int64_t until);
  void end(const std::string& reason);
  const CampaignCounters& counters() const;  // while batches are repeated, those of the last repeated one
  std::int64_t stored_iterations();
  std::string reached() const;  // of the budget
  bool idle() const;            // there is nothing left to pick
  // What this island has found after one iteration and up to another; of the first process alone.
  News news(std::int64_t after, std::int64_t last);
  // What the others have found; the batch after so many iterations takes it in.
  void hear(std::vector<News> told, std::int64_t iterations);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Whether the folder holds one; CampaignRecord::from_toml(folder / "campaign.toml") then says how it was begun.
bool is_campaign(const std::filesystem::path& folder);
// Where it keeps the profile it was begun with.
std::filesystem::path stored_profile(const std::filesystem::path& folder);

}  // namespace galvani
