#include "galvani/report/diff.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <chrono>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/output_file.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"
#include "gate_flags.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct DiffFlags {
  ModelFlags before;
  std::string after;
  std::string data;
  std::string output;
  std::string page;
  std::int64_t most = 10;
  GateFlags gates;
};

constexpr std::size_t kLongestLine = 200;

double share_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// The first of each kind; what matters most comes first.
std::vector<std::string> flip_lines(const Diff& diff, std::int64_t most) {
  std::vector<std::string> lines;
  for (Flip flip : {Flip::newly_wrong, Flip::newly_right, Flip::other}) {
    std::vector<std::int64_t> rows = diff.rows(flip);
    for (std::size_t i = 0; i < rows.size() && static_cast<std::int64_t>(i) < most; ++i)
      lines.push_back(fmt::format("{}  {}", to_string(flip), printable(diff.line(rows[i]), kLongestLine)));
    if (static_cast<std::int64_t>(rows.size()) > most)
      lines.push_back(
          fmt::format("{}  and {} more", to_string(flip), format_count(static_cast<std::int64_t>(rows.size()) - most)));
  }
  return lines;
}

// Every labelled input: those that are newly wrong fail; those that were wrong before say nothing of the new model.
std::vector<JunitCase> junit_cases(const Diff& diff) {
  std::vector<JunitCase> cases;
  for (std::int64_t row = 0; row < diff.size(); ++row) {
    std::int64_t label = diff.labels.data_ptr<std::int64_t>()[row];
    if (label < 0) continue;
    JunitCase& one = cases.emplace_back();
    one.name = diff.inputs[static_cast<std::size_t>(row)];
    if (diff.flips[static_cast<std::size_t>(row)] == Flip::newly_wrong) one.failure = "newly wrong: " + diff.line(row);
    bool wrong = diff.after.predicted.data_ptr<std::int64_t>()[row] != label;
    if (wrong && one.failure.empty()) one.skipped = "wrong before, too: " + diff.line(row);
  }
  return cases;
}

void print(const Diff& diff, std::int64_t most) {
  say("{} → {}, {} of {}\n\n", printable(diff.before.model), printable(diff.after.model), counted(diff.size(), "input"),
      printable(diff.data));
  Table table({"", ">inputs", ">share", ">95% interval"});
  auto add = [&](const char* name, std::int64_t part, std::int64_t whole) {
    ShareInterval interval = wilson_interval(part, whole);
    table.add({name, format_count(part), fmt::format("{:.2f}%", share_of(part, whole) * 100),
               fmt::format("{:.2f}% to {:.2f}%", interval.low * 100, interval.high * 100)});
  };
  if (diff.labelled > 0) {
    add("right before", diff.right(diff.before), diff.labelled);
    add("right after", diff.right(diff.after), diff.labelled);
    add("newly wrong", diff.count(Flip::newly_wrong), diff.labelled);
    add("newly right", diff.count(Flip::newly_right), diff.labelled);
  }
  add("other changes", diff.count(Flip::other), diff.size());
  add("same verdict", diff.count(Flip::none), diff.size());
  say("{}", table.str());
  if (diff.labelled > 0) say("as many flips in each direction: p {:.3g} (sign test)\n", diff.p);
  if (diff.labelled > 0 && diff.count(Flip::newly_wrong) + diff.count(Flip::newly_right) > 0) {
    Table classes({"class", ">inputs", ">right before", ">right after", ">newly wrong", ">newly right"});
    for (const ClassFlips& c : diff.by_class()) {
      if (c.newly_wrong + c.newly_right == 0) continue;
      classes.add({printable(c.name, 24), format_count(c.inputs), format_count(c.right_before),
                   format_count(c.right_after), format_count(c.newly_wrong), format_count(c.newly_right)});
    }
    say("\n{}", classes.str());
  }
  std::vector<std::string> lines = flip_lines(diff, most);
  if (!lines.empty()) say("\n{}\n", fmt::join(lines, "\n"));
}

