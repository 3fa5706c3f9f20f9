#include "galvani/fuzz/summary.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "galvani/base/error.h"
#include "galvani/base/options.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

struct Metric {
  const char* name;
  double (*of)(const CampaignSummary&);
};

const std::vector<Metric>& known_metrics() {
  static const std::vector<Metric> all = {
      {"faults", [](const CampaignSummary& s) { return static_cast<double>(s.counters.faults); }},
      {"distinct", [](const CampaignSummary& s) { return static_cast<double>(s.counters.distinct_faults); }},
      {"kept-faults", [](const CampaignSummary& s) { return static_cast<double>(s.counters.kept_faults); }},
      {"not-a-number", [](const CampaignSummary& s) { return static_cast<double>(s.not_a_number); }},
      {"outputs", [](const CampaignSummary& s) { return static_cast<double>(s.counters.kept); }},
      {"coverage", [](const CampaignSummary& s) { return s.counters.coverage(); }},
      {"rft", [](const CampaignSummary& s) { return s.rft; }},
      {"rft-all", [](const CampaignSummary& s) { return s.rft_all; }},
      {"classes", [](const CampaignSummary& s) { return static_cast<double>(s.classes); }},
      {"oi", [](const CampaignSummary& s) { return s.impartiality; }},
  };
  return all;
}

}  // namespace

double pielou_evenness(const std::vector<std::int64_t>& counts) {
  double total = 0;
  for (std::int64_t count : counts) total += static_cast<double>(count);
  if (total == 0 || counts.size() < 2) return 0;
  double entropy = 0;
  for (std::int64_t count : counts) {
    double p = static_cast<double>(count) / total;
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy / std::log(static_cast<double>(counts.size()));
}

CampaignSummary summarise(const CampaignReader& reader) {
  CampaignSummary result;
  result.counters = reader.counters();
  result.seconds = reader.seconds();
  const CampaignCounters& c = result.counters;
  result.rft = share(c.kept_faults, c.kept);
  result.rft_all = share(c.faults, c.valid);
  if (c.kept_faults > 0) result.fre = result.seconds / static_cast<double>(c.kept_faults);
  if (c.faults > 0) result.fre_all = result.seconds / static_cast<double>(c.faults);
  auto n = static_cast<std::size_t>(reader.classes());
  std::vector<std::int64_t> by_true(n, 0), by_predicted(n, 0);
  for (const ConfusionRecord& cell : reader.confusion()) {
    by_true[static_cast<std::size_t>(cell.label)] += cell.faults;
    ++result.transitions;
    std::int64_t& taken =
        cell.predicted == kNotANumber ? result.not_a_number : by_predicted[static_cast<std::size_t>(cell.predicted)];
    taken += cell.faults;
  }
  auto present = [](const std::vector<std::int64_t>& counts) {
    return std::count_if(counts.begin(), counts.end(), [](std::int64_t count) { return count > 0; });
  };
  result.classes = present(by_true);
  result.predicted = present(by_predicted);
  result.impartiality = pielou_evenness(by_predicted);
  return result;
}

nlohmann::json yields_json(const std::vector<YieldRecord>& yields) {
  auto all = nlohmann::json::array();
  for (const YieldRecord& y : yields)
    all.push_back({{"name", y.name},
                   {"mutants", y.mutants},
                   {"valid", y.valid},
                   {"outputs", y.kept},
                   {"faults", y.faults},
                   {"kept_faults", y.kept_faults}});
  return all;
}

std::vector<std::string> Gate::metrics() {
  std::vector<std::string> names;
  for (const Metric& metric : known_metrics()) names.emplace_back(metric.name);
  return names;
}

Gate::Gate(const std::string& text) : text_(text) {
  auto trimmed = [](const std::string& part) {
    std::size_t first = part.find_first_not_of(' ');
    return first == std::string::npos ? "" : part.substr(first, part.find_last_not_of(' ') - first + 1);
  };
  std::size_t at = text.find_first_of("<>=!");
  std::size_t end = text.find_first_not_of("<>=!", at);
  static const std::vector<std::string> comparisons = {">", ">=", "<", "<=", "==", "!="};
  if (at != std::string::npos && end != std::string::npos) {
    metric_ = trimmed(text.substr(0, at));
    comparison_ = text.substr(at, end - at);
    std::string number = trimmed(text.substr(end));
    const char* last = number.data() + number.size();
    auto [stop, error] = std::from_chars(number.data(), last, bound_);
    if (error != std::errc() || stop != last || !std::isfinite(bound_)) comparison_.clear();
  }
  if (std::find(comparisons.begin(), comparisons.end(), comparison_) == comparisons.end())
    bad_usage("'{}' is not a condition; write a number's name, >, >=, <, <=, == or !=, and a bound: \"faults>0\"",
              printable(text));
  std::vector<std::string> names = metrics();
  if (std::find(names.begin(), names.end(), metric_) != names.end()) return;
  std::string near = nearest_word(metric_, names);
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  bad_usage("there is no number called '{}' in a campaign's summary; {}", printable(metric_),
            near.empty() ? "known are " + all : "did you mean '" + near + "'?");
}

double Gate::value(const CampaignSummary& summary) const {
  for (const Metric& metric : known_metrics()) {
    if (metric_ == metric.name) return metric.of(summary);
  }
  return 0;
}

bool Gate::met(const CampaignSummary& summary) const {
  double found = value(summary);
  if (comparison_ == ">") return found > bound_;
  if (comparison_ == ">=") return found >= bound_;
  if (comparison_ == "<") return found < bound_;
  if (comparison_ == "<=") return found <= bound_;
  return (found == bound_) == (comparison_ == "==");
}

}  // namespace galvani
