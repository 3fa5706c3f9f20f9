// What the verbs about campaigns share.
#pragma once

#include <string>
#include <vector>

#include "galvani/fuzz/summary.h"

namespace galvani::cli {

// Every counter under its name, and what part of what can be covered is.
void add_counters(const CampaignCounters& counters, Json& to);
Json summary_json(const CampaignReader& reader, const CampaignSummary& summary);
std::string summary_text(const CampaignReader& reader, const CampaignSummary& summary);

std::string yields_text(const char* title, const std::vector<YieldRecord>& yields);

}  // namespace galvani::cli
