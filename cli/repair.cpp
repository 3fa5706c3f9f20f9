#include "galvani/repair/repair.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "coverage_flags.h"
#include "galvani/attack/attack.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/output_file.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/inputs.h"
#include "galvani/repair/adversarial.h"
#include "galvani/report/repair_page.h"
#include "gate_flags.h"
#include "list_json.h"
#include "model_flags.h"
#include "train_data.h"
#include "verb.h"

namespace galvani::cli {
namespace {

constexpr std::size_t kBrokenShown = 10;

struct RepairFlags {
  ModelFlags model;
  NeuronFlags neurons;
  GateFlags gates;
  std::vector<std::string> tests;
  std::string data;
  std::string clean;
  std::string output;
  std::string loop;
  std::string keep = "coverage-improving";
  std::string criterion = "nc";
  std::string generator = "mutate";
  std::string control = "clean";
  std::string batch_norm = "frozen";
  std::string report;
  std::string augment = "auto";
  std::int64_t per_seed = 10;
  bool list = false;
  RepairOptions options;

  // Everything but what only the data tell.
  RepairOptions resolved(const Common& common) const;
};

RepairOptions RepairFlags::resolved(const Common& common) const {
  RepairOptions result = options;
  result.training.seed = common.seed;
  result.training.checkpoint = checkpoint_beside(output);
  result.training.batch_statistics = batch_norm == "batch";
  if (!loop.empty()) result.loop = RepairLoop::parse(loop);
  result.loop.keep = keep;
  result.loop.criterion = criterion;
  result.loop.generator = generator;
  result.loop.taps = neurons.taps;
  result.loop.unit = neurons.neurons == "unit" ? NeuronUnit::unit : NeuronUnit::channel;
  result.controls = parse_controls(control);
  return result;
}

// The original stays what it is, by whatever name it is called.
void keep_original(const RepairFlags& flags) {
  for (const std::string& output : {flags.output, flags.report, flags.gates.junit}) {
    std::error_code error;
    if (!output.empty() && std::filesystem::equivalent(flags.model.model, output, error))
      bad_usage("{}: is the model to be repaired, which is never overwritten; name another file", output);
  }
}

std::string percent(double share) {
  return std::isnan(share) ? "-" : fmt::format("{:.2f}%", share * 100);
}

void print_sets(const RepairResult& result) {
  std::vector<std::string> titles = {"accuracy on", "from", ">inputs"};
  for (const std::string& network : result.networks) titles.push_back(">" + network);
  Table table(titles);
  for (const MeasuredSet& set : result.sets) {
    std::vector<std::string> row = {to_string(set.kind), set.name, format_count(set.inputs())};
    for (const Verdicts& verdicts : set.verdicts) row.push_back(percent(verdicts.accuracy()));
    table.add(std::move(row));
  }
  say("{}", table.str());
}

void print_rounds(const RepairResult& result) {
  Table table(
      {">round", ">mutants", ">wrong", ">improving", ">kept", ">coverage", ">with them", ">clean", ">held out"});
  for (std::size_t i = 0; i < result.rounds.size(); ++i) {
    const RepairRound& round = result.rounds[i];
    table.add({fmt::format("{}", i + 1), format_count(round.candidates), format_count(round.wrong),
               format_count(round.improving), format_count(round.kept), percent(round.coverage_before),
               percent(round.coverage_after), percent(round.clean), percent(round.held_out)});
  }
  say("{}\n", table.str());
}

void print_changes(const RepairResult& result) {
  const Network& network = *result.network;
  Table table({"clean data of class", ">inputs", ">mended", ">broken"});
  std::vector<ClassChange> classes = result.by_class();
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (classes[c].mended + classes[c].broken == 0) continue;
    table.add({verdict_name(network, result.clean, static_cast<std::int64_t>(c)), format_count(classes[c].inputs),
               format_count(classes[c].mended), format_count(classes[c].broken)});
  }
  std::vector<std::int64_t> broken = result.broken();
  say("{} clean inputs are right that were wrong, {} are wrong that were right\n", format_count(result.mended().size()),
      format_count(broken.size()));
  if (result.mended().size() + broken.size() > 0) say("\n{}", table.str());
  if (broken.empty()) return;
  say("\nbroken anew:\n");
  const auto* labels = result.clean.labels.data_ptr<std::int64_t>();
  const auto* said = result.sets[0].verdicts.back().predicted.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < std::min(kBrokenShown, broken.size()); ++i) {
    std::int64_t row = broken[i];
    say("  {}: {} is taken for {}\n", result.input_name(row), verdict_name(network, result.clean, labels[row]),
        verdict_name(network, result.clean, said[row]));
  }
  if (broken.size() > kBrokenShown) say("  and {} more (--json has all)\n", broken.size() - kBrokenShown);
}

