#include "galvani/report/compare.h"

#include <fmt/format.h>

#include <cmath>

#include "campaign_flags.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/options.h"
#include "galvani/base/output_file.h"
#include "galvani/base/table.h"
#include "galvani/quality/values.h"
#include "gate_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct CompareFlags {
  std::vector<std::string> folders;
  std::string by = "guide";
  std::vector<std::string> shown = {"faults", "rft"};
  std::string plot;
  std::string values;
  std::string test = "u";
  GateFlags gates;
};

std::size_t measure_index(const std::string& name) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < measures().size(); ++i) {
    if (measures()[i].name == name) return i;
    known.emplace_back(measures()[i].name);
  }
  bad_usage("--measure: there is no '{}'; known are {}", printable(name), fmt::format("{}", fmt::join(known, ", ")));
}

std::string number(double value) {
  if (value >= 1000 || value == std::floor(value)) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.3g}", value);
}

std::string spread(const MeasuredGroup& m) {
  if (m.values.empty()) return "-";
  return m.values.size() < 2 ? number(m.mean) : fmt::format("{} ± {}", number(m.mean), number(m.deviation));
}

Json as_json(const Comparison& c, const CompareFlags& flags) {
  Json j = {{"by", flags.by},
            {"notes", c.notes},
            {"runs", Json::array()},
            {"groups", Json::array()},
            {"tests", Json::array()}};
  for (const ComparedRun& run : c.runs) {
    Json row = {{"folder", run.folder.string()},
                {"group", c.groups[run.group].name},
                {"seed", run.record.settings.seed},
                {"iterations", run.summary.counters.iterations},
                {"seconds", run.summary.seconds}};
    for (const CampaignFigure& m : measures()) row[m.name] = m.defined(run.summary) ? Json(m.of(run.summary)) : Json();
    j["runs"].push_back(row);
  }
  for (const Group& group : c.groups) {
    Json row = {{"name", group.name}, {"runs", group.runs.size()}};
    for (std::size_t m = 0; m < measures().size(); ++m) {
      const MeasuredGroup& measured = group.measured[m];
      row[measures()[m].name] =
          measured.values.empty()
              ? Json()
              : Json({{"mean", measured.mean}, {"sd", measured.deviation}, {"n", measured.values.size()}});
    }
    j["groups"].push_back(row);
  }
  for (const PairTest& t : c.tests)
    j["tests"].push_back({{"measure", measures()[t.measure].name},
                          {"a", c.groups[t.a].name},
                          {"b", c.groups[t.b].name},
                          {"u", t.test.u},
                          {"p", t.test.p},
                          {"exact", t.test.exact},
                          {"holm_p", t.corrected_p},
                          {"a12", t.a12},
                          {"effect", effect_size(t.a12)}});
  return j;
}

void print(const Comparison& c, const CompareFlags& flags) {
  std::vector<std::string> titles = {flags.by, ">runs"};
  for (const CampaignFigure& m : measures()) titles.push_back(std::string(">") + m.title);
  Table table(titles);
  for (const Group& group : c.groups) {
    std::vector<std::string> row = {printable(group.name, 60), std::to_string(group.runs.size())};
    for (const MeasuredGroup& m : group.measured) row.push_back(spread(m));
    table.add(row);
  }
  say("{}", table.str());
  for (const std::string& name : flags.shown) {
    std::size_t measure = measure_index(name);
    Table tests({measures()[measure].title, "", ">U", ">p", ">p (Holm)", ">A12", "effect"});
    bool any = false;
    for (const PairTest& t : c.tests) {
      if (t.measure != measure) continue;
      any = true;
      tests.add({printable(c.groups[t.a].name, 40), printable(c.groups[t.b].name, 40), number(t.test.u),
                 fmt::format("{:.4f}{}", t.test.p, t.test.exact ? "" : "~"), fmt::format("{:.4f}", t.corrected_p),
                 fmt::format("{:.3f}", t.a12), effect_size(t.a12)});
    }
    if (any) say("\n{}", tests.str());
  }
  if (!c.notes.empty()) say("\n");
  for (const std::string& note : c.notes) say("note: {}\n", note);
}

Figures value_figures(const std::vector<ValueTest>& tests) {
  Figures figures;
  for (const ValueTest& t : tests) {
    figures.emplace_back(t.measure + "-p", t.p);
    figures.emplace_back(t.measure + "-holm", t.corrected_p);
    figures.emplace_back(t.measure + "-effect", t.effect);
  }
  return figures;
}

