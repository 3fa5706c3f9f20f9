#include "galvani/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/plot.h"
#include "galvani/base/text.h"
#include "galvani/fuzz/reader.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kTimelinePoints = 400;
constexpr std::size_t kPlotPoints = 120;

// What a run is, but for its seed: (name, value).
std::vector<std::pair<std::string, std::string>> traits_of(const CampaignRecord& r) {
  std::vector<std::pair<std::string, std::string>> traits = {
      {"model", fmt::format("{} ({})", fs::path(r.model).filename().string(), r.model_sha256.substr(0, 8))},
      {"data", r.data},
      {"style", r.style}};
  for (auto& choice : r.choices()) {
    if (choice.first != "seed") traits.push_back(choice);
  }
  return traits;
}

std::string trait(const CampaignRecord& record, const std::string& name) {
  for (auto& [key, value] : traits_of(record)) {
    if (key == name) return value;
  }
  return "";
}

// Names of traits in which the runs are not all alike.
std::vector<std::string> different(const std::vector<ComparedRun>& runs) {
  std::vector<std::string> names;
  for (auto& [key, value] : traits_of(runs.front().record)) {
    bool same = std::all_of(runs.begin(), runs.end(),
                            [&, k = key, v = value](const ComparedRun& run) { return trait(run.record, k) == v; });
    if (!same) names.push_back(key);
  }
  return names;
}

const char* to_string(GroupBy by) {
  return by == GroupBy::guide ? "guide" : by == GroupBy::generator ? "generator" : "model";
}

std::string group_name(const ComparedRun& run, GroupBy by, const std::vector<std::string>& varying) {
  if (by != GroupBy::settings) return trait(run.record, to_string(by));
  std::string name;
  for (const std::string& key : varying) {
    std::string value = trait(run.record, key);
    bool says_itself = key == "guide" || key == "generator" || key == "model" || key == "data";
    name += (name.empty() ? "" : ", ") + (says_itself ? value : key + " " + value);
  }
  return name.empty() ? "all" : name;
}

void make_groups(Comparison& c, GroupBy by) {
  std::vector<std::string> varying = different(c.runs);
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < c.runs.size(); ++i) {
    std::string name = group_name(c.runs[i], by, varying);
    auto [place, is_new] = known.try_emplace(name, c.groups.size());
    if (is_new) c.groups.push_back({name, {}, {}});
    c.runs[i].group = place->second;
    c.groups[place->second].runs.push_back(i);
  }
  for (Group& group : c.groups) {
    for (const CampaignFigure& measure : measures()) {
      MeasuredGroup m;
      for (std::size_t run : group.runs) {
        if (measure.defined(c.runs[run].summary)) m.values.push_back(measure.of(c.runs[run].summary));
      }
      m.mean = mean_of(m.values);
      m.deviation = deviation_of(m.values);
      group.measured.push_back(std::move(m));
    }
  }
  if (by == GroupBy::settings) return;
  varying.erase(std::remove(varying.begin(), varying.end(), to_string(by)), varying.end());
  // A guide brings its own generator and scheduler, but a reader should know that more than the guide differs.
  if (!varying.empty())
    c.notes.push_back(fmt::format("the runs differ in more than the {}: in {}; --by settings groups by everything",
                                  to_string(by), fmt::join(varying, ", ")));
}

bool same_guide(const Comparison& c, std::size_t a, std::size_t b) {
  const std::string& guide = c.runs[c.groups[a].runs.front()].record.settings.guide;
  auto alike = [&](std::size_t run) { return c.runs[run].record.settings.guide == guide; };
  const auto& first = c.groups[a].runs;
  const auto& second = c.groups[b].runs;
  return std::all_of(first.begin(), first.end(), alike) && std::all_of(second.begin(), second.end(), alike);
}

