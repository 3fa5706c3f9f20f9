#include "galvani/select/select.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/output_file.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/data/export.h"
#include "galvani/data/sheet.h"
#include "galvani/data/spec.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/inputs.h"
#include "galvani/report/selection_page.h"
#include "galvani/select/explain.h"
#include "gate_flags.h"
#include "list_json.h"
#include "model_flags.h"
#include "select_evaluate.h"
#include "select_picks.h"
#include "verb.h"

namespace galvani::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSheetPicks = 160;
constexpr std::size_t kPagePicks = 1000;
constexpr std::int64_t kSuggestedClasses = 1000;

struct SelectFlags {
  ModelFlags model;
  GateFlags gates;
  std::string data;
  std::string train;
  std::string originals;
  std::string by;
  std::string top = "5%";
  std::string output;
  std::string copy_to;
  std::string sheet;
  std::string report;
  std::string plot;
  std::int64_t repeats = 1;
  bool explain = false;
  bool diverse = false;
  bool evaluate = false;
  bool list = false;
};

void list_selectors(const Common& common) {
  Json all = Json::array();
  Table table({"selector", "takes first", "options (default)"});
  for (const auto& entry : selectors().entries()) {
    all.push_back(entry_json(entry.name, entry.help, entry.schema));
    table.add({entry.name, entry.help, defaults_text(entry.schema)});
  }
  if (common.json) {
    common.give({{"selectors", all}});
    return;
  }
  say("{}", table.str());
}

// "100", or "5%" of the pool, one at least.
std::int64_t parse_top(const std::string& text, std::int64_t pool) {
  bool percent = !text.empty() && text.back() == '%';
  double value = 0;
  const char* end = text.data() + text.size() - (percent ? 1 : 0);
  auto [stop, error] = std::from_chars(text.data(), end, value);
  bool good = error == std::errc() && stop == end && value > 0 && (percent ? value <= 100 : value == std::floor(value));
  if (!good) bad_usage("--top is '{}', but must be a number of inputs, such as 100, or a share, such as 5%", text);
  if (!percent && value > static_cast<double>(pool))
    bad_usage("--top is {}, but the pool has only {}", text, counted(pool, "input"));
  if (!percent) return static_cast<std::int64_t>(value);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(pool) * value / 100 + 1e-9));
}

// What is taken where nothing is said, by what is given: first by rank in the pools of docs/results/nss.md.
std::vector<Spec> chosen_selectors(const SelectFlags& flags) {
  if (!flags.by.empty()) return Spec::parse_list(flags.by);
  bool alone = flags.train.empty() && flags.originals.empty();
  return {Spec{alone ? "nns" : "fused", {}}};
}

void say_what_was_chosen(const SelectFlags& flags) {
  std::string chosen = "nns, the model's doubt averaged over similar inputs of the pool";
  if (!flags.train.empty() || !flags.originals.empty()) {
    chosen = "fused, which listens to the output, similar inputs of the pool";
    if (!flags.train.empty()) chosen += ", the training data";
    if (!flags.originals.empty()) chosen += ", the originals";
  }
  log::info("selecting by {}, the default for what was given{}; --by takes others, see --list", chosen,
            flags.train.empty() ? " (training data, --train, may find more)" : "");
}

// What goes wrong must do so before anything is read.
void check_flags(Verb& verb, const SelectFlags& flags, const std::vector<Spec>& by) {
  if (flags.model.model.empty()) bad_usage("name a model, and the inputs to choose from with --data");
  if (flags.data.empty()) bad_usage("--data is missing: the inputs to choose from");
  if (by.empty()) bad_usage("--by names no selector");
  std::vector<std::string> names = selector_names(by);
  for (std::size_t i = 0; i < by.size(); ++i) {
    selectors().options(by[i]);
    if (std::count(names.begin(), names.end(), names[i]) > 1) bad_usage("--by names {} twice", names[i]);
  }
  if (!flags.evaluate) {
    for (const char* name : {"--repeats", "--plot"}) {
      if (verb.was_given(name)) bad_usage("{} is of --evaluate", name);
    }
    if (by.size() > 1 && (!flags.copy_to.empty() || !flags.sheet.empty()))
      bad_usage("{} is of the picks of one selector, but --by names {}",
                flags.copy_to.empty() ? "--sheet" : "--copy-to", by.size());
    parse_top(flags.top, std::int64_t{1} << 53);
    flags.gates.check({"inputs", "picked", "not-a-number"});
    return;
  }
  for (const char* name : {"--top", "--copy-to", "--sheet", "--report", "--explain"}) {
    if (verb.was_given(name)) bad_usage("{} is not of --evaluate, which looks at 5, 10, 15 and 20% of the pool", name);
  }
  flags.gates.check(evaluation_figure_names(by));
}

// Whatever their folders are called: only the values matter.
DataView open_unlabelled(const Network& network, const std::string& spec) {
  InputNeeds needs = input_needs(network);
  needs.classes = 0;
  DataView data = OpenedData(spec).view(needs);
  data.class_names.clear();
  data.labels = at::full_like(data.labels, Labelled::kUnlabelled);
  return data;
}

