// The islands of a run (galvani/fuzz/islands.h) as one campaign.
#pragma once

#include <filesystem>
#include <vector>

namespace galvani {

// A folder that CampaignReader and check_campaign take: a campaign's, or one with islands in it.
bool holds_campaign(const std::filesystem::path& folder);

// Writes a campaign's folder with all that these islands have found; a folder with islands in it stands for all of
// them. Rows keep their origin, what an island has from another counts once, files of faults are copied and read back.
// Usage error unless they are islands of one run, each named once, and `output` is missing or empty.
void merge_islands(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& output);

// The same for reading: a folder in the cache, made again when an island has gone on.
std::filesystem::path merged_view(const std::filesystem::path& run);

}  // namespace galvani
