#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "coverage_flags.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json_text.h"
#include "galvani/base/log.h"
#include "galvani/base/plot.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/coverage/measure.h"
#include "galvani/coverage/minimise.h"
#include "galvani/data/export.h"
#include "galvani/model/evaluate.h"
#include "verb.h"

namespace galvani::cli {
namespace {

using nlohmann::json;

struct CoverFlags {
  ModelFlags model;
  NeuronFlags neurons;
  ProfileFlags profile;
  std::string data;
  std::string criteria = "nc,kmnc,nbc,snac,tknc,tknp,nlc";
  std::vector<std::string> compare;
  std::vector<std::string> states;
  std::string save_state;
  std::string csv;
  std::string plot;
  std::string minimised;
  bool by_class = false;
  bool taps_table = false;
  bool list = false;
};

using Criteria = std::vector<std::unique_ptr<Criterion>>;

// What one pass over data gives.
struct Result {
  Result(Measurement measured, std::int64_t n) : measurement(std::move(measured)), inputs(n) {}
  Measurement measurement;
  std::int64_t inputs;
  std::int64_t dropped = 0;  // inputs that no criterion could use
  double forward_seconds = 0;
  std::map<std::int64_t, Criteria> by_class;
  FeatureTable features;
};

struct Job {
  Tracer& tracer;
  std::shared_ptr<const Profile> profile;
  const CoverFlags& flags;

  Criteria fresh() const { return make_criteria(flags.criteria, {tracer.layout(), profile}); }

  Result measure(const DataView& data, bool by_class, bool collect) const {
    Criteria criteria = fresh();
    for (const std::string& state : flags.states) merge_states(state, criteria, tracer.layout());
    Result result(Measurement(std::move(criteria)), data.size());
    tracer.need(result.measurement.needs());
    auto since = std::chrono::steady_clock::now();
    double in_sink = 0;
    tracer.stream(data, "covering", [&](const Traces& traces, std::int64_t first) {
      auto start = std::chrono::steady_clock::now();
      result.measurement.add(traces);
      result.dropped += std::count(traces.usable.begin(), traces.usable.end(), 0);
      if (by_class) add_by_class(data, traces, first, result);
      if (collect) {
        Features found;
        for (std::size_t i = 0; i < result.measurement.criteria().size(); ++i) {
          if (result.measurement.criteria()[i]->features(traces, found)) result.features.add(first, found, i);
        }
      }
      in_sink += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    });
    result.forward_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count() - in_sink;
    return result;
  }

