#include "galvani/fuzz/summary.h"

#include <algorithm>
#include <cmath>

#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
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

Json yields_json(const std::vector<YieldRecord>& yields) {
  auto all = Json::array();
  for (const YieldRecord& y : yields)
    all.push_back({{"name", y.name},
                   {"mutants", y.mutants},
                   {"valid", y.valid},
                   {"outputs", y.kept},
                   {"faults", y.faults},
                   {"kept_faults", y.kept_faults}});
  return all;
}

const std::vector<CampaignFigure>& campaign_figures() {
  using S = CampaignSummary;
  auto always = [](const S&) { return true; };
  auto any_kept = [](const S& s) { return s.counters.kept > 0; };
  auto any_kept_fault = [](const S& s) { return s.counters.kept_faults > 0; };
  static const std::vector<CampaignFigure> all = {
      {"faults", "faults", [](const S& s) { return static_cast<double>(s.counters.faults); }, always},
      {"distinct", "distinct", [](const S& s) { return static_cast<double>(s.counters.distinct_faults); }, always},
      {"not-a-number", kNotANumberName, [](const S& s) { return static_cast<double>(s.not_a_number); }, always},
      {"kept-faults", "kept faults", [](const S& s) { return static_cast<double>(s.counters.kept_faults); }, always},
      {"outputs", "outputs", [](const S& s) { return static_cast<double>(s.counters.kept); }, always},
      {"rft", "RFT", [](const S& s) { return s.rft; }, any_kept},
      {"rft-all", nullptr, [](const S& s) { return s.rft_all; }, always},
      {"fre", "FRE (s)", [](const S& s) { return s.counters.kept_faults > 0 ? s.fre : std::nan(""); }, any_kept_fault},
      {"coverage", "coverage", [](const S& s) { return s.counters.coverage(); },
       [](const S& s) { return s.counters.covered > 0; }, /*of_guide=*/true},
      {"classes", "#Classes", [](const S& s) { return static_cast<double>(s.classes); }, always},
      {"oi", "OI", [](const S& s) { return s.impartiality; }, always},
  };
  return all;
}

Figures figures_of(const CampaignSummary& summary) {
  Figures figures;
  for (const CampaignFigure& figure : campaign_figures()) figures.emplace_back(figure.name, figure.of(summary));
  return figures;
}

}  // namespace galvani
