#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/model/inputs.h"
#include "galvani/quality/clever.h"
#include "galvani/quality/measure.h"
#include "galvani/report/replay.h"
#include "gate_flags.h"
#include "list_json.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct QualityFlags {
  ModelFlags model;
  std::string tests;
  std::string originals;
  std::string data;
  std::string metrics;
  std::int64_t most = 10000;
  bool clever = false;
  CleverSettings settings;
  std::string norm = "l2";
  std::int64_t inputs = 10;
  std::string output;
  std::string each;
  GateFlags gates;
  bool list = false;
};

void list_metrics(const Common& common) {
  if (common.json) {
    Json all = Json::array();
    for (const auto& entry : quality_metrics().entries())
      all.push_back(entry_json(entry.name, entry.help, entry.schema));
    common.give({{"metrics", all}});
    return;
  }
  Table table({"metric", "is", "options (default)"});
  for (const auto& entry : quality_metrics().entries()) {
    table.add({entry.name, entry.help, defaults_text(entry.schema)});
  }
  table.add({"--clever", "an estimate of the distance to the nearest input with another verdict", ""});
  say("{}", table.str());
}

// What was asked for must make sense before anything is loaded.
void check_flags(Verb& verb, QualityFlags& flags) {
  if (flags.tests.empty() == flags.data.empty())
    bad_usage("give --tests, what is to be measured, or --data and --clever");
  if (!flags.data.empty() && !flags.clever) bad_usage("--data is for --clever; what is to be measured is --tests");
  if (!flags.originals.empty() && flags.tests.empty()) bad_usage("--originals says what --tests were made of");
  if (flags.model.model.empty() && (flags.tests.empty() || !flags.originals.empty())) bad_usage("name a model");
  if (!flags.data.empty() && !flags.metrics.empty()) bad_usage("--metrics are of --tests");
  if (!flags.data.empty() && !flags.each.empty()) bad_usage("--each is of --tests");
  for (const char* name : {"--batches", "--samples", "--norm", "--radius", "--targets", "--inputs"}) {
    if (!flags.clever && verb.was_given(name)) bad_usage("{} is of --clever", name);
  }
  flags.settings.norm = flags.norm == "l1" ? CleverNorm::l1 : flags.norm == "l2" ? CleverNorm::l2 : CleverNorm::linf;
  std::vector<std::string> names;
  if (!flags.tests.empty()) names = quality_figure_names(flags.metrics);
  if (flags.clever) {
    for (const std::string& name : names_of(figures_of(CleverResult()))) names.push_back(name);
  }
  flags.gates.check(names);
}

bool no_preprocessing_given(const CardFlags& f) {
  return (f.mean + f.deviation + f.range + f.channels + f.layout + f.input).empty();
}

// The model that was named, as the campaign ran it if it is the same one; without a name the campaign's.
std::shared_ptr<Network> model_for(const CampaignReader& reader, const SampleType& type, ModelFlags& flags) {
  const CampaignRecord& record = reader.record();
  if (flags.model.empty()) return load_campaign_model(record);
  std::shared_ptr<Network> network = flags.load(type);
  if (network->info().sha256 != record.model_sha256 || !no_preprocessing_given(flags.options.flags)) return network;
  Network::Options options = flags.options;
  options.flags = record.preprocess;
  options.execution = record.execution;
  return Network::load(flags.model, options);
}

// Four digits that count, of numbers below ten as of those above a thousand.
std::string number_text(double value) {
  if (std::isnan(value)) return "-";
  return fmt::format("{:.{}f}", value, std::abs(value) >= 1000 ? 0 : std::abs(value) >= 10 ? 2 : 4);
}

std::string interval_text(const std::optional<Interval>& interval) {
  return interval ? number_text(interval->low) + " .. " + number_text(interval->high) : "-";
}