Json number_or_null(double value) {
  return std::isnan(value) ? Json() : Json(value);
}

Json inputs_json(const RepairResult& result, const std::vector<std::int64_t>& rows) {
  const Network& network = *result.network;
  const auto* labels = result.clean.labels.data_ptr<std::int64_t>();
  const auto* was = result.sets[0].verdicts.front().predicted.data_ptr<std::int64_t>();
  const auto* is = result.sets[0].verdicts.back().predicted.data_ptr<std::int64_t>();
  Json all = Json::array();
  for (std::int64_t row : rows)
    all.push_back({{"input", result.input_name(row)},
                   {"label", verdict_name(network, result.clean, labels[row])},
                   {"before", verdict_name(network, result.clean, was[row])},
                   {"after", verdict_name(network, result.clean, is[row])}});
  return all;
}

Json as_json(const RepairResult& result, const RepairFlags& flags, const RepairOptions& options) {
  Json sets = Json::array();
  for (const MeasuredSet& set : result.sets) {
    Json accuracy = Json::object();
    for (std::size_t i = 0; i < result.networks.size(); ++i) accuracy[result.networks[i]] = set.verdicts[i].accuracy();
    sets.push_back(
        {{"kind", to_string(set.kind)}, {"name", set.name}, {"inputs", set.inputs()}, {"accuracy", accuracy}});
  }
  Json blends = Json::object();
  for (std::size_t i = 1; i < result.networks.size(); ++i) blends[result.networks[i]] = result.blends[i];
  Json rounds = Json::array();
  for (const RepairRound& round : result.rounds)
    rounds.push_back({{"candidates", round.candidates},
                      {"wrong", round.wrong},
                      {"improving", round.improving},
                      {"kept", round.kept},
                      {"coverage_before", round.coverage_before},
                      {"coverage_after", round.coverage_after},
                      {"clean", round.clean},
                      {"held_out", number_or_null(round.held_out)}});
  Json classes = Json::array();
  std::vector<ClassChange> changes = result.by_class();
  for (std::size_t c = 0; c < changes.size(); ++c)
    classes.push_back({{"class", verdict_name(*result.network, result.clean, static_cast<std::int64_t>(c))},
                       {"inputs", changes[c].inputs},
                       {"mended", changes[c].mended},
                       {"broken", changes[c].broken}});
  Json figures = Json::object();
  for (const auto& [name, value] : figures_of(result, options)) figures[name] = number_or_null(value);
  return {{"model", flags.model.model},
          {"output", flags.output},
          {"how", describe(result, options)},
          {"seed", options.training.seed},
          {"data", flags.data},
          {"trained_tests", result.trained_tests},
          {"trained_seeds", result.trained_seeds},
          {"clean_left_out", result.clean_left_out},
          {"blends", blends},
          {"blended_on", result.blended_on},
          {"sets", sets},
          {"rounds", rounds},
          {"classes", classes},
          {"broken", inputs_json(result, result.broken())},
          {"mended", inputs_json(result, result.mended())},
          {"figures", figures},
          {"seconds", result.seconds}};
}

void list_parts(const Common& common) {
  Json all = Json::array();
  Table table({"name", "what it is"});
  for (const auto& entry : adversaries().entries()) {
    all.push_back(entry_json(entry.name, entry.help, entry.schema));
    table.add({entry.name, entry.help});
    for (const OptionInfo& option : entry.schema)
      table.add({"  :" + option.name + "=" + to_string(option.fallback), option.help});
  }
  if (common.json)
    common.give({{"adversaries", all}});
  else
    say("{}", table.str());
}

void check_flags(const RepairFlags& flags, const RepairOptions& options) {
  if (flags.model.model.empty() || flags.data.empty() || flags.output.empty())
    bad_usage(
        "repair needs a model, --data to train on and -o; try 'galvani repair lenet5.onnx --tests run1 --data "
        "mnist:train -o repaired.onnx'");
  if (flags.tests.empty() && options.adversarial.empty() && flags.loop.empty())
    bad_usage("there is nothing to repair with: give --tests, --adversarial or --loop");
  flags.gates.check(repair_figure_names(options));
  // Mistakes in a spec are told before the work.
  for (const Spec& spec : options.attack_specs()) make_attack(spec);
  if (!options.adversarial.empty()) adversaries().options(Spec::parse(options.adversarial));
  optimizers().options(Spec::parse(options.training.optimizer));
  keep_original(flags);
}

