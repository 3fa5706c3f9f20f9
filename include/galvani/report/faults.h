// A campaign's faults, chosen, grouped by what they are taken for, and clustered by what the network sees in them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "galvani/base/json.h"
#include "galvani/fuzz/reader.h"
#include "galvani/model/network.h"

namespace galvani {

struct FaultQuery {
  FaultFilter filter;
  std::string mutator;  // of the last step; empty: any
  double min_confidence = 0;
};

// In the order they were found. `filter.most` counts those that match.
void for_each_match(const CampaignReader& reader, const FaultQuery& query,
                    const std::function<void(const FaultRecord&)>& visit);

// What the generator and the guide have to say of a fault: {"figures": ..., "metadata": ...}, each where there is one.
Json remarks_on(const FaultRecord& fault);

// What was said, for people: "3 → 8", of a task by reference "0.25 → 0.61" or "2 labels differ".
std::string verdict_text(const CampaignReader& reader, const FaultRecord& fault);

struct FaultGroup {
  std::int64_t label = 0;
  std::int64_t predicted = 0;
  std::int64_t faults = 0;
  std::int64_t distinct = 0;
  std::int64_t kept = 0;
  double confidence = 0;  // mean
  std::string mutator;    // the most frequent last step
};
// Largest first.
std::vector<FaultGroup> group_faults(const CampaignReader& reader, const FaultQuery& query);

struct FaultCluster {
  std::int64_t label = 0;
  std::int64_t predicted = 0;
  std::vector<std::size_t> members;  // positions in what was clustered, ascending
  std::size_t representative = 0;    // the member nearest to the mean
  double radius = 0;                 // the mean distance of members to it
};

// Leader clustering: a fault joins the nearest leader within `distance`, or becomes one. `groups` keeps faults of
// different kinds apart; features are [N, D] float. Clusters in order of size, then of their first member.
std::vector<FaultCluster> cluster_features(const at::Tensor& features,
                                           const std::vector<std::pair<std::int64_t, std::int64_t>>& groups,
                                           double distance);
// The median distance between rows, of evenly taken ones if there are many.
double median_distance(const at::Tensor& features);

// What the network's last tap before the output says about the faults' images: [N, neurons] float, each row of
// length 1. `tap` receives its name.
at::Tensor fault_features(const CampaignReader& reader, Network& network, const std::vector<FaultRecord>& faults,
                          std::string& tap);

}  // namespace galvani
