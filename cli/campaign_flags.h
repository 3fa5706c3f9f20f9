// What the verbs about campaigns share.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "galvani/fuzz/summary.h"

namespace galvani::cli {

nlohmann::json summary_json(const CampaignReader& reader, const CampaignSummary& summary);
std::string summary_text(const CampaignReader& reader, const CampaignSummary& summary);

std::string yields_text(const char* title, const std::vector<YieldRecord>& yields);

}  // namespace galvani::cli
