#include "select_evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "galvani/base/files.h"
#include "galvani/base/plot.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/quality/statistics.h"

namespace galvani::cli {
namespace {

// A figure over the runs of a selector.
struct Spread {
  double mean = 0;
  std::optional<Interval> interval;
};

// Over seeds if there are several; else, of a share, what chance leaves open.
Spread spread_of(const std::vector<double>& values) {
  Spread spread{mean_of(values), std::nullopt};
  if (values.size() > 1) spread.interval = bootstrap_mean(values, {}, Rng(0).derive("runs"));
  return spread;
}

template <class Value>
std::vector<double> over_runs(const SelectorFigures& figures, const Value& value) {
  std::vector<double> values;
  for (const SelectorRun& run : figures.runs) values.push_back(value(run));
  return values;
}

Spread fdr_of(const SelectorFigures& figures, std::size_t budget) {
  Spread spread = spread_of(over_runs(figures, [&](const SelectorRun& run) { return run.at[budget].fdr; }));
  const PickFigures& first = figures.runs[0].at[budget];
  if (!spread.interval) spread.interval = bootstrap_share(first.faults, first.picks);
  return spread;
}

Spread rauc_of(const SelectorFigures& figures, std::size_t budget) {
  return spread_of(over_runs(figures, [&](const SelectorRun& run) { return run.at[budget].rauc; }));
}

Spread types_of(const SelectorFigures& figures, std::size_t budget) {
  return spread_of(
      over_runs(figures, [&](const SelectorRun& run) { return static_cast<double>(run.at[budget].types); }));
}

Json spread_json(const Spread& spread) {
  Json j = {{"mean", spread.mean}};
  if (spread.interval) j["interval"] = {spread.interval->low, spread.interval->high};
  return j;
}

std::string share_text(const Spread& spread) {
  std::string text = std::isnan(spread.mean) ? "-" : fmt::format("{:.1f}", spread.mean * 100);
  if (spread.interval) text += fmt::format(" ({:.0f}-{:.0f})", spread.interval->low * 100, spread.interval->high * 100);
  return text;
}

double apfd_faults(const SelectorRun& run) {
  return run.apfd.faults;
}
double apfd_types(const SelectorRun& run) {
  return run.apfd.types;
}
double own_seconds(const SelectorRun& run) {
  return run.seconds;
}

Json evaluation_json(const PoolEvaluation& evaluation, const std::vector<std::string>& names) {
  Json all = Json::array();
  for (std::size_t i = 0; i < evaluation.by.size(); ++i) {
    const SelectorFigures& figures = evaluation.by[i];
    Json at = Json::array();
    for (std::size_t b = 0; b < evaluation.budgets.size(); ++b) {
      at.push_back({{"share", evaluated_shares()[b] / 100.0},
                    {"picks", evaluation.budgets[b]},
                    {"fdr", spread_json(fdr_of(figures, b))},
                    {"types", spread_json(types_of(figures, b))},
                    {"rauc", spread_json(rauc_of(figures, b))}});
    }
    Json seeds = Json::array();
    for (const SelectorRun& run : figures.runs) seeds.push_back(run.seed);
    all.push_back({{"name", names[i]},
                   {"selector", figures.id},
                   {"spec", figures.spec},
                   {"seeds", seeds},
                   {"at", at},
                   {"apfd", spread_json(spread_of(over_runs(figures, apfd_faults)))},
                   {"apfd_types", spread_json(spread_of(over_runs(figures, apfd_types)))},
                   {"seconds", mean_of(over_runs(figures, own_seconds))},
                   {"notes", figures.notes}});
  }
  return {{"inputs", evaluation.inputs},
          {"faults", evaluation.faults},
          {"fault_types", evaluation.types},
          {"selectors", all},
          {"times", times_json(evaluation.times)}};
}

// A line for every selector, seed and budget.
std::string evaluation_csv(const PoolEvaluation& evaluation, const std::vector<std::string>& names) {
  std::string text = "selector,seed,share,picks,faults,fdr,types,rauc,apfd,apfd_types,seconds\n";
  for (std::size_t i = 0; i < evaluation.by.size(); ++i) {
    for (const SelectorRun& run : evaluation.by[i].runs) {
      for (std::size_t b = 0; b < run.at.size(); ++b) {
        const PickFigures& at = run.at[b];
        text += fmt::format("{},{},{},{},{},{:.6g},{},{:.6g},{:.6g},{:.6g},{:.4g}\n", csv_cell(names[i]), run.seed,
                            evaluated_shares()[b] / 100.0, at.picks, at.faults, at.fdr, at.types, at.rauc,
                            run.apfd.faults, run.apfd.types, run.seconds);
      }
    }
  }
  return text;
}

std::string evaluation_plot(const PoolEvaluation& evaluation, const std::vector<std::string>& names) {
  constexpr std::size_t kPoints = 200;
  PlotPanel rate{"Fault detection rate", "picked, % of the pool", "wrong among the picked", {}, true};
  PlotPanel types{"Fault types", "picked, % of the pool", "different pairs label, verdict", {}, false};
  for (std::size_t i = 0; i < evaluation.by.size(); ++i) {
    const SelectorFigures& figures = evaluation.by[i];
    PlotSeries found{names[i], {}}, kinds{names[i], {{0, 0}}};
    std::size_t n = figures.faults.size();
    // The first few picks give no rate worth drawing.
    for (std::size_t point = 1; point <= kPoints; ++point) {
      std::size_t picks = std::max<std::size_t>(1, point * n / kPoints);
      double x = 100 * static_cast<double>(picks) / static_cast<double>(evaluation.inputs);
      kinds.points.emplace_back(x, static_cast<double>(figures.types[picks - 1]));
      if (picks * 20 >= n)
        found.points.emplace_back(x, static_cast<double>(figures.faults[picks - 1]) / static_cast<double>(picks));
    }
    rate.series.push_back(found);
    types.series.push_back(kinds);
  }
  return plot_svg({rate, types}, 2);
}

void print_evaluation(const PoolEvaluation& evaluation, const std::vector<std::string>& names, const Network& network,
                      const std::string& data) {
  say("{}: {}, of which {} gets {} wrong ({:.1f}%), in {}\n\n", data, counted(evaluation.inputs, "input"),
      network.info().path, format_count(evaluation.faults),
      100 * static_cast<double>(evaluation.faults) / static_cast<double>(evaluation.inputs),
      counted(evaluation.types, "different way"));
  std::vector<std::string> titles = {"selector"};
  for (int share : evaluated_shares()) titles.push_back(fmt::format(">FDR at {}%", share));
  for (const char* title : {">types", ">RAUC", ">APFD", ">APFD of types", ">seconds", ">runs"})
    titles.emplace_back(title);
  Table table(titles);
  std::size_t last = evaluation.budgets.size() - 1;
  for (std::size_t i = 0; i < evaluation.by.size(); ++i) {
    const SelectorFigures& figures = evaluation.by[i];
    std::vector<std::string> row = {names[i]};
    for (std::size_t b = 0; b <= last; ++b) row.push_back(share_text(fdr_of(figures, b)));
    row.push_back(fmt::format("{:.1f}", types_of(figures, last).mean));
    row.push_back(fmt::format("{:.1f}", 100 * rauc_of(figures, last).mean));
    row.push_back(fmt::format("{:.1f}", 100 * mean_of(over_runs(figures, apfd_faults))));
    row.push_back(fmt::format("{:.1f}", 100 * mean_of(over_runs(figures, apfd_types))));
    row.push_back(fmt::format("{:.2f}", mean_of(over_runs(figures, own_seconds))));
    row.push_back(fmt::format("{}", figures.runs.size()));
    table.add(std::move(row));
  }
  say("{}", table.str());
  say("FDR: percent of the picked that are wrong, with a 95% interval (over seeds where there are several runs); types "
      "and RAUC at {}%\n",
      evaluated_shares()[last]);
  for (std::size_t i = 0; i < evaluation.by.size(); ++i) {
    for (const std::string& note : evaluation.by[i].notes) say("{}: {}\n", names[i], note);
  }
  say("{}\n", times_text(evaluation.times));
}

}  // namespace

const std::vector<int>& evaluated_shares() {
  static const std::vector<int> shares = {5, 10, 15, 20};
  return shares;
}

std::vector<std::int64_t> evaluated_budgets(std::int64_t n) {
  std::vector<std::int64_t> budgets;
  for (int share : evaluated_shares()) budgets.push_back(std::max<std::int64_t>(1, n * share / 100));
  return budgets;
}

std::vector<std::string> selector_names(const std::vector<Spec>& by) {
  std::vector<std::string> names;
  for (const Spec& spec : by) names.push_back(spec.str());
  return names;
}

std::vector<std::string> evaluation_figure_names(const std::vector<Spec>& by) {
  std::vector<std::string> names = {"inputs", "faults"};
  for (const std::string& selector : selector_names(by)) {
    for (int share : evaluated_shares()) names.push_back(fmt::format("{}-fdr-{}", selector, share));
    names.push_back(selector + "-rauc");
    names.push_back(selector + "-apfd");
  }
  return names;
}

void report_evaluation(Common& common, const PoolEvaluation& evaluation, const std::vector<Spec>& by,
                       const EvaluateOutputs& outputs, const Network& network, const std::string& data,
                       const GateFlags& gates) {
  std::vector<std::string> names = selector_names(by);
  if (!outputs.csv.empty()) write_file(outputs.csv, evaluation_csv(evaluation, names));
  if (!outputs.plot.empty()) write_file(outputs.plot, evaluation_plot(evaluation, names));
  if (common.json) {
    Json j = evaluation_json(evaluation, names);
    j["model"] = network.info().path;
    j["data"] = data;
    common.give(j);
  } else {
    print_evaluation(evaluation, names, network, data);
  }
  Figures figures = {{"inputs", static_cast<double>(evaluation.inputs)},
                     {"faults", static_cast<double>(evaluation.faults)}};
  std::size_t last = evaluation.budgets.size() - 1;
  for (std::size_t i = 0; i < evaluation.by.size(); ++i) {
    for (std::size_t b = 0; b <= last; ++b)
      figures.emplace_back(fmt::format("{}-fdr-{}", names[i], evaluated_shares()[b]), fdr_of(evaluation.by[i], b).mean);
    figures.emplace_back(names[i] + "-rauc", rauc_of(evaluation.by[i], last).mean);
    figures.emplace_back(names[i] + "-apfd", mean_of(over_runs(evaluation.by[i], apfd_faults)));
  }
  gates.judge(common, figures, {"galvani select --evaluate " + data, network.info().path, 0, {}});
}

Json times_json(const SelectTimes& times) {
  return {{"training", times.training},
          {"passes", times.passes},
          {"mutating", times.mutating},
          {"again", times.again},
          {"sample", times.sample}};
}

std::string times_text(const SelectTimes& times) {
  std::string text = fmt::format("passes that all share: {:.2f} s over the pool", times.passes);
  if (times.training > 0) text += fmt::format(", {:.2f} s over training data", times.training);
  if (times.mutating > 0) text += fmt::format(", {:.2f} s to make mutants", times.mutating);
  if (times.again > 0) text += fmt::format(", {:.2f} s over the best again", times.again);
  if (times.sample > 0) text += fmt::format("; {:.2f} s of it for the sample", times.sample);
  return text;
}

}  // namespace galvani::cli