RepairData load_all(const Network& network, const RepairFlags& flags, std::uint64_t seed) {
  check_repairable(network);
  RepairData data;
  data.train = open_data_for(network, flags.data, "train").load();
  data.clean = measuring_data(flags.clean, flags.data, data.train, seed,
                              [&](const std::string& spec) { return open_data_for(network, spec, "test").load(); });
  std::int64_t left_out = 0;
  for (const std::string& where : flags.tests) {
    data.tests.push_back(read_tests(network, where, flags.per_seed));
    left_out += data.tests.back().left_out;
  }
  log::info("training {} on {} ({} {})", flags.model.model, data.train.name, format_count(data.train.size()),
            data.train.type().noun());
  if (!flags.tests.empty()) {
    FoundTests all = join(data.tests);
    log::info("training with {} tests of {} seeds, of which some are held out{}", format_count(all.size()),
              format_count(all.seed_count()),
              left_out > 0 ? fmt::format("; {} more are left out, {} of a seed are enough", format_count(left_out),
                                         flags.per_seed)
                           : "");
  }
  return data;
}

void run(Common& common, RepairFlags& flags) {
  if (flags.list) return list_parts(common);
  RepairOptions options = flags.resolved(common);
  check_flags(flags, options);
  OpenedData opened(flags.data, "train");
  std::shared_ptr<Network> network = flags.model.load(opened.common_type());
  RepairData data = load_all(*network, flags, common.seed);
  settle_head(*network, data.train);
  options.training.augment = flags.augment != "auto"          ? flags.augment
                             : data.train.images.size(1) == 3 ? "crop,flip"
                                                              : "none";
  if (!common.json) say("training             epoch      rate      loss  clean acc   seconds\n");
  RepairResult result = repair(*network, data, options, [&](const std::string& stage, const EpochReport& r) {
    if (common.json_lines)
      common.tell({{"training", stage},
                   {"epoch", r.epoch},
                   {"rate", r.rate},
                   {"loss", r.loss},
                   {"accuracy", r.accuracy},
                   {"seconds", r.seconds}});
    else if (!common.json)
      say("{:20} {:5}  {:8.5f}  {:8.4f}  {:8.2f}%  {:8.1f}\n", stage, r.epoch, r.rate, r.loss, r.accuracy * 100,
          r.seconds);
  });
  ModelCard card = result.network->card();
  card.accuracy = result.accuracy(SetKind::clean, result.after());
  card.accuracy_data = result.clean.name;
  card.data = fmt::format("{}; repaired with {} on {}", card.data.empty() ? "not known" : card.data,
                          describe(result, options), data.train.name);
  result.network->set_card(card);
  result.network->save(flags.output);
  for (const auto& path : repair_checkpoints(options.training.checkpoint, options)) remove_output(path);
  if (!flags.report.empty())
    write_file(flags.report, repair_page(result, {flags.model.model, flags.output, describe(result, options)}));
  if (common.json) {
    common.give(as_json(result, flags, options));
  } else {
    say("\n");
    if (!result.rounds.empty()) print_rounds(result);
    print_sets(result);
    for (std::size_t i = 1; i < result.blends.size(); ++i) {
      if (result.blends[i] < 1)
        say("{}: weights are {:.0f}% retrained and {:.0f}% original, to keep clean accuracy ({} other images chose "
            "that)\n",
            result.networks[i], result.blends[i] * 100, (1 - result.blends[i]) * 100, format_count(result.blended_on));
    }
    if (result.clean_left_out > 0)
      say("{} images of {} are left out: tests that were trained on were made of them\n",
          format_count(result.clean_left_out), result.clean.name);
    say("\n");
    print_changes(result);
    say("\n{}: repaired with {}\n", flags.output, describe(result, options));
  }
  flags.gates.judge(common, figures_of(result, options), {"galvani repair", flags.output, result.seconds, {}}, [&] {
    std::vector<std::string> lines;
    for (std::int64_t row : result.broken()) lines.push_back("broken anew: " + result.input_name(row));
    return lines;
  });
}

}  // namespace

