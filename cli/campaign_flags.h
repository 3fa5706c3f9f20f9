// What the verbs about campaigns share.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "galvani/fuzz/summary.h"
#include "galvani/model/network.h"

namespace galvani::cli {

nlohmann::json summary_json(const CampaignReader& reader, const CampaignSummary& summary);
std::string summary_text(const CampaignReader& reader, const CampaignSummary& summary);

std::string yields_text(const char* title, const std::vector<YieldRecord>& yields);

// The network a campaign was run on, loaded as it was then; Error(bad_input) if its file is gone or has changed.
std::unique_ptr<Network> load_campaign_model(const CampaignRecord& record);

}  // namespace galvani::cli