void make_tests(Comparison& c) {
  for (std::size_t m = 0; m < measures().size(); ++m) {
    std::vector<double> p;
    std::size_t first = c.tests.size();
    for (std::size_t a = 0; a < c.groups.size(); ++a) {
      for (std::size_t b = a + 1; b < c.groups.size(); ++b) {
        const std::vector<double>& left = c.groups[a].measured[m].values;
        const std::vector<double>& right = c.groups[b].measured[m].values;
        // Coverage by different criteria has no common scale.
        if (left.empty() || right.empty() || (measures()[m].of_guide && !same_guide(c, a, b))) continue;
        c.tests.push_back({m, a, b, mann_whitney(left, right), 1, vargha_delaney(left, right)});
        p.push_back(c.tests.back().test.p);
      }
    }
    std::vector<double> corrected = holm(p);
    for (std::size_t i = 0; i < corrected.size(); ++i) c.tests[first + i].corrected_p = corrected[i];
  }
}

std::string found_by(const CampaignReader& reader) {
  CampaignCounters counters = reader.counters();
  if (counters.faults == 0) return "";
  Sha256 found;
  found.update(fmt::format("{} {}", counters.mutants, counters.valid));
  reader.for_each_fault({}, [&](const FaultRecord& fault) {
    found.update(fmt::format("\n{} {} {}", fault.iteration, fault.slot, fault.sha256));
  });
  return found.finish();
}

// Runs of different groups that did the same: a guide decides nothing while only seeds are picked.
void note_same_mutants(Comparison& c) {
  std::vector<std::string> pairs;
  for (std::size_t a = 0; a < c.runs.size(); ++a) {
    for (std::size_t b = a + 1; b < c.runs.size(); ++b) {
      bool same = !c.runs[a].found.empty() && c.runs[a].found == c.runs[b].found && c.runs[a].group != c.runs[b].group;
      if (same) pairs.push_back(fmt::format("{} and {}", c.runs[a].folder.string(), c.runs[b].folder.string()));
    }
  }
  if (pairs.empty()) return;
  c.notes.push_back(fmt::format(
      "{} tried the same mutants{}: what is compared made no difference to them, so no difference in faults means "
      "nothing; a guide has a say once a mutant that it kept is picked, in campaigns of more picks than seeds",
      printable(pairs.front()),
      pairs.size() > 1 ? fmt::format(", and {}", counted(static_cast<std::int64_t>(pairs.size()) - 1, "other pair"))
                       : ""));
}

void add_notes(Comparison& c) {
  note_same_mutants(c);
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const Group& group : c.groups) {
    fewest = std::min(fewest, group.runs.size());
    std::set<std::uint64_t> seeds;
    for (std::size_t run : group.runs) seeds.insert(c.runs[run].record.settings.seed);
    if (seeds.size() < group.runs.size())
      c.notes.push_back(
          fmt::format("{}: has runs with the same seed, which are no independent repetitions", printable(group.name)));
  }
  if (c.groups.size() > 1 && least_p(fewest, fewest) > 0.05)
    c.notes.push_back(fmt::format("with {} run{} in a group no p can be below {:.3g}; 4 or more are needed for 0.05",
                                  fewest, fewest == 1 ? "" : "s", least_p(fewest, fewest)));
  double least = std::numeric_limits<double>::max(), most = 0;
  for (const ComparedRun& run : c.runs) {
    least = std::min(least, static_cast<double>(run.summary.counters.iterations));
    most = std::max(most, static_cast<double>(run.summary.counters.iterations));
  }
  if (most > 1.05 * least)
    c.notes.push_back(fmt::format("the runs are not equally long: from {:.0f} to {:.0f} iterations", least, most));
}

// The value of a curve at x, on the line between the points around it.
double value_at(const std::vector<TimelinePoint>& timeline, double x,
                const std::function<double(const TimelinePoint&)>& along,
                const std::function<double(const TimelinePoint&)>& value) {
  if (timeline.empty()) return 0;
  const TimelinePoint* before = &timeline.front();
  for (const TimelinePoint& point : timeline) {
    if (along(point) > x) {
      double step = along(point) - along(*before);
      double part = step > 0 ? std::max(0.0, x - along(*before)) / step : 0;
      return value(*before) + part * (value(point) - value(*before));
    }
    before = &point;
  }
  return value(*before);
}