void add_repair_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<RepairFlags>();
  TrainOptions& training = flags->options.training;
  training.epochs = -1;
  training.optimizer = "sgd:lr=0.003";
  Verb& verb = make_verb(
      app, common, "repair", "retrain a network with tests that it failed",
      "  galvani repair lenet5.onnx --tests run1 --data mnist:train -o repaired.onnx\n"
      "  galvani repair lenet5.onnx --tests run1 --tests adv --data mnist:train --measure fgsm:eps=0.1 -o "
      "repaired.onnx\n"
      "  galvani repair net.onnx --tests run1 --data cifar10:train --freeze conv1,layer1 --mix 0.5 -o repaired.onnx\n"
      "  galvani repair lenet5.onnx --adversarial pgd:eps=0.1 --data mnist:train -o robust.onnx\n"
      "  galvani repair lenet5.onnx --loop k=5 --keep coverage-improving --data mnist:train -o repaired.onnx\n"
      "  galvani repair net.onnx --tests run1 --data train/ --fail-if \"clean-lost>0.01\" -o repaired.onnx\n"
      "An interrupted repair goes on when the same command is given again.");
  flags->model.add_to(verb, /*required=*/false);
  flags->neurons.add_to(verb);
  runs_models(verb, common, [flags, &common] {
    Confinement outputs{{}, {flags->output, flags->report, flags->gates.junit}};
    for (const auto& path : repair_checkpoints(checkpoint_beside(flags->output), flags->resolved(common)))
      outputs.files.push_back(path);
    return outputs;
  });
  has_news(verb, common);
  verb.add_option("--tests", flags->tests,
                  "what to repair with: a campaign's folder, or labelled data; may be repeated");
  verb.add_option("--data", flags->data, "clean data to train on (a bare name means its train split)");
  verb.add_option("--clean", flags->clean, "clean data to measure on (default: the test split, or a tenth held out)");
  verb.add_option("-o,--output", flags->output, "model file to write");
  verb.add_option("--held-out", flags->options.held_out, "share of the tests' seeds to measure on, not to train on")
      .show_default()
      .check(Range(0.0, 1.0));
  verb.add_option("--per-seed", flags->per_seed, "tests of a seed at most, in the order they were found; 0: all")
      .show_default()
      .check(Range(0, 1000000000));
  verb.add_option("--measure", flags->options.attacks,
                  "attacks to measure with, too, such as fgsm:eps=0.1,pgd:eps=0.1");
  verb.add_option("--attacked", flags->options.attacked, "clean inputs that these attack")
      .show_default()
      .check(Range(1, 1000000000));
  verb.add_option("--control", flags->control,
                  "the same retraining without the tests, beside it: clean, noise or none, separated by commas")
      .show_default();
  verb.add_option("--report", flags->report, "write the result as an HTML page, with pictures of what broke anew");
  const char* how = "Training";
  verb.add_option("--mix", flags->options.mix, "share of tests in a batch; 0: all data and tests shuffled together")
      .show_default()
      .check(Range(0.0, 0.99))
      .group(how);
  verb.add_option(
          "--clean-loss", flags->options.clean_loss,
          "clean accuracy that may be lost: weights are blended with the original's as far as that takes; 1: not "
          "at all (default: 0.01; 1 with --adversarial or --loop)")
      .check(Range(0.0, 1.0))
      .group(how);
  verb.add_option("--epochs", training.epochs,
                  "passes over the tests, or over the data where there are none (default: 5, more if they are few)")
      .check(Range(0, 100000))
      .group(how);
  verb.add_option("--batch", training.batch, "images per step").show_default().check(Range(1, 65536)).group(how);
  verb.add_option("--optimizer", training.optimizer, "sgd or adam, such as sgd:lr=0.001").show_default().group(how);
  verb.add_option("--schedule", training.schedule, "learning rate: constant, cosine, step, milestones, onecycle")
      .show_default()
      .group(how);
  verb.add_option("--augment", flags->augment, "of clean data: crop, flip, cutout, none; auto is crop,flip in colour")
      .show_default()
      .group(how);
  verb.add_option("--freeze", training.frozen, "layers or parameters that stay as they are: names and globs")
      .group(how);
  verb.add_option("--batch-norm", flags->batch_norm,
                  "normalise by the running statistics, which stay, or by those of the batch")
      .show_default()
      .check(OneOf{{"frozen", "batch"}})
      .group(how);
  verb.add_option("--adversarial", flags->options.adversarial,
                  "show clean data as this attack leaves them, such as pgd:eps=0.1,steps=7 (see --list)")
      .group(how);
  const char* loop = "Refined loop (Revisiting, algorithm 1)";
  verb.add_option("--loop", flags->loop, "parts of the data to mutate one after the other: k=5,per_image=1,most=0")
      .group(loop);
  verb.add_option("--keep", flags->keep, "which misclassified mutants to train on")
      .show_default()
      .check(OneOf{{"coverage-improving", "coverage-remaining", "all"}})
      .group(loop);
  verb.add_option("--criterion", flags->criterion, "what coverage means").show_default().group(loop);
  verb.add_option("--generator", flags->generator, "how mutants are made").show_default().group(loop);
  verb.add_flag("--list", flags->list, "list what --adversarial can be");
  flags->gates.add_to(verb, "clean-lost>0.01");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
