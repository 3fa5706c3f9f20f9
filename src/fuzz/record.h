// What a campaign is, from what it is given.
#pragma once

#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/settings.h"

namespace galvani {

// Everything but the probe and the hashes of what generator and guide need.
CampaignRecord make_record(const CampaignSettings& settings, const CampaignSubject& subject);

// Usage error unless the settings make sense.
void check_settings(const CampaignSettings& settings);

// The sentence about `wanted` in the folder of a campaign that is something else; usage error. Nothing: it is the same.
void check_same(const CampaignRecord& record, const CampaignRecord& wanted, const std::filesystem::path& folder);

}  // namespace galvani