void print(const Quality& quality, const TestSet& tests, const Network& network) {
  say("{}: {}", tests.name(), counted(quality.looked_at, "test"));
  if (quality.looked_at < quality.tests) say(" (drawn from {})", format_count(quality.tests));
  say(", of which {} gets {} wrong\n\n", network.info().path, format_count(quality.misclassified));
  Table table({"metric", ">value", ">95% interval", ">n", "meaning"});
  bool own_counts = false;
  for (const QualityFigure& figure : quality.figures) {
    table.add({figure_name(quality.figures, figure), number_text(figure.value), interval_text(figure.interval),
               format_count(figure.n), figure.meaning + (figure.counted ? " *" : "")});
    own_counts = own_counts || figure.counted;
  }
  say("{}", table.str());
  if (own_counts) say("* of all that the campaign judged, by its own counts\n");
  if (quality.not_a_number > 0)
    say("{} tests have scores that are not finite, and no confidence\n", format_count(quality.not_a_number));
}

void print(const CleverResult& result, const QualityFlags& flags, const Network& network) {
  const CleverSettings& s = flags.settings;
  if (result.inputs.empty()) {
    say("\nCLEVER: {} gets no input right, so there is nothing to be far from\n", network.info().path);
    return;
  }
  say("\nCLEVER, {} norm, full scale = 1, {} x {} samples within {}, {} of {} other classes\n\n", flags.norm, s.batches,
      s.samples, s.radius, result.inputs[0].score.targets.size(), network.info().classes - 1);
  Table table({">input", "verdict", ">score", "nearest", ">fit p", ">smallest found"});
  for (const CleverInput& input : result.inputs) {
    const CleverTarget& nearest = input.score.nearest();
    table.add({std::to_string(input.row), std::to_string(input.score.verdict), number_text(nearest.score),
               std::to_string(nearest.target), nearest.fit.fitted ? fmt::format("{:.3f}", nearest.fit.p) : "none",
               number_text(input.smallest_found)});
  }
  say("{}", table.str());
  say("mean {:.4f} (95% interval {}), median {:.4f}, least {:.4f}\n", result.mean(), interval_text(result.interval),
      result.median(), result.least());
  if (result.rejected() > 0)
    say("{} of {} fits found no end, or none that is credible (p below {}): the largest slope seen stands for it\n",
        result.rejected(), result.inputs.size() * result.inputs[0].score.targets.size(), kLeastFitP);
  if (result.compared() > 0)
    say("the score exceeds the smallest change found for {} of {} inputs\n", result.exceeding(), result.compared());
}

struct QualityRun {
  std::shared_ptr<Network> network;
  std::unique_ptr<TestSet> tests;
  std::optional<Quality> quality;
  std::optional<CleverResult> clever;
};

Json document(const QualityRun& done, const QualityFlags& flags) {
  Json j = done.quality ? as_json(*done.quality) : Json::object();
  j["model"] = done.network->info().path;
  j["data"] = done.tests ? done.tests->name() : flags.data;
  if (done.clever) {
    Json found = as_json(*done.clever);
    found["norm"] = flags.norm;
    found["radius"] = flags.settings.radius;
    found["batches"] = flags.settings.batches;
    found["samples"] = flags.settings.samples;
    j["clever"] = std::move(found);
  }
  return j;
}

void finish(Common& common, const QualityFlags& flags, const QualityRun& done) {
  if (!flags.each.empty()) write_file(flags.each, values_csv(*done.quality));
  if (!flags.output.empty()) write_file(flags.output, json_text(document(done, flags), 1) + "\n");
  if (common.json) {
    common.give(document(done, flags));
  } else {
    if (done.quality) print(*done.quality, *done.tests, *done.network);
    if (done.clever) print(*done.clever, flags, *done.network);
  }
  Figures figures;
  if (done.quality) figures = figures_of(*done.quality);
  if (done.clever) {
    Figures more = figures_of(*done.clever);
    figures.insert(figures.end(), more.begin(), more.end());
  }
  flags.gates.judge(
      common, figures,
      {"galvani quality " + done.network->info().path, done.tests ? done.tests->name() : flags.data, 0, {}});
}

void measure(Common& common, QualityFlags& flags, QualityRun& done) {
  if (done.tests->size() == 0) log::warn("{}: there are no tests in it", done.tests->name());
  QualityRequest request;
  request.metrics = flags.metrics;
  request.most = flags.most;
  request.seed = common.seed;
  request.each = !flags.each.empty();
  done.quality = measure_quality(*done.network, *done.tests, request);
  if (flags.clever) done.clever = measure_clever(*done.network, *done.tests, flags.inputs, flags.settings, common.seed);
  finish(common, flags, done);
}