PlotPanel panel(const Comparison& c, const std::string& title, const std::string& x_title,
                const std::function<double(const TimelinePoint&)>& along,
                const std::function<double(const TimelinePoint&)>& value) {
  PlotPanel result{title, x_title, "", {}, false};
  for (const Group& group : c.groups) {
    double end = std::numeric_limits<double>::max();
    for (std::size_t run : group.runs)
      end = std::min(end, c.runs[run].timeline.empty() ? 0 : along(c.runs[run].timeline.back()));
    PlotSeries series{printable(group.name, 40), {}};
    for (std::size_t i = 0; i <= kPlotPoints; ++i) {
      double x = end * static_cast<double>(i) / kPlotPoints;
      double sum = 0;
      for (std::size_t run : group.runs) sum += value_at(c.runs[run].timeline, x, along, value);
      series.points.emplace_back(x, sum / static_cast<double>(group.runs.size()));
    }
    result.series.push_back(std::move(series));
  }
  return result;
}

}  // namespace

GroupBy parse_group_by(const std::string& text) {
  if (text == "guide") return GroupBy::guide;
  if (text == "generator") return GroupBy::generator;
  if (text == "model") return GroupBy::model;
  if (text == "settings") return GroupBy::settings;
  bad_usage("runs can be grouped by guide, generator, model or settings, not by '{}'", printable(text));
}

const std::vector<CampaignFigure>& measures() {
  static const std::vector<CampaignFigure> all = [] {
    std::vector<CampaignFigure> titled;
    for (const CampaignFigure& figure : campaign_figures()) {
      if (figure.title != nullptr) titled.push_back(figure);
    }
    return titled;
  }();
  return all;
}

Comparison compare_runs(const std::vector<fs::path>& folders, GroupBy by) {
  if (folders.size() < 2) bad_usage("name at least two campaigns to compare");
  Comparison result;
  std::set<std::string> seen;
  for (const fs::path& folder : folders) {
    CampaignReader reader(folder);
    if (!seen.insert(fs::canonical(folder).string()).second) bad_usage("{}: is named twice", folder.string());
    result.runs.push_back(
        {folder, reader.record(), summarise(reader), reader.timeline(kTimelinePoints), found_by(reader), 0});
  }
  make_groups(result, by);
  make_tests(result);
  add_notes(result);
  return result;
}

Figures figures_of(const Comparison& comparison) {
  Figures figures = {{"runs", static_cast<double>(comparison.runs.size())},
                     {"groups", static_cast<double>(comparison.groups.size())}};
  for (std::size_t m = 0; m < measures().size(); ++m) {
    double p = std::nan("");
    double a12 = std::nan("");
    for (const PairTest& test : comparison.tests) {
      if (test.measure != m) continue;
      p = std::isnan(p) ? test.corrected_p : std::min(p, test.corrected_p);
      if (test.a == 0 && test.b == 1) a12 = test.a12;
    }
    figures.emplace_back(std::string(measures()[m].name) + "-p", p);
    figures.emplace_back(std::string(measures()[m].name) + "-a12", a12);
  }
  return figures;
}

std::string comparison_svg(const Comparison& c) {
  auto iterations = [](const TimelinePoint& p) { return static_cast<double>(p.iterations); };
  auto seconds = [](const TimelinePoint& p) { return p.seconds; };
  auto distinct = [](const TimelinePoint& p) { return static_cast<double>(p.distinct_faults); };
  auto kept = [](const TimelinePoint& p) { return static_cast<double>(p.kept_faults); };
  return plot_svg({panel(c, "Distinct faults", "iterations", iterations, distinct),
                   panel(c, "Distinct faults over time", "seconds of work", seconds, distinct),
                   panel(c, "Faults among kept mutants", "iterations", iterations, kept)},
                  3);
}

}  // namespace galvani