  // Every class has criteria of its own, given rows of that class alone.
  void add_by_class(const Labelled& data, const Traces& traces, std::int64_t first, Result& result) const;
};

void Job::add_by_class(const Labelled& data, const Traces& traces, std::int64_t first, Result& result) const {
  bool labelled = data.labelled();
  std::map<std::int64_t, std::vector<std::int64_t>> rows;
  for (std::int64_t i = 0; i < traces.size(); ++i) {
    auto label = labelled ? data.labels[first + i].item<std::int64_t>() : traces.predicted[i].item<std::int64_t>();
    rows[label].push_back(i);
  }
  for (const auto& [label, members] : rows) {
    Criteria& criteria = result.by_class[label];
    if (criteria.empty()) criteria = fresh();
    Traces own = rows_of(traces, members);
    for (const auto& criterion : criteria) criterion->add(own);
  }
}

// "71.23%" of what can be covered, or a plain number where there is no end.
std::string show(const Covered& amount) {
  if (amount.total > 0) return fmt::format("{:.2f}%", amount.score() * 100);
  return amount.covered == std::floor(amount.covered) ? format_count(static_cast<std::int64_t>(amount.covered))
                                                      : fmt::format("{:.5g}", amount.covered);
}

std::string show_count(double count) {
  return count == std::floor(count) ? format_count(static_cast<std::int64_t>(count)) : fmt::format("{:.5g}", count);
}

json as_json(const Covered& amount) {
  return {{"score", amount.score()},
          {"covered", amount.covered},
          {"total", amount.total > 0 ? json(amount.total) : json()}};
}

json criteria_json(const Result& result) {
  json all = json::array();
  for (std::size_t i = 0; i < result.measurement.criteria().size(); ++i) {
    const Criterion& criterion = *result.measurement.criteria()[i];
    json j = as_json(criterion.covered());
    j["id"] = criterion.id();
    j["spec"] = criterion.spec();
    j["seconds"] = result.measurement.seconds(i);
    j["dropped"] = criterion.dropped();
    j["notes"] = criterion.notes();
    j["taps"] = json::array();
    for (const TapCovered& tap : criterion.by_tap()) {
      json t = as_json(tap.amount);
      t["tap"] = tap.tap;
      j["taps"].push_back(std::move(t));
    }
    j["curve"] = json::array();
    for (auto [inputs, score] : result.measurement.curve(i)) j["curve"].push_back({inputs, score});
    all.push_back(std::move(j));
  }
  return all;
}

void print_table(const Result& result) {
  Table table({"criterion", ">score", ">covered", ">of", ">time"});
  for (std::size_t i = 0; i < result.measurement.criteria().size(); ++i) {
    const Criterion& criterion = *result.measurement.criteria()[i];
    Covered amount = criterion.covered();
    table.add({criterion.spec(), show(amount), show_count(amount.covered),
               amount.total > 0 ? show_count(amount.total) : "-",
               fmt::format("{:.2f} s", result.measurement.seconds(i))});
  }
  say("{}", table.str());
  say("{} inputs; the network took {:.2f} s\n", format_count(result.inputs), result.forward_seconds);
}

void print_taps(const Result& result, const TraceLayout& layout) {
  std::vector<std::string> titles = {"tap", ">neurons"};
  for (const auto& criterion : result.measurement.criteria()) titles.push_back(">" + criterion->id());
  Table table(titles);
  std::map<std::string, std::vector<std::string>> cells;
  for (std::size_t i = 0; i < result.measurement.criteria().size(); ++i) {
    for (const TapCovered& tap : result.measurement.criteria()[i]->by_tap()) {
      auto& row = cells[tap.tap];
      row.resize(result.measurement.criteria().size(), "");
      row[i] = show(tap.amount);
    }
  }
  for (const TraceBlock& block : layout.blocks) {
    std::vector<std::string> row = {block.tap, format_count(block.count)};
    auto& found = cells[block.tap];
    found.resize(result.measurement.criteria().size(), "");
    row.insert(row.end(), found.begin(), found.end());
    table.add(row);
  }
  say("\n{}", table.str());
}

void print_classes(const Result& result, const Network& network, const Labelled& data) {
  std::vector<std::string> titles = {"class"};
  for (const auto& criterion : result.measurement.criteria()) titles.push_back(">" + criterion->id());
  titles.insert(titles.begin() + 1, ">inputs");
  Table table(titles);
  for (const auto& [label, criteria] : result.by_class) {
    std::vector<std::string> row = {verdict_name(network, data, label),
                                    format_count(criteria.front()->inputs() + criteria.front()->dropped())};
    for (const auto& criterion : criteria) row.push_back(show(criterion->covered()));
    table.add(row);
  }
  say("\n{}", table.str());
}

json classes_json(const Result& result) {
  json all = json::array();
  for (const auto& [label, criteria] : result.by_class) {
    json scores = json::object();
    for (const auto& criterion : criteria) scores[criterion->spec()] = criterion->score();
    all.push_back({{"class", label}, {"inputs", criteria.front()->inputs()}, {"scores", scores}});
  }
  return all;
}

void write_csv(const Result& result, const std::string& path) {
  std::string text = "criterion,spec,tap,covered,total,score\n";
  for (const auto& criterion : result.measurement.criteria()) {
    auto line = [&](const std::string& tap, const Covered& amount) {
      text += fmt::format("{},{},{},{},{},{}\n", criterion->id(), csv_name(criterion->spec()), csv_name(tap),
                          amount.covered, amount.total > 0 ? fmt::format("{}", amount.total) : "", amount.score());
    };
    line("", criterion->covered());
    for (const TapCovered& tap : criterion->by_tap()) line(tap.tap, tap.amount);
  }
  write_file(path, text);
}

void write_plot(const Result& result, const std::string& path) {
  std::vector<PlotPanel> panels;
  for (std::size_t i = 0; i < result.measurement.criteria().size(); ++i) {
    const Criterion& criterion = *result.measurement.criteria()[i];
    Covered amount = criterion.covered();
    PlotPanel panel;
    panel.title = fmt::format("{}: {}", criterion.id(), show(amount));
    panel.x_title = "inputs";
    panel.percent = amount.total > 0;
    panel.series.push_back({criterion.id(), {}});
    for (auto [inputs, score] : result.measurement.curve(i))
      panel.series.back().points.emplace_back(static_cast<double>(inputs), score);
    panels.push_back(std::move(panel));
  }
  write_file(path, plot_svg(panels));
}

// Inputs that keep what is covered: greedy for criteria that are sets of features; for the others those that gained
// something, in order, which lead to the same state.
std::vector<std::int64_t> minimised_inputs(const Result& result) {
  std::vector<std::int64_t> kept;
  for (const KeptInput& input : minimise(result.features)) kept.push_back(input.input);
  for (std::size_t i = 0; i < result.measurement.criteria().size(); ++i) {
    if (result.measurement.criteria()[i]->covered_features() != nullptr) continue;
    std::vector<std::int64_t> gainers = result.measurement.gainers(i);
    kept.insert(kept.end(), gainers.begin(), gainers.end());
  }
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

// What --minimise writes is a file or a folder of images.
bool is_file_name(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  return extension == ".npz" || extension == ".csv";
}

void write_subset(const DataView& data, const std::vector<std::int64_t>& kept, const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npz") {
    write_npz_dataset(data.subset(kept).load(), path);
  } else if (extension == ".csv") {
    std::string text = "index,label\n";
    for (std::int64_t i : kept) {
      auto label = data.labels[i].item<std::int64_t>();
      text += fmt::format("{},{}\n", i, label < 0 ? "" : std::to_string(label));
    }
    write_file(path, text);
  } else {
    write_sample_folder(data.subset(kept), path);
  }
}

void check_minimise(const CoverFlags& flags) {
  for (const Spec& spec : Spec::parse_list(flags.criteria)) {
    if (spec.name == "cac" || (spec.name == "nlc" && spec.str().find("free") != std::string::npos))
      bad_usage("--minimise cannot keep the coverage of {}: every input counts in it, also one that covers nothing new",
                spec.str());
  }
}

// All criteria drop the same inputs, so it is said once.
void warn_of_dropped(const Labelled& data, const Result& result) {
  if (result.dropped > 0)
    log::warn("{}: {} of {} inputs have NaN or infinite values and were dropped", data.name,
              format_count(result.dropped), format_count(result.inputs));
}

void run_compare(const Common& common, const Job& job, const Network& network, const DataView& a, const DataView& b) {
  Result of_a = job.measure(a, false, false);
  Result of_b = job.measure(b, false, false);
  warn_of_dropped(a, of_a);
  warn_of_dropped(b, of_b);
  json all = json::array();
  Table table({"criterion", ">A", ">B", ">A and B", ">only A", ">only B", ">B adds"});
  for (std::size_t i = 0; i < of_a.measurement.criteria().size(); ++i) {
    const Criterion& in_a = *of_a.measurement.criteria()[i];
    const Criterion& in_b = *of_b.measurement.criteria()[i];
    auto together = in_a.fresh();
    together->merge(in_a);
    together->merge(in_b);
    json j = {{"spec", in_a.spec()},
              {"a", in_a.score()},
              {"b", in_b.score()},
              {"together", together->score()},
              {"adds", together->score() - in_a.score()}};
    std::string only_a = "-";
    std::string only_b = "-";
    if (in_a.covered_features() != nullptr) {
      auto missing_in_b = in_a.covered_features()->count_missing_from(*in_b.covered_features());
      auto missing_in_a = in_b.covered_features()->count_missing_from(*in_a.covered_features());
      only_a = format_count(static_cast<std::int64_t>(missing_in_b));
      only_b = format_count(static_cast<std::int64_t>(missing_in_a));
      j["only_a"] = missing_in_b;
      j["only_b"] = missing_in_a;
    }
    Covered gained = together->covered();
    gained.covered -= in_a.covered().covered;
    table.add({in_a.spec(), show(in_a.covered()), show(in_b.covered()), show(together->covered()), only_a, only_b,
               show(gained)});
    all.push_back(std::move(j));
  }
  if (common.json) {
    print_json({{"model", network.info().path},
                {"a", a.name},
                {"b", b.name},
                {"dropped", {of_a.dropped, of_b.dropped}},
                {"criteria", all}},
               1);
  } else {
    say("A = {} ({} inputs), B = {} ({} inputs)\n{}", a.name, a.size(), b.name, b.size(), table.str());
  }
}

void run(const Common& common, CoverFlags& flags) {
  if (flags.list) {
    say("{}", list_criteria());
    return;
  }
  if (flags.model.model.empty()) bad_usage("name a model");
  if (flags.compare.empty() == flags.data.empty()) bad_usage("give either --data or --compare A B");
  if (!flags.minimised.empty()) check_minimise(flags);
  DataView data = open_data(flags.compare.empty() ? flags.data : flags.compare[0]);
  std::unique_ptr<Network> network = flags.model.load(data.type());
  Tracer tracer = flags.neurons.tracer(*network);
  std::vector<Spec> specs = Spec::parse_list(flags.criteria);
  Job job{tracer, flags.profile.get(tracer, specs, common.seed), flags};
  if (!flags.compare.empty()) {
    run_compare(common, job, *network, data, open_data(flags.compare[1]));
    return;
  }
  Result result = job.measure(data, flags.by_class, !flags.minimised.empty());
  warn_of_dropped(data, result);
  if (!flags.save_state.empty()) save_states(flags.save_state, result.measurement.criteria(), tracer.layout());
  if (!flags.csv.empty()) write_csv(result, flags.csv);
  if (!flags.plot.empty()) write_plot(result, flags.plot);
  std::vector<std::int64_t> kept;
  if (!flags.minimised.empty()) {
    kept = minimised_inputs(result);
    if (kept.empty()) bad_usage("nothing is covered, so there is nothing to keep");
    write_subset(data, kept, flags.minimised);
  }
  if (common.json) {
    json j = {{"model", network->info().path},
              {"data", data.name},
              {"inputs", data.size()},
              {"dropped", result.dropped},
              {"neurons", tracer.layout().neurons},
              {"forward_seconds", result.forward_seconds}};
    j["criteria"] = criteria_json(result);
    if (flags.by_class) j["classes"] = classes_json(result);
    if (!flags.minimised.empty()) j["minimised"] = {{"kept", kept.size()}, {"output", flags.minimised}};
    print_json(j, 1);
    return;
  }
  print_table(result);
  if (flags.taps_table) print_taps(result, tracer.layout());
  if (flags.by_class) print_classes(result, *network, data);
  if (!flags.minimised.empty())
    say("{} of {} inputs keep this coverage: {}\n", format_count(static_cast<std::int64_t>(kept.size())),
        format_count(data.size()), flags.minimised);
  for (const auto& criterion : result.measurement.criteria()) {
    for (const std::string& note : criterion->notes()) log::info("{}: {}", criterion->id(), note);
  }
}

}  // namespace

void add_cover_verb(CLI::App& app, Common& common) {
  auto flags = std::make_shared<CoverFlags>();
  CLI::App* verb = make_verb(
      app, common, "cover", "measure how much of the network's behaviour inputs exercise",
      "  galvani cover lenet5.onnx --data mnist:test --train mnist:train\n"
      "  galvani cover lenet5.onnx --data mnist:test --criteria kmnc:k=1000,nlc --profile lenet5.profile --by-tap\n"
      "  galvani cover lenet5.onnx --data mnist:test --criteria nc,tknc --plot growth.svg\n"
      "  galvani cover lenet5.onnx --data mnist:test --criteria kmnc --profile p --minimise kept.npz\n"
      "  galvani cover lenet5.onnx --compare mnist:test more/ --criteria nc,tknc\n"
      "  galvani cover --list");
  flags->model.add_to(*verb);
  verb->get_option("model")->required(false);
  runs_models(*verb, common, [flags] {
    Confinement outputs{{}, {flags->csv, flags->plot, flags->save_state}};
    (is_file_name(flags->minimised) ? outputs.files : outputs.folders).emplace_back(flags->minimised);
    return outputs;
  });
  flags->neurons.add_to(*verb);
  flags->profile.add_to(*verb);
  verb->add_option("--data", flags->data, "inputs to measure");
  verb->add_option("--criteria", flags->criteria, "criteria with options, such as kmnc:k=1000,nlc")
      ->capture_default_str();
  verb->add_flag("--list", flags->list, "list the criteria and their options");
  verb->add_flag("--by-tap", flags->taps_table, "a table of every tap, too");
  verb->add_flag("--by-class", flags->by_class, "what the inputs of each class cover alone");
  verb->add_option("--csv", flags->csv, "write totals and taps as CSV");
  verb->add_option("--plot", flags->plot, "draw growth curves as SVG");
  verb->add_option("--minimise", flags->minimised,
                   "write the fewest inputs that keep the coverage: .npz, .csv (indices), or a folder of images");
  verb->add_option("--compare", flags->compare, "what data B covers that data A does not")->expected(2);
  verb->add_option("--state", flags->states, "start from coverage saved earlier; several files are merged");
  verb->add_option("--save-state", flags->save_state, "save what is covered, to go on or merge later");
  verb->callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