void write_picks(const Picks& picks, const std::vector<std::string>& names, const PickTable& table,
                 const std::string& path) {
  OutputFile file(path);
  file.write(table.header() + "\n");
  for (std::size_t s = 0; s < names.size(); ++s) {
    for (std::size_t i = 0; i < picks.size(s); ++i) {
      check_interrupt();
      Pick pick = picks.at(s, i);
      file.write(table.before(names[s], pick) + table.after(pick) + "\n");
    }
  }
  file.commit();
}

void write_page(const Picks& picks, const std::string& selector, const PickTable& table, const Network& network,
                const DataView& pool, const Selected& selected, const SelectFlags& flags) {
  SelectionPage page;
  page.title =
      fmt::format("{} of {} by {}", format_count(static_cast<std::int64_t>(picks.size(0))), pool.name, selector);
  page.subtitle = fmt::format("inputs that are most worth a label, for {}", network.info().path);
  page.notes = selected.notes;
  page.header = table.header();
  page.table = "labelled.csv";
  page.type = pool.type();
  for (std::int64_t c = 0; c < std::min(kSuggestedClasses, network.info().classes); ++c)
    page.classes.push_back(verdict_name(network, pool, c));
  std::size_t shown = std::min(picks.size(0), kPagePicks);
  if (shown < picks.size(0)) page.notes.push_back(fmt::format("the first {} are shown", shown));
  for (std::size_t i = 0; i < shown; ++i) {
    check_interrupt();
    Pick pick = picks.at(0, i);
    PickCard card;
    card.image = pool.fetch(pick.row, 1)[0];
    card.title = fmt::format("{}. {}", pick.rank, pick.file.empty() ? std::to_string(pick.row) : pick.file);
    card.lines = table.sentences(pick);
    card.before = table.before(selector, pick);
    card.after = table.after(pick);
    page.picks.push_back(std::move(card));
  }
  write_file(flags.report, selection_page(page));
}

// The folder or file that rows with a file name came from; empty: they came from no single one.
fs::path source_folder(const std::string& spec) {
  std::vector<DataSpec> parts = parse_data_specs(spec);
  return parts.size() == 1 && parts[0].is_path ? fs::path(parts[0].source) : fs::path();
}

// The user's own files where there are such, else what the model was shown.
void copy_picks(const SelectFlags& flags, const DataView& pool, const std::vector<std::int64_t>& rows) {
  fs::path folder = source_folder(flags.data);
  std::error_code error;
  bool files = !folder.empty() && !pool.files.empty() && !pool.file(rows[0]).empty() &&
               fs::is_regular_file(folder / pool.file(rows[0]), error);
  DataView chosen = pool.subset(rows);
  chosen.labels = at::full_like(chosen.labels, Labelled::kUnlabelled);
  if (!files) return write_sample_folder(chosen, flags.copy_to);
  fs::create_directories(flags.copy_to, error);
  if (!fs::is_empty(flags.copy_to, error) || error)
    bad_usage("{}: is not an empty folder; name a new one", flags.copy_to);
  Progress progress("copying", static_cast<std::int64_t>(rows.size()), "files");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check_interrupt();
    fs::path from = folder / pool.file(rows[i]);
    write_file(fs::path(flags.copy_to) / fmt::format("{:06}-{}", i + 1, from.filename().string()),
               read_file(from.string()));
    progress.advance();
  }
}

void report_selection(Common& common, const SelectFlags& flags, Network& network, const DataView& pool,
                      const SelectRequest& request) {
  Selection selection = select_from(network, pool, request);
  std::vector<std::string> names = selector_names(request.by);
  Picks picks(network, pool, selection);
  std::optional<SelectionReasons> reasons;
  if (flags.explain)
    reasons = explain_picks(network, pool, {selection.by[0].picks[0], request.originals, "nss", request.seed});
  PickTable table(network, pool, absolute_spec(flags.data), reasons ? &*reasons : nullptr);
  if (!flags.output.empty()) write_picks(picks, names, table, flags.output);
  if (!flags.report.empty()) write_page(picks, names[0], table, network, pool, selection.by[0], flags);
  const std::vector<std::int64_t>& rows = selection.by[0].picks[0];
  if (!flags.sheet.empty()) {
    DataView top = pool.subset(
        {rows.begin(), rows.begin() + std::min<std::int64_t>(kSheetPicks, static_cast<std::int64_t>(rows.size()))});
    top.labels = at::full_like(top.labels, Labelled::kUnlabelled);
    top.class_names.clear();
    top.name = fmt::format("{} by {}", pool.name, names[0]);
    write_sheet(top, flags.sheet);
  }
  if (!flags.copy_to.empty()) copy_picks(flags, pool, rows);
  if (!selection.copies.empty()) log::warn("{}; they are left out", copies_text(pool, selection.copies));
  auto not_a_number = (selection.predicted == kNotANumber).sum().item<std::int64_t>();
  if (common.json) {
    Json j = {{"model", network.info().path},
              {"data", pool.name},
              {"inputs", pool.size()},
              {"not_a_number", not_a_number},
              {"copies", copies_json(selection, pool)},
              {"selectors", picks_json(picks, selection, names)},
              {"times", times_json(selection.times)}};
    if (reasons) j["reasons"] = reasons_json(*reasons);
    common.give(j);
  } else {
    print_picks(picks, selection, names, pool);
    if (reasons) print_reasons(*reasons, picks, table);
    if (not_a_number > 0)
      say("{} inputs have an output that is {}; they come first\n", format_count(not_a_number), kNotANumberName);
    for (const std::string& path : {flags.output, flags.sheet, flags.report, flags.copy_to}) {
      if (!path.empty()) say("written to {}\n", path);
    }
  }
  flags.gates.judge(common,
                    {{"inputs", static_cast<double>(pool.size())},
                     {"picked", static_cast<double>(rows.size())},
                     {"not-a-number", static_cast<double>(not_a_number)}},
                    {"galvani select " + pool.name, network.info().path, 0, {}});
}

