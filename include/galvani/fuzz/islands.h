// Several campaigns on the same seeds, each of which starts from a share of them and draws random numbers of its own,
// and which tell each other at stated rounds what they have found. Each has a folder of its own beneath that of the
// run, with every guarantee of a campaign.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "galvani/fuzz/campaign.h"

namespace galvani {

// run/island-2
std::filesystem::path island_folder(const std::filesystem::path& run, std::int64_t number);
// The folders of the islands that have begun, in the order of their numbers; empty: the folder holds none.
std::vector<std::filesystem::path> islands_in(const std::filesystem::path& run);

// Where an island has come to.
struct IslandStatus {
  CampaignCounters counters;
  std::int64_t stored = 0;  // iterations in its store; more than in the counters while batches are repeated
  std::string reached;      // the budget it has reached; empty: none
  bool idle = false;        // it has nothing left to pick
};

// Works on islands 1 to `count`, the folders of which are made or gone on with, one after the other in rounds of
// settings.exchange iterations, or, in a crew, as many at a time as there are processes; the result is the same.
// Without exchange there is one round. The budget is that of each island. With exchange it is looked at when a round
// ends, and all end with the first. `tell` hears of every round (by the first process alone); says why it ended.
std::string run_islands(const std::filesystem::path& run, std::int64_t count, const CampaignSettings& settings,
                        const CampaignSubject& subject, const Budget& budget,
                        const std::function<void(const std::vector<IslandStatus>&)>& tell);

}  // namespace galvani
