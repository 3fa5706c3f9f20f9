#include "galvani/coverage/cover.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>

#include "cover_dpd.h"
#include "coverage_flags.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/plot.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/data/export.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/inputs.h"
#include "gate_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct CoverFlags {
  ModelFlags model;
  NeuronFlags neurons;
  ProfileFlags profile;
  std::string data;
  std::string originals;
  std::string criteria = "nc,kmnc,nbc,snac,tknc,tknp,nlc";
  std::vector<std::string> compare;
  std::vector<std::string> states;
  std::string save_state;
  std::string csv;
  std::string plot;
  std::string minimised;
  GateFlags gates;
  bool by_class = false;
  bool taps_table = false;
  bool list = false;
};

Json as_json(const Covered& amount) {
  return {{"score", amount.score()},
          {"covered", amount.covered},
          {"total", amount.total > 0 ? Json(amount.total) : Json()}};
}

Json criteria_json(const CoverResult& result) {
  Json all = Json::array();
  for (std::size_t i = 0; i < result.measurement.criteria().size(); ++i) {
    const Criterion& criterion = *result.measurement.criteria()[i];
    Json j = as_json(criterion.covered());
    j["id"] = criterion.id();
    j["spec"] = criterion.spec();
    j["seconds"] = result.measurement.seconds(i);
    j["dropped"] = criterion.dropped();
    j["notes"] = criterion.notes();
    j["taps"] = Json::array();
    for (const TapCovered& tap : criterion.by_tap()) {
      Json t = as_json(tap.amount);
      t["tap"] = tap.tap;
      j["taps"].push_back(std::move(t));
    }
    j["curve"] = Json::array();
    for (auto [inputs, score] : result.measurement.curve(i)) j["curve"].push_back({inputs, score});
    all.push_back(std::move(j));
  }
  return all;
}

void print_table(const CoverResult& result) {
  Table table({"criterion", ">score", ">covered", ">of", ">time"});
  for (std::size_t i = 0; i < result.measurement.criteria().size(); ++i) {
    const Criterion& criterion = *result.measurement.criteria()[i];
    Covered amount = criterion.covered();
    table.add({criterion.spec(), coverage_text(amount), coverage_text({amount.covered, 0}),
               amount.total > 0 ? coverage_text({amount.total, 0}) : "-",
               fmt::format("{:.2f} s", result.measurement.seconds(i))});
  }
  say("{}", table.str());
  say("{}; the network took {:.2f} s\n", counted(result.inputs, "input"), result.forward_seconds);
}

