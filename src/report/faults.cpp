#include "galvani/report/faults.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/generate/generator.h"
#include "galvani/trace/trace.h"

namespace galvani {
namespace {

constexpr std::size_t kChunk = 256;
constexpr std::int64_t kMedianSample = 400;

double distance_of(const float* a, const float* b, std::int64_t size) {
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += d * d;
  }
  return std::sqrt(sum);
}

}  // namespace

Json remarks_on(const FaultRecord& fault) {
  Json remarks = Json::object();
  auto add = [&](const char* name, const std::string& text) {
    if (text.empty()) return;
    try {
      remarks[name] = Json::parse(text);
    } catch (const Error&) {
      remarks[name] = text;  // a damaged store; the rest can be shown
    }
  };
  add("figures", fault.figures);
  add("metadata", fault.metadata);
  return remarks;
}

std::string verdict_text(const CampaignReader& reader, const FaultRecord& fault) {
  // What a damaged store holds is left out.
  auto figures = nlohmann::json::parse(fault.figures, nullptr, /*allow_exceptions=*/false);
  auto number = [&](const char* name) -> std::optional<double> {
    if (!reader.record().by_reference() || !figures.is_object() || !figures.contains(name) ||
        !figures[name].is_number())
      return std::nullopt;
    return figures[name].get<double>();
  };
  auto answer = number("answer"), reference = number("reference"), deviation = number("deviation");
  if (answer && reference) return fmt::format("{:.4g} → {:.4g}", *reference, *answer);
  if (deviation) return fmt::format("off by {:.4g}", *deviation);
  if (auto flipped = number("flipped"))
    return counted(static_cast<std::int64_t>(*flipped), "label differs", "labels differ");
  return fmt::format("{} → {}", printable(reader.class_name(fault.label), 30),
                     printable(reader.class_name(fault.predicted), 30));
}

void for_each_match(const CampaignReader& reader, const FaultQuery& query,
                    const std::function<void(const FaultRecord&)>& visit) {
  FaultFilter filter = query.filter;
  // What the store cannot filter must not use up its limit.
  bool more = !query.mutator.empty() || query.min_confidence > 0;
  std::int64_t left = filter.most > 0 ? filter.most : std::numeric_limits<std::int64_t>::max();
  if (more) filter.most = 0;
  reader.for_each_fault(filter, [&](const FaultRecord& fault) {
    if (left <= 0 || fault.confidence < query.min_confidence) return;
    if (!query.mutator.empty() && kind_of(fault.rule) != query.mutator) return;
    --left;
    visit(fault);
  });
}

std::vector<FaultGroup> group_faults(const CampaignReader& reader, const FaultQuery& query) {
  struct Sums {
    FaultGroup group;
    std::map<std::string, std::int64_t> mutators;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Sums> sums;
  for_each_match(reader, query, [&](const FaultRecord& fault) {
    Sums& s = sums[{fault.label, fault.predicted}];
    s.group.label = fault.label;
    s.group.predicted = fault.predicted;
    ++s.group.faults;
    s.group.distinct += fault.distinct ? 1 : 0;
    s.group.kept += fault.kept() ? 1 : 0;
    s.group.confidence += fault.confidence;
    ++s.mutators[kind_of(fault.rule)];
  });
  std::vector<FaultGroup> groups;
  for (auto& [pair, s] : sums) {
    s.group.confidence /= static_cast<double>(s.group.faults);
    auto most = std::max_element(s.mutators.begin(), s.mutators.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    s.group.mutator = most->first;
    groups.push_back(s.group);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const FaultGroup& a, const FaultGroup& b) { return a.faults > b.faults; });
  return groups;
}

double median_distance(const at::Tensor& features) {
  at::Tensor rows = features.contiguous();
  std::int64_t n = rows.size(0);
  std::int64_t taken = std::min(n, kMedianSample);
  std::vector<double> distances;
  for (std::int64_t i = 0; i < taken; ++i) {
    for (std::int64_t j = 0; j < i; ++j)
      distances.push_back(distance_of(rows.data_ptr<float>() + i * n / taken * rows.size(1),
                                      rows.data_ptr<float>() + j * n / taken * rows.size(1), rows.size(1)));
  }
  if (distances.empty()) return 0;
  auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

std::vector<FaultCluster> cluster_features(const at::Tensor& features,
                                           const std::vector<std::pair<std::int64_t, std::int64_t>>& groups,
                                           double distance) {
  at::Tensor rows = features.contiguous();
  std::int64_t width = rows.size(1);
  auto row = [&](std::size_t i) { return rows.data_ptr<float>() + static_cast<std::int64_t>(i) * width; };
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> of_group;  // places in `clusters`
  std::vector<FaultCluster> clusters;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<std::size_t>& candidates = of_group[groups[i]];
    double nearest = distance;
    std::size_t found = clusters.size();
    for (std::size_t c : candidates) {
      double d = distance_of(row(i), row(clusters[c].members.front()), width);
      if (d > nearest || (d == nearest && found < clusters.size())) continue;
      nearest = d;
      found = c;
    }
    if (found == clusters.size()) {
      candidates.push_back(found);
      clusters.push_back({groups[i].first, groups[i].second, {}, i, 0});
    }
    clusters[found].members.push_back(i);
  }
  for (FaultCluster& cluster : clusters) {
    std::vector<float> mean(static_cast<std::size_t>(width), 0);
    for (std::size_t member : cluster.members) {
      for (std::size_t k = 0; k < mean.size(); ++k)
        mean[k] += row(member)[k] / static_cast<float>(cluster.members.size());
    }
    double nearest = std::numeric_limits<double>::max();
    for (std::size_t member : cluster.members) {
      double d = distance_of(row(member), mean.data(), width);
      if (d >= nearest) continue;
      nearest = d;
      cluster.representative = member;
    }
    for (std::size_t member : cluster.members)
      cluster.radius +=
          distance_of(row(member), row(cluster.representative), width) / static_cast<double>(cluster.members.size());
  }
  std::stable_sort(clusters.begin(), clusters.end(),
                   [](const FaultCluster& a, const FaultCluster& b) { return a.members.size() > b.members.size(); });
  return clusters;
}

at::Tensor fault_features(const CampaignReader& reader, Network& network, const std::vector<FaultRecord>& faults,
                          std::string& tap) {
  std::vector<int> taps = network.select_taps("default");
  if (taps.empty())
    bad_input("{}: has no layers, so faults cannot be grouped by what it sees in them", network.info().path);
  int chosen = taps[taps.size() > 1 ? taps.size() - 2 : 0];
  tap = network.taps()[static_cast<std::size_t>(chosen)].name;
  Tracer tracer(network, {chosen}, NeuronUnit::channel);
  Progress progress("tracing", static_cast<std::int64_t>(faults.size()), "faults");
  std::vector<at::Tensor> parts;
  for (std::size_t first = 0; first < faults.size(); first += kChunk) {
    check_interrupt();
    std::vector<at::Tensor> images;
    for (std::size_t i = first; i < std::min(faults.size(), first + kChunk); ++i)
      images.push_back(reader.image(faults[i]));
    at::Tensor values = at::nan_to_num(tracer.trace(at::stack(images)).values);
    parts.push_back(values / values.norm(2, {1}, true).clamp_min(1e-12));
    progress.advance(static_cast<std::int64_t>(images.size()));
  }
  progress.finish();
  return parts.empty() ? at::zeros({0, 1}) : at::cat(parts);
}

}  // namespace galvani
