// Campaigns on the small subject that are run, killed and gone on with.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>

#include "fuzz/testing.h"
#include "galvani/base/files.h"
#include "galvani/fuzz/campaign.h"

namespace galvani::testing {

// Ends the campaign as a kill would: after a batch was stored, without a word to anybody.
struct Killer : Listener {
  explicit Killer(std::int64_t batches) : after(batches) {}
  void batch(const CampaignStatus& status, const std::vector<FaultRecord>&) override {
    if (status.counters.batches >= after) throw std::runtime_error("killed");
  }
  std::int64_t after;
};

class CampaignTest : public ::testing::Test {
 protected:
  static Budget batches(std::int64_t n) {
    Budget budget;
    budget.iterations = n * 4;
    return budget;
  }
  std::string run(const std::string& name, std::int64_t n, const CampaignSettings& settings, double interval = 20) {
    CampaignOptions options;
    options.snapshot_seconds = interval;
    Campaign campaign(folder_ / name, settings, subject_.view(), options);
    return campaign.run(batches(n), {});
  }
  void run_and_kill(const std::string& name, std::int64_t n, const CampaignSettings& settings, double interval = 20) {
    CampaignOptions options;
    options.snapshot_seconds = interval;
    Campaign campaign(folder_ / name, settings, subject_.view(), options);
    Killer killer(n);
    EXPECT_THROW(campaign.run(batches(n + 100), {&killer}), std::runtime_error);
  }
  std::string dump(const std::string& name) { return testing::dump(folder_ / name); }
  // Every file below a folder, by its name in it, with its hash.
  std::map<std::string, std::string> files(const std::string& name) {
    std::map<std::string, std::string> result;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / name)) {
      if (entry.is_regular_file())
        result[entry.path().lexically_relative(folder_ / name).string()] = sha256_file(entry.path());
    }
    return result;
  }

  Subject subject_;
  TemporaryFolder folder_;
};

}  // namespace galvani::testing