void print_values(const ValueColumns& columns, const std::vector<ValueTest>& tests, const CompareFlags& flags) {
  auto centre = [](double mean, const Interval& i) {
    return fmt::format("{:.4g} ({:.4g} to {:.4g})", mean, i.low, i.high);
  };
  Table table({"measure", ">n", ">" + printable(columns.a, 30), ">" + printable(columns.b, 30), ">" + flags.test, ">p",
               ">p (Holm)", ">effect"});
  for (const ValueTest& t : tests)
    table.add({printable(t.measure, 40), fmt::format("{}, {}", t.n_a, t.n_b), centre(t.mean_a, t.interval_a),
               centre(t.mean_b, t.interval_b), fmt::format("{:.4g}", t.statistic),
               fmt::format("{:.4f}{}", t.p, t.exact ? "" : "~"), fmt::format("{:.4f}", t.corrected_p),
               fmt::format("{:.3f}", t.effect)});
  say("{}", table.str());
}

Json values_json(const ValueColumns& columns, const std::vector<ValueTest>& tests, const CompareFlags& flags) {
  Json j = {{"test", flags.test}, {"a", columns.a}, {"b", columns.b}, {"tests", Json::array()}};
  for (const ValueTest& t : tests)
    j["tests"].push_back({{"measure", t.measure},
                          {"n_a", t.n_a},
                          {"n_b", t.n_b},
                          {"mean_a", t.mean_a},
                          {"mean_b", t.mean_b},
                          {"interval_a", {t.interval_a.low, t.interval_a.high}},
                          {"interval_b", {t.interval_b.low, t.interval_b.high}},
                          {"statistic", t.statistic},
                          {"p", t.p},
                          {"exact", t.exact},
                          {"holm_p", t.corrected_p},
                          {"effect", t.effect}});
  return j;
}

void run_values(Common& common, const CompareFlags& flags) {
  if (!flags.folders.empty()) bad_usage("give --values or campaigns, not both");
  ValueTestKind kind = parse_value_test(flags.test);
  ValueColumns columns = read_values(flags.values, kind);
  std::vector<ValueTest> tests = test_values(columns, kind, Rng(common.seed));
  flags.gates.check(names_of(value_figures(tests)));
  if (common.json) {
    common.give(values_json(columns, tests, flags));
  } else {
    print_values(columns, tests, flags);
  }
  flags.gates.judge(common, value_figures(tests), {"galvani compare " + flags.test, flags.values, 0, {}});
}

void run(Common& common, const CompareFlags& flags) {
  if (!flags.values.empty()) return run_values(common, flags);
  if (flags.folders.empty()) bad_usage("name the campaigns to compare, or --values and a CSV file");
  flags.gates.check(names_of(figures_of(Comparison())));
  GroupBy by = parse_group_by(flags.by);
  for (const std::string& name : flags.shown) measure_index(name);
  if (!flags.plot.empty()) check_output(flags.plot);
  Comparison comparison = compare_runs({flags.folders.begin(), flags.folders.end()}, by);
  if (!flags.plot.empty()) write_file(flags.plot, comparison_svg(comparison));
  if (common.json) {
    common.give(as_json(comparison, flags));
  } else {
    print(comparison, flags);
  }
  flags.gates.judge(common, figures_of(comparison), {"galvani compare by " + flags.by, flags.folders.front(), 0, {}});
}

}  // namespace

void add_compare_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<CompareFlags>();
  Verb& verb = make_verb(
      app, common, "compare", "repeated campaigns side by side: means, Mann-Whitney U, A12",
      "  galvani compare kmnc-1 kmnc-2 kmnc-3 random-1 random-2 random-3\n"
      "  galvani compare runs/* --by generator --measure distinct --plot growth.svg\n"
      "  galvani compare --values accuracy.csv --test wilcoxon        plain numbers: measure,a,b\n"
      "Each line of the second table asks whether one group is larger than the other: p of the two-sided\n"
      "Mann-Whitney U test (exact; ~: approximated), corrected for the number of pairs by Holm's method, and\n"
      "A12, how often a run of the first beats one of the second.");
  verb.add_option("runs", flags->folders, "the campaigns' folders");
  verb.add_option("--by", flags->by, "what a group shares: guide, generator, model, or all settings but the seed")
      .show_default();
  verb.add_option(
          "--measure", flags->shown,
          "tests to print: faults, distinct, not-a-number, kept-faults, outputs, rft, fre, coverage, classes, oi "
          "(--json has all)")
      .separated_by(',')
      .show_default();
  verb.add_option("--plot", flags->plot, "write growth curves as SVG");
  const char* plain = "Plain numbers instead of campaigns";
  verb.add_option("--values", flags->values,
                  "CSV with a header and three columns, a measure and two values: a test for every measure")
      .group(plain);
  verb.add_option("--test", flags->test, "which: u, wilcoxon (pairs), pearson, spearman, point-biserial (0 or 1 first)")
      .check(OneOf{kValueTestNames})
      .show_default()
      .group(plain);
  flags->gates.add_to(verb, "faults-p<0.05");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
