#include "galvani/fuzz/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "galvani/base/error.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/inputs.h"

namespace galvani {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// "0.13149941476590638,0.5" → "0.1315 0.5": as many digits as one reads.
std::string short_numbers(const std::string& list) {
  std::istringstream numbers(list);
  std::string text, number;
  while (std::getline(numbers, number, ','))
    text += fmt::format("{}{:.4g}", text.empty() ? "" : " ", std::strtod(number.c_str(), nullptr));
  return text;
}

// The share of the tried seeds that changes of at most so many percent broke; one for each of change_steps().
template <int Percent>
double broken_at(const CampaignSummary& summary) {
  return summary.seeds.broken_by(Percent / 100.0);
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

std::string base_text(const CampaignRecord& record, const SeedFigures& seeds) {
  const CardFlags& p = record.preprocess;
  auto unless = [](const char* name, const std::string& value, const char* usual) {
    return value == usual || value.empty() ? std::string() : fmt::format(", {} {}", name, short_numbers(value));
  };
  std::string preprocessing = fmt::format("range {}{}{}, {}, {}", p.range, unless("mean", p.mean, "0"),
                                          unless("std", p.deviation, "1"), p.channels, p.layout);
  bool sounds = record.input.find('@') != std::string::npos;  // a rate
  if (sounds) {
    ModelCard card;
    p.apply_to(card);
    preprocessing = preprocessing_text(card.preprocess, SampleKind::audio);
  }
  std::string model = printable(std::filesystem::path(record.model).filename().string());
  // Held against its own answers a network is always right.
  std::string start = record.settings.labels == "model"
                          ? fmt::format("{}: {} held against its own answers to them", model,
                                        counted(seeds.looked_at, "input is", "inputs are"))
                          : fmt::format("{} gets {} of {} right ({:.1f}%)", model, format_count(seeds.right),
                                        counted(seeds.looked_at, "input"), seeds.accuracy() * 100);
  return fmt::format("{}; preprocessing: {} ({})", start, preprocessing,
                     record.preprocess_assumed ? "assumed: the file does not say" : "as stated");
}

std::string seeds_text(const SeedFigures& seeds) {
  std::string text = fmt::format("{} of {} tried {} broke ({:.1f}%)", format_count(seeds.broken),
                                 format_count(seeds.tried), seeds.tried == 1 ? "seed" : "seeds", seeds.share() * 100);
  std::int64_t left = seeds.seeds - seeds.tried;
  return left > 0 ? fmt::format("{}, {} of {} were not tried", text, format_count(left), format_count(seeds.seeds))
                  : text;
}

const std::vector<double>& change_steps() {
  static const std::vector<double> steps = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5};
  return steps;
}

std::string changes_text(const SeedFigures& seeds) {
  std::string text;
  if (seeds.smallest.empty()) return text;
  for (double step : change_steps()) {
    text += fmt::format("{}{:.0f}% breaks {:.1f}%", text.empty() ? "" : ", ", step * 100, seeds.broken_by(step) * 100);
    if (seeds.smallest.back() <= step) break;
  }
  return text;
}

CampaignSummary summarise(const CampaignReader& reader) {
  CampaignSummary result;
  result.seeds = reader.seed_figures();
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
      {"broken-seeds", "broken seeds", [](const S& s) { return static_cast<double>(s.seeds.broken); }, always},
      {"broken-seeds%", nullptr, [](const S& s) { return s.seeds.share(); }, always},
      {"broken-at-1%", nullptr, broken_at<1>, always},
      {"broken-at-2%", nullptr, broken_at<2>, always},
      {"broken-at-5%", nullptr, broken_at<5>, always},
      {"broken-at-10%", nullptr, broken_at<10>, always},
      {"broken-at-20%", nullptr, broken_at<20>, always},
      {"broken-at-50%", nullptr, broken_at<50>, always},
      {"tried-seeds", "tried seeds", [](const S& s) { return static_cast<double>(s.seeds.tried); }, always},
      {"base-accuracy", nullptr, [](const S& s) { return s.seeds.accuracy(); }, always},
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