Json as_json(const Diff& diff) {
  Json j = {{"old", diff.before.model}, {"new", diff.after.model}, {"data", diff.data}};
  for (const auto& [name, value] : figures_of(diff)) j[name] = value;
  j["p"] = diff.labelled > 0 ? Json(diff.p) : Json();
  j["classes"] = Json::array();
  for (const ClassFlips& c : diff.by_class())
    j["classes"].push_back({{"name", c.name},
                            {"inputs", c.inputs},
                            {"right_before", c.right_before},
                            {"right_after", c.right_after},
                            {"newly_wrong", c.newly_wrong},
                            {"newly_right", c.newly_right}});
  j["flips_of_inputs"] = Json::array();
  for (Flip flip : {Flip::newly_wrong, Flip::newly_right, Flip::other}) {
    for (std::int64_t row : diff.rows(flip)) {
      std::int64_t label = diff.labels.data_ptr<std::int64_t>()[row];
      j["flips_of_inputs"].push_back({{"input", diff.inputs[static_cast<std::size_t>(row)]},
                                      {"row", row},
                                      {"flip", to_string(flip)},
                                      {"label", label < 0 ? Json() : Json(label)},
                                      {"old", diff.before.predicted.data_ptr<std::int64_t>()[row]},
                                      {"new", diff.after.predicted.data_ptr<std::int64_t>()[row]}});
    }
  }
  return j;
}

void run(Common& common, DiffFlags& flags) {
  for (const std::string& path : {flags.output, flags.page}) {
    if (!path.empty()) check_output(path);
  }
  auto start = std::chrono::steady_clock::now();
  ModelFlags after = flags.before;
  after.model = flags.after;
  ModelAndData old_one = load_with_data(flags.before, flags.data);
  ModelAndData new_one = load_with_data(after, flags.data);
  Diff none;
  none.labelled = old_one.data.labels.ge(0).any().item<bool>() ? 1 : 0;
  flags.gates.usual = none.labelled > 0 ? "negative-flips>0" : "flips>0";
  flags.gates.check(names_of(figures_of(none)));
  Diff diff = diff_networks(*old_one.network, old_one.data, *new_one.network, new_one.data);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!flags.output.empty()) write_file(flags.output, diff_csv(diff));
  if (!flags.page.empty()) write_file(flags.page, diff_page(diff, old_one.data));
  if (common.json) {
    common.give(as_json(diff));
  } else {
    print(diff, flags.most);
  }
  JunitSuite suite{"galvani diff " + diff.data, diff.after.model, seconds, {}};
  if (!flags.gates.junit.empty()) suite.cases = junit_cases(diff);
  flags.gates.judge(common, figures_of(diff), suite, [&] { return flip_lines(diff, flags.most); });
}

}  // namespace

void add_diff_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<DiffFlags>();
  Verb& verb = make_verb(
      app, common, "diff", "say which inputs a new version of a network gets wrong that the old one got right",
      "  galvani diff old.onnx new.onnx --data mnist:test\n"
      "  galvani diff old.onnx new.onnx --data photos/ --page diff.html -o diff.csv\n"
      "  galvani diff old.onnx new.onnx --data mnist:test --fail-if \"negative-flips>1%\" --junit diff.xml\n"
      "In the JUnit file every labelled input is a test, too: what is newly wrong fails.");
  runs_models(
      verb, common,
      [flags] {
        return Confinement{{}, {flags->output, flags->page, flags->gates.junit}};
      },
      Processes::many);
  verb.add_option("old", flags->before.model, "the model as it was: an ONNX or TorchScript file").required();
  verb.add_option("new", flags->after, "the model as it is now").required();
  flags->before.add_options(verb);
  verb.add_option("--data", flags->data, "inputs that both are run on").required();
  verb.add_option("-o,--output", flags->output, "CSV file with a line for every input");
  verb.add_option("--page", flags->page, "HTML file with pictures of the inputs whose verdict changed");
  verb.add_option("--most", flags->most, "inputs of each kind that are listed")
      .check(Range<std::int64_t>(0, std::int64_t{1} << 40))
      .show_default();
  flags->gates.add_to(verb, "negative-flips>1%");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