void run(Verb& verb, Common& common, QualityFlags& flags) {
  if (flags.list) return list_metrics(common);
  check_flags(verb, flags);
  QualityRun done;
  if (!flags.data.empty()) {
    auto [network, data] = load_with_data(flags.model, flags.data);
    done.network = std::move(network);
    done.clever = measure_clever(*done.network, data, flags.inputs, flags.settings, common.seed);
    return finish(common, flags, done);
  }
  if (!flags.originals.empty()) {
    auto [network, originals] = load_with_data(flags.model, flags.originals);
    done.network = std::move(network);
    done.tests = paired_tests(open_data_for(*done.network, flags.tests), originals);
    return measure(common, flags, done);
  }
  CampaignReader reader(flags.tests);
  done.tests = campaign_tests(reader);
  done.network = model_for(reader, done.tests->type(), flags.model);
  if (done.network->info().classes != reader.classes())
    bad_usage("{}: knows {} classes, the campaign's model {}", done.network->info().path, done.network->info().classes,
              reader.classes());
  measure(common, flags, done);
}

}  // namespace

void add_quality_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<QualityFlags>();
  Verb& verb =
      make_verb(app, common, "quality", "say how good tests are at breaking a model, and how well hidden",
                "  galvani quality lenet5.onnx --tests run1\n"
                "  galvani quality lenet5.onnx --tests run1 --metrics mr,ald2,ric:quality=75 --fail-if \"mr>0.1\"\n"
                "  galvani quality lenet5.onnx --tests changed.npz --originals mnist:test[0:1000]\n"
                "  galvani quality lenet5.onnx --tests run1 --clever --norm linf --radius 0.3\n"
                "  galvani quality lenet5.onnx --data mnist:test --clever --inputs 20\n"
                "  galvani quality --list");
  flags->model.add_to(verb, /*required=*/false);
  runs_models(
      verb, common,
      [flags] {
        return Confinement{{}, {flags->output, flags->each, flags->gates.junit}};
      },
      Processes::many);
  verb.add_option("--tests", flags->tests, "a campaign's folder; with --originals, any inputs");
  verb.add_option("--originals", flags->originals, "what --tests were made of: as many, in the same order");
  verb.add_option("--metrics", flags->metrics, "metrics with options, such as acac,ric:quality=75 (default: all)");
  verb.add_option("--most", flags->most, "tests to look at, drawn at random where there are more; 0: all")
      .check(Range<std::int64_t>(0, std::int64_t{1} << 40))
      .show_default();
  verb.add_option("-o,--output", flags->output, "write the result as JSON to this file");
  verb.add_option("--each", flags->each, "write the metrics of every test as CSV to this file");
  verb.add_flag("--list", flags->list, "list the metrics and their options");
  const char* group = "CLEVER: how far the nearest input with another verdict is, by an estimate";
  CleverSettings& settings = flags->settings;
  verb.add_flag("--clever", flags->clever, "estimate it for the originals, or for --data").group(group);
  verb.add_option("--data", flags->data, "inputs to estimate it for, where there are no tests").group(group);
  verb.add_option("--inputs", flags->inputs, "how many, drawn from those that the model gets right")
      .check(Range<std::int64_t>(1, 1000000))
      .show_default()
      .group(group);
  verb.add_option("--norm", flags->norm, "of the distance: l1, l2 or linf")
      .check(OneOf{{"l1", "l2", "linf"}})
      .show_default()
      .group(group);
  verb.add_option("--radius", settings.radius, "of the ball around an input that is sampled, full scale being 1")
      .check(Range(1e-6, 1e6))
      .show_default()
      .group(group);
  verb.add_option("--batches", settings.batches, "whose largest slopes are looked at (its authors: 500)")
      .check(Range<std::int64_t>(1, 100000))
      .show_default()
      .group(group);
  verb.add_option("--samples", settings.samples, "of a batch (its authors: 1024)")
      .check(Range<std::int64_t>(1, 1000000))
      .show_default()
      .group(group);
  verb.add_option("--targets", settings.targets, "other classes to look at, those that score best; 0: all")
      .check(Range<std::int64_t>(0, 1000000))
      .show_default()
      .group(group);
  flags->gates.add_to(verb, "mr>0.1");
  verb.callback([&verb, &common, flags] { run(verb, common, *flags); });
}

}  // namespace galvani::cli
