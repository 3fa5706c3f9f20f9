// What the verbs about campaigns share.
#pragma once

#include <string>
#include <vector>

#include "galvani/data/dataset.h"
#include "galvani/fuzz/summary.h"
#include "galvani/model/network.h"
#include "verb.h"

namespace galvani::cli {

// Every counter under its name, and what part of what can be covered is.
void add_counters(const CampaignCounters& counters, Json& to);
Json summary_json(const CampaignReader& reader, const CampaignSummary& summary);
std::string summary_text(const CampaignReader& reader, const CampaignSummary& summary);

// A folder of its own for a campaign that is given none: galvani-runs/lenet5-20261116-190500.
std::string usual_folder(const std::string& model, const std::string& what = "");
// The bits of a forward pass depend on how it is cut into pieces, so a campaign that exists goes on as its record says.
void use_execution_of(const std::string& folder, Network::Options& options);
// The first line of every campaign: what its figures rest on, and a warning where that is doubtful.
void say_base(const Common& common, const std::string& folder, Network& network, const Dataset& data,
              const std::string& spec);

std::string yields_text(const char* title, const std::vector<YieldRecord>& yields);

}  // namespace galvani::cli