void run(Verb& verb, Common& common, SelectFlags& flags) {
  if (flags.list) return list_selectors(common);
  std::vector<Spec> by = chosen_selectors(flags);
  check_flags(verb, flags, by);
  auto [network, pool] = load_with_data(flags.model, flags.data, "test", flags.evaluate);
  SelectRequest request;
  request.by = by;
  request.seed = common.seed;
  request.diverse = flags.diverse;
  std::optional<DataView> train, originals;
  if (!flags.train.empty()) train.emplace(open_data_for(*network, flags.train, "train"));
  if (!flags.originals.empty()) originals.emplace(open_unlabelled(*network, flags.originals));
  request.train = train ? &*train : nullptr;
  request.originals = originals ? &*originals : nullptr;
  if (flags.by.empty()) say_what_was_chosen(flags);
  if (flags.evaluate) {
    request.budgets = evaluated_budgets(pool.size());
    report_evaluation(common, evaluate_selectors(*network, pool, request, flags.repeats), by,
                      {flags.output, flags.plot}, *network, pool.name, flags.gates);
    return;
  }
  request.budgets = {parse_top(flags.top, pool.size())};
  request.copies = flags.model.options.flags.skip_broken ? PoolCopies::left_out : PoolCopies::refused;
  report_selection(common, flags, *network, pool, request);
}

}  // namespace

void add_select_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<SelectFlags>();
  Verb& verb = make_verb(
      app, common, "select", "choose the unlabelled inputs that are most worth a label",
      "  galvani select lenet5.onnx --data photos/ --top 100 -o to_label.csv --report to_label.html\n"
      "  galvani select lenet5.onnx --data pool/ --train mnist:train --by datis --top 5% --copy-to chosen\n"
      "  galvani select lenet5.onnx --data pool/ --originals mnist:test --by nss:pair=original -o picked.csv\n"
      "  galvani select lenet5.onnx --data pool/ --train mnist:train --by gini,nss,dsa,datis --evaluate --repeats 5\n"
      "  galvani select --list");
  flags->model.add_to(verb, /*required=*/false);
  runs_models(
      verb, common,
      [flags] {
        return Confinement{{flags->copy_to},
                           {flags->output, flags->sheet, flags->report, flags->plot, flags->gates.junit}};
      },
      Processes::many);
  verb.add_option("--data", flags->data, "the pool: inputs to choose from");
  verb.add_option("--train", flags->train, "training data, for selectors that compare with them");
  verb.add_option("--originals", flags->originals, "what the inputs of the pool were made of: as many, in its order");
  verb.add_option(
      "--by", flags->by,
      "selectors with options, such as nss:k=10,gini (default: fused with --train or --originals, else nns)");
  verb.add_option("--top", flags->top, "how many to choose: a number, or a share of the pool").show_default();
  verb.add_flag("--diverse", flags->diverse, "of the best three times as many, those that differ most from each other");
  verb.add_option("-o,--output", flags->output,
                  "write the picks as CSV, with a column for labels; with --evaluate, its figures");
  verb.add_option("--copy-to", flags->copy_to, "copy the chosen inputs into this new folder, in order");
  verb.add_option("--sheet", flags->sheet, "draw the first picks on a page (PNG)");
  verb.add_option("--report", flags->report, "write a page (HTML) on which the picks can be seen and labelled");
  verb.add_flag("--explain", flags->explain,
                "say of every pick what the model wavers between and which neurons change most");
  verb.add_flag("--list", flags->list, "list the selectors and their options");
  const char* group = "Evaluation, where the pool has labels";
  verb.add_flag("--evaluate", flags->evaluate, "measure selectors: faults found at 5, 10, 15 and 20% of the pool")
      .group(group);
  verb.add_option("--repeats", flags->repeats, "seeds, for selectors that are random")
      .check(Range<std::int64_t>(1, 10000))
      .show_default()
      .group(group);
  verb.add_option("--plot", flags->plot, "draw curves of faults and fault types found (SVG)").group(group);
  flags->gates.add_to(verb, "not-a-number>0");
  verb.callback([&verb, &common, flags] { run(verb, common, *flags); });
}

}  // namespace galvani::cli
