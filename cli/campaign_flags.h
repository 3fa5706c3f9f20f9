// What the verbs about campaigns share.
#pragma once

#include <string>
#include <vector>

#include "galvani/fuzz/summary.h"

namespace galvani::cli {

Json summary_json(const CampaignReader& reader, const CampaignSummary& summary);
std::string summary_text(const CampaignReader& reader, const CampaignSummary& summary);

std::string yields_text(const char* title, const std::vector<YieldRecord>& yields);

}  // namespace galvani::cli