void print_taps(const CoverResult& result, const TraceLayout& layout) {
  std::vector<std::string> titles = {"tap", ">neurons"};
  for (const auto& criterion : result.measurement.criteria()) titles.push_back(">" + criterion->id());
  Table table(titles);
  std::map<std::string, std::vector<std::string>> cells;
  for (std::size_t i = 0; i < result.measurement.criteria().size(); ++i) {
    for (const TapCovered& tap : result.measurement.criteria()[i]->by_tap()) {
      auto& row = cells[tap.tap];
      row.resize(result.measurement.criteria().size(), "");
      row[i] = coverage_text(tap.amount);
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

void print_classes(const CoverResult& result, const Network& network, const Labelled& data) {
  std::vector<std::string> titles = {"class"};
  for (const auto& criterion : result.measurement.criteria()) titles.push_back(">" + criterion->id());
  titles.insert(titles.begin() + 1, ">inputs");
  Table table(titles);
  for (const auto& [label, criteria] : result.by_class) {
    std::vector<std::string> row = {verdict_name(network, data, label),
                                    format_count(criteria.front()->inputs() + criteria.front()->dropped())};
    for (const auto& criterion : criteria) row.push_back(coverage_text(criterion->covered()));
    table.add(row);
  }
  say("\n{}", table.str());
}

Json classes_json(const CoverResult& result) {
  Json all = Json::array();
  for (const auto& [label, criteria] : result.by_class) {
    Json scores = Json::object();
    for (const auto& criterion : criteria) scores[criterion->spec()] = criterion->score();
    all.push_back({{"class", label}, {"inputs", criteria.front()->inputs()}, {"scores", scores}});
  }
  return all;
}

void write_csv(const CoverResult& result, const std::string& path) {
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

void write_plot(const CoverResult& result, const std::string& path) {
  std::vector<PlotPanel> panels;
  for (std::size_t i = 0; i < result.measurement.criteria().size(); ++i) {
    const Criterion& criterion = *result.measurement.criteria()[i];
    Covered amount = criterion.covered();
    PlotPanel panel;
    panel.title = fmt::format("{}: {}", criterion.id(), coverage_text(amount));
    panel.x_title = "inputs";
    panel.percent = amount.total > 0;
    panel.series.push_back({criterion.id(), {}});
    for (auto [inputs, score] : result.measurement.curve(i))
      panel.series.back().points.emplace_back(static_cast<double>(inputs), score);
    panels.push_back(std::move(panel));
  }
  write_file(path, plot_svg(panels));
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

// All criteria drop the same inputs, so it is said once.
void warn_of_dropped(const Labelled& data, const CoverResult& result) {
  if (result.dropped > 0)
    log::warn("{}: {} of {} inputs have NaN or infinite values and were dropped", data.name,
              format_count(result.dropped), format_count(result.inputs));
}

// What the conditions are on.
JunitSuite suite_of(const Network& network, const CoverFlags& flags, double seconds) {
  return {"galvani cover " + flags.criteria, network.info().path, seconds, {}};
}

void print(const DataView& a, const DataView& b, const std::vector<CoverDifference>& differences) {
  Table table({"criterion", ">A", ">B", ">A and B", ">only A", ">only B", ">B adds"});
  for (const CoverDifference& d : differences) {
    auto count = [](const std::optional<std::uint64_t>& n) {
      return n ? format_count(static_cast<std::int64_t>(*n)) : "-";
    };
    Covered gained = d.together;
    gained.covered -= d.a.covered;
    table.add({d.spec, coverage_text(d.a), coverage_text(d.b), coverage_text(d.together), count(d.only_a),
               count(d.only_b), coverage_text(gained)});
  }
  say("A = {} ({}), B = {} ({})\n{}", a.name, counted(a.size(), "input"), b.name, counted(b.size(), "input"),
      table.str());
}

Json as_json(const std::vector<CoverDifference>& differences) {
  Json all = Json::array();
  for (const CoverDifference& d : differences) {
    Json j = {{"spec", d.spec},
              {"a", d.a.score()},
              {"b", d.b.score()},
              {"together", d.together.score()},
              {"adds", d.together.score() - d.a.score()}};
    if (d.only_a) j["only_a"] = *d.only_a;
    if (d.only_b) j["only_b"] = *d.only_b;
    all.push_back(std::move(j));
  }
  return all;
}

void run_compare(Common& common, const CoverFlags& flags, Tracer& tracer, const CoverRequest& request,
                 const DataView& a, const DataView& b) {
  CoverResult of_a = measure_coverage(tracer, a, request);
  CoverResult of_b = measure_coverage(tracer, b, request);
  warn_of_dropped(a, of_a);
  warn_of_dropped(b, of_b);
  std::vector<CoverDifference> differences = compare_coverage(of_a, of_b);
  const Network& network = tracer.network();
  if (common.json) {
    common.give({{"model", network.info().path},
                 {"a", a.name},
                 {"b", b.name},
                 {"dropped", {of_a.dropped, of_b.dropped}},
                 {"criteria", as_json(differences)}});
  } else {
    print(a, b, differences);
  }
  flags.gates.judge(common, figures_of(differences),
                    suite_of(network, flags, of_a.forward_seconds + of_b.forward_seconds));
}

void print(const CoverResult& result, const CoverFlags& flags, const Tracer& tracer, const DataView& data,
           const std::vector<std::int64_t>& kept) {
  print_table(result);
  if (flags.taps_table) print_taps(result, tracer.layout());
  if (flags.by_class) print_classes(result, tracer.network(), data);
  if (!flags.minimised.empty())
    say("{} of {} keep this coverage: {}\n", format_count(static_cast<std::int64_t>(kept.size())),
        counted(data.size(), "input"), flags.minimised);
  for (const auto& criterion : result.measurement.criteria()) {
    for (const std::string& note : criterion->notes()) log::info("{}: {}", criterion->id(), note);
  }
}

Json as_json(const CoverResult& result, const CoverFlags& flags, const Tracer& tracer, const DataView& data,
             const std::vector<std::int64_t>& kept) {
  Json j = {{"model", tracer.network().info().path},
            {"data", data.name},
            {"inputs", data.size()},
            {"dropped", result.dropped},
            {"neurons", tracer.layout().neurons},
            {"forward_seconds", result.forward_seconds}};
  j["criteria"] = criteria_json(result);
  if (flags.by_class) j["classes"] = classes_json(result);
  if (!flags.minimised.empty()) j["minimised"] = {{"kept", kept.size()}, {"output", flags.minimised}};
  return j;
}

// Nothing but the discrepancy of decision paths was asked for.
void run_dpd(Common& common, const CoverFlags& flags, const Spec& dpd, Network& network, const DataView& data) {
  Discrepancy found = measure_dpd(dpd, network, data, open_data_for(network, flags.originals));
  if (common.json) {
    common.give(
        {{"model", network.info().path}, {"data", data.name}, {"inputs", data.size()}, {"dpd", dpd_json(found)}});
  } else {
    print_dpd(found);
  }
  flags.gates.judge(common, {{"dpd", found.score()}}, {"galvani cover dpd", network.info().path, 0, {}});
}

// What the criteria compare with; null where none does.
std::shared_ptr<const Profile> get_profile(CoverFlags& flags, Tracer& tracer, std::uint64_t seed) {
  std::vector<Spec> criteria = Spec::parse_list(flags.criteria);
  if (needs_profile(criteria, tracer.layout())) {
    flags.profile.take_own_split(flags.compare.empty() ? flags.data : flags.compare[0]);
    flags.profile.tell("criteria " + flags.criteria, "--criteria");
  }
  return find_profile(tracer, criteria, flags.profile, seed);
}

void run(Common& common, CoverFlags& flags) {
  if (flags.list) return list_criteria(common);
  if (flags.model.model.empty()) bad_usage("name a model");
  bool compare = !flags.compare.empty();
  if (compare != flags.data.empty()) bad_usage("give either --data or --compare A B");
  std::optional<Spec> dpd = take_dpd(flags.criteria);
  if (dpd && compare) bad_usage("dpd compares inputs with what they were made of, not two sets of data");
  if (dpd && flags.originals.empty()) bad_usage("dpd needs --originals: what the inputs were made of, in their order");
  if (!dpd && !flags.originals.empty()) bad_usage("--originals is of dpd, which is not among the criteria");
  std::vector<std::string> names = dpd && flags.criteria.empty() ? std::vector<std::string>()
                                   : compare                     ? difference_figure_names(flags.criteria)
                                                                 : cover_figure_names(flags.criteria);
  if (dpd) names.emplace_back("dpd");
  flags.gates.check(names);
  flags.model.options.any_task = true;
  auto [network, data] = load_with_data(flags.model, compare ? flags.compare[0] : flags.data);
  if (dpd && flags.criteria.empty()) return run_dpd(common, flags, *dpd, *network, data);
  Tracer tracer = flags.neurons.tracer(*network);
  CoverRequest request{flags.criteria,
                       get_profile(flags, tracer, common.seed),
                       {flags.states.begin(), flags.states.end()},
                       flags.by_class,
                       !flags.minimised.empty()};
  if (compare) {
    request.by_class = request.minimise = false;
    run_compare(common, flags, tracer, request, data, open_data_for(*network, flags.compare[1]));
    return;
  }
  CoverResult result = measure_coverage(tracer, data, request);
  warn_of_dropped(data, result);
  if (!flags.save_state.empty()) save_states(flags.save_state, result.measurement.criteria(), tracer.layout());
  if (!flags.csv.empty()) write_csv(result, flags.csv);
  if (!flags.plot.empty()) write_plot(result, flags.plot);
  std::vector<std::int64_t> kept;
  if (request.minimise) {
    kept = result.smallest();
    if (kept.empty()) bad_usage("nothing is covered, so there is nothing to keep");
    write_subset(data, kept, flags.minimised);
  }
  std::optional<Discrepancy> discrepancy;
  if (dpd) discrepancy = measure_dpd(*dpd, *network, data, open_data_for(*network, flags.originals));
  Figures figures = figures_of(result);
  if (discrepancy) figures.emplace_back("dpd", discrepancy->score());
  if (common.json) {
    Json j = as_json(result, flags, tracer, data, kept);
    if (discrepancy) j["dpd"] = dpd_json(*discrepancy);
    common.give(j);
  } else {
    print(result, flags, tracer, data, kept);
    if (discrepancy) print_dpd(*discrepancy);
  }
  flags.gates.judge(common, figures, suite_of(*network, flags, result.forward_seconds));
}

}  // namespace

void add_cover_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<CoverFlags>();
  Verb& verb = make_verb(
      app, common, "cover", "measure how much of the network's behaviour inputs exercise",
      "  galvani cover lenet5.onnx --data mnist:test\n"
      "  galvani cover lenet5.onnx --data pictures/test --train pictures/train --profile-size all\n"
      "  galvani cover lenet5.onnx --data mnist:test --criteria kmnc:k=1000,nlc --profile lenet5.profile --by-tap\n"
      "  galvani cover lenet5.onnx --data mnist:test --criteria nc,tknc --plot growth.svg\n"
      "  galvani cover lenet5.onnx --data mnist:test --criteria kmnc --profile p --minimise kept.npz\n"
      "  galvani cover lenet5.onnx --compare mnist:test more/ --criteria nc,tknc\n"
      "  galvani cover lenet5.onnx --data pool/ --originals mnist:test --criteria dpd:describe=neurons.json\n"
      "  galvani cover --list");
  flags->model.add_to(verb, /*required=*/false);
  runs_models(
      verb, common,
      [flags] {
        Confinement outputs{{}, {flags->csv, flags->plot, flags->save_state, flags->gates.junit}};
        (is_file_name(flags->minimised) ? outputs.files : outputs.folders).emplace_back(flags->minimised);
        return outputs;
      },
      Processes::many);
  flags->neurons.add_to(verb);
  flags->profile.add_to(verb);
  verb.add_option("--data", flags->data, "inputs to measure");
  verb.add_option("--criteria", flags->criteria, "criteria with options, such as kmnc:k=1000,nlc").show_default();
  verb.add_option("--originals", flags->originals,
                  "what the inputs were made of, as many, in their order: for dpd, the share that is decided for other "
                  "reasons (dpd:describe=neurons.json)");
  verb.add_flag("--list", flags->list, "list the criteria and their options");
  verb.add_flag("--by-tap", flags->taps_table, "a table of every tap, too");
  verb.add_flag("--by-class", flags->by_class, "what the inputs of each class cover alone");
  verb.add_option("--csv", flags->csv, "write totals and taps as CSV");
  verb.add_option("--plot", flags->plot, "draw growth curves as SVG");
  verb.add_option("--minimise", flags->minimised,
                  "write the fewest inputs that keep the coverage: .npz, .csv (indices), or a folder of images");
  verb.add_option("--compare", flags->compare, "what data B covers that data A does not").exactly(2);
  verb.add_option("--state", flags->states, "start from coverage saved earlier; several files are merged");
  verb.add_option("--save-state", flags->save_state, "save what is covered, to go on or merge later");
  flags->gates.add_to(verb, "kmnc<0.5");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
