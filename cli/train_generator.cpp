#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/output_file.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/generate/cycle.h"
#include "galvani/model/translator.h"
#include "gate_flags.h"
#include "list_json.h"
#include "train_data.h"
#include "verb.h"

namespace galvani::cli {
namespace {

constexpr std::int64_t kMostLookedAt = 512;

struct TrainGeneratorFlags {
  std::string data;
  std::string other;
  std::string domains = "halves";
  std::string test;
  std::string output;
  std::string sheets;
  std::string metrics;
  CycleOptions options;
  GateFlags gates;
  bool list = false;
};

void list_parts(const Common& common) {
  auto all = [](const auto& entries) {
    Json list = Json::array();
    for (const auto& entry : entries) list.push_back(entry_json(entry.name, entry.help, entry.schema));
    return list;
  };
  if (common.json) {
    common.give({{"translators", all(translators().entries())}, {"domains", all(domain_splits().entries())}});
    return;
  }
  Table table({"", "name", "what it is"});
  auto add = [&](const char* kind, const auto& entries) {
    for (const auto& entry : entries) {
      table.add({kind, entry.name, entry.help});
      for (const OptionInfo& option : entry.schema)
        table.add({"", "  :" + option.name + "=" + to_string(option.fallback), option.help});
    }
  };
  add("translator", translators().entries());
  add("domains", domain_splits().entries());
  say("{}", table.str());
}

struct DomainPair {
  Dataset first;
  Dataset second;
};

DomainPair divide(const TrainGeneratorFlags& flags, const Dataset& data, std::uint64_t seed) {
  if (!flags.other.empty()) return {data, load_data(flags.other, "train")};
  DomainRows rows = domain_splits().create(Spec::parse(flags.domains), data, Rng(seed).derive("domains"));
  if (rows.first.empty() || rows.second.empty())
    bad_usage("--domains {} leaves one domain of {} without images; choose another way to divide it", flags.domains,
              data.name);
  DomainPair pair{data.subset(rows.first), data.subset(rows.second)};
  for (Dataset* part : {&pair.first, &pair.second}) part->name = fmt::format("{} ({})", data.name, flags.domains);
  return pair;
}

// A few of the measuring data, the same ones every time.
Dataset looked_at(const Dataset& data, std::uint64_t seed) {
  if (data.size() <= kMostLookedAt) return data;
  std::vector<std::int64_t> rows = Rng(seed).derive("looked at").sample(data.size(), kMostLookedAt);
  std::sort(rows.begin(), rows.end());
  Dataset result = data.subset(rows);
  result.name = data.name;
  return result;
}

Json epoch_json(const CycleEpoch& e) {
  return {{"epoch", e.epoch},
          {"rate", e.rate},
          {"adversarial", e.adversarial},
          {"cycle", e.cycle},
          {"identity", e.identity},
          {"critics", e.critics},
          {"seconds", e.seconds},
          {"figures", as_json(e.figures)}};
}

void write_sheet_of(const CycleEpoch& epoch, Network& network, const Dataset& looked_at, std::uint64_t seed,
                    const std::string& folder) {
  at::Tensor originals = looked_at.images.narrow(0, 0, std::min<std::int64_t>(40, looked_at.size()));
  Application awake;
  awake.random = RandomLayers{seed, 0, {}};
  ImageToImage translator(network);
  ImageToImage::Made made = translator.make(originals, translator.domains(originals, class_names_of(looked_at)), awake);
  std::string title = fmt::format("{}, epoch {}: SSIM {:.3f}, change {:.1f} grey levels", printable(looked_at.name, 60),
                                  epoch.epoch, epoch.figures.similarity, epoch.figures.change);
  write_example_sheet(originals, to_bytes(made.transformed), to_bytes(made.examples), title,
                      std::filesystem::path(folder) / fmt::format("epoch-{:03}.png", epoch.epoch));
}

void say_figures(const ExampleFigures& f, const std::string& output, const std::string& data) {
  say("{}: examples of {} images of {}\n", output, f.images, data);
  Table table({"", ">", "meaning"});
  table.add({"SSIM", fmt::format("{:.3f}", f.similarity), "mean similarity of examples to their originals"});
  table.add(
      {"SSIM 5..95%", fmt::format("{:.3f} .. {:.3f}", f.quantiles[0], f.quantiles[4]),
       fmt::format("median {:.3f}, quartiles {:.3f} and {:.3f}", f.quantiles[2], f.quantiles[1], f.quantiles[3])});
  table.add({"change", fmt::format("{:.2f}", f.change), "grey levels of 255, mean over pixels"});
  table.add({"unchanged", fmt::format("{:.1f}%", f.unchanged * 100), "examples that equal their original"});
  table.add({"SSIM there", fmt::format("{:.3f}", f.transformed_similarity), "of what they were on the way"});
  table.add({"spread", fmt::format("{:.2f}", f.spread), "how much those vary, the originals being 1"});
  table.add({"variety", fmt::format("{:.2f}", f.variety), "grey levels between two examples of one image"});
  say("{}", table.str());
}

Figures figures_of(const ExampleFigures& f) {
  return {{"ssim", f.similarity},
          {"change", f.change},
          {"unchanged", f.unchanged},
          {"transformed_ssim", f.transformed_similarity},
          {"spread", f.spread},
          {"variety", f.variety},
          {"complaints", static_cast<double>(complaints(f).size())}};
}

void run(Common& common, TrainGeneratorFlags& flags, const Verb& verb) {
  if (flags.list) return list_parts(common);
  if (flags.data.empty() || flags.output.empty())
    bad_usage("train-generator needs --data and -o; try 'galvani train-generator --data digits -o aeg.onnx'");
  if (!flags.other.empty() && verb.was_given("--domains"))
    bad_usage("--other names the second domain, so --domains has nothing to divide: leave out one of them");
  flags.gates.check(names_of(figures_of(ExampleFigures())));
  CycleOptions& options = flags.options;
  options.seed = common.seed;
  options.checkpoint = checkpoint_beside(flags.output);
  Dataset data = load_data(flags.data, "train");
  Dataset test = looked_at(measuring_data(flags.test, flags.data, data, common.seed,
                                          [](const std::string& spec) { return load_data(spec); }),
                           common.seed);
  DomainPair domains = divide(flags, data, common.seed);
  log::info("training on {} and {} images, {} steps of {} pairs", format_count(domains.first.size()),
            format_count(domains.second.size()),
            format_count(options.epochs * ((options.epoch_images + options.batch - 1) / options.batch)), options.batch);
  std::string rows = "epoch,rate,adversarial,cycle,identity,critics,ssim,change,variety,seconds\n";
  Json epochs = Json::array();
  if (!common.json) say("epoch      rate  adversarial    cycle  identity  critics     SSIM   change   seconds\n");
  CycleResult result =
      train_cycle(domains.first, domains.second, test, options, [&](const CycleEpoch& e, Network& network) {
        const ExampleFigures& f = e.figures;
        rows +=
            fmt::format("{},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.3f}\n", e.epoch, e.rate,
                        e.adversarial, e.cycle, e.identity, e.critics, f.similarity, f.change, f.variety, e.seconds);
        if (common.json_lines) {
          common.tell(epoch_json(e));
        } else if (common.json) {
          epochs.push_back(epoch_json(e));
        } else {
          say("{:5}  {:8.6f}  {:11.4f}  {:7.4f}  {:8.4f}  {:7.4f}  {:7.4f}  {:7.2f}  {:8.1f}\n", e.epoch, e.rate,
              e.adversarial, e.cycle, e.identity, e.critics, f.similarity, f.change, e.seconds);
        }
        if (!e.past && !flags.sheets.empty()) write_sheet_of(e, network, test, common.seed, flags.sheets);
      });
  result.network->save(flags.output);
  remove_output(options.checkpoint);
  if (!flags.metrics.empty()) write_file(flags.metrics, rows);
  ExampleFigures found = result.epochs.empty() ? measure_examples(ImageToImage(*result.network), test, options.seed)
                                               : result.epochs.back().figures;
  for (const std::string& complaint : complaints(found)) log::warn("{}: {}", flags.output, complaint);
  Json done = {{"model", flags.output}, {"data", test.name}, {"figures", as_json(found)}};
  ImageToImage translator(*result.network);
  const ModelCard& card = result.network->card();
  done["domains"] = {{"first", card.first_domain}, {"second", card.second_domain}, {"told_apart", result.told_apart}};
  if (common.json) {
    if (!common.json_lines) done["epochs"] = epochs;
    common.give(done);
  } else {
    say_figures(found, flags.output, test.name);
    say("{}", translator.rule());
    if (card.first_domain.empty()) say(" ({:.1f}% of the images to train on are told right)", result.told_apart * 100);
    say("\n");
    if (!flags.sheets.empty()) say("sheets of every epoch are in {}\n", flags.sheets);
  }
  flags.gates.judge(common, figures_of(found), {"galvani train-generator " + flags.output, test.name, 0, {}});
}

// Where sheets go unless the user says otherwise: beside the model.
std::string sheets_beside(const std::string& output) {
  return checkpoint_beside(output).empty() ? "" : std::filesystem::path(output).replace_extension(".sheets").string();
}

}  // namespace

void add_train_generator_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<TrainGeneratorFlags>();
  Verb& verb = make_verb(
      app, common, "train-generator", "train a network that makes examples of images (CAGFuzz)",
      "  galvani train-generator --data digits -o aeg.onnx\n"
      "  galvani train-generator --data mnist --domains pair:a=3,b=8 -o three-eight.onnx\n"
      "  galvani train-generator --data mnist --domains clusters:features=vgg.onnx -o aeg.onnx\n"
      "  galvani train-generator --data day/ --other night/ --translator unet -o night.onnx\n"
      "  galvani train-generator --data mnist -o aeg.onnx --fail-if \"complaints>0\"\n"
      "  galvani train-generator --list\n"
      "An example of an image is what comes back after it was turned into the other domain. Interrupted training goes\n"
      "on when the same command is given again.");
  runs_models(verb, common, [flags] {
    if (flags->sheets.empty()) flags->sheets = sheets_beside(flags->output);
    if (flags->sheets == "none") flags->sheets.clear();
    return Confinement{{flags->sheets},
                       {flags->output, flags->metrics, checkpoint_beside(flags->output), flags->gates.junit}};
  });
  has_news(verb, common);
  CycleOptions& options = flags->options;
  verb.add_option("--data", flags->data, "images to train on (a bare name means its train split)");
  verb.add_option("--domains", flags->domains, "how they are divided: halves, pair:a=3,b=8, clusters").show_default();
  verb.add_option("--other", flags->other, "images of the second domain; --data are the first");
  verb.add_option("--test", flags->test, "images to measure on (default: the test split, or a tenth held out)");
  verb.add_option("-o,--output", flags->output, "model file to write");
  verb.add_option("--sheets", flags->sheets, "folder for a sheet of every epoch (default: beside the model; none)");
  verb.add_option("--metrics", flags->metrics, "CSV file for the figures of every epoch");
  verb.add_option("--translator", options.translator, "resnet or unet, such as resnet:width=32,dropout=0.5")
      .show_default();
  verb.add_option("--critic-width", options.critic_width, "channels of the critics' first layer")
      .show_default()
      .check(Range(1, 1024));
  verb.add_option("--epochs", options.epochs, "rounds, each ending with figures and a sheet")
      .show_default()
      .check(Range(0, 100000));
  verb.add_option("--epoch-images", options.epoch_images, "images of each domain in an epoch")
      .show_default()
      .check(Range(1, 100000000));
  verb.add_option("--batch", options.batch, "pairs per step").show_default().check(Range(1, 65536));
  verb.add_option("--micro-batch", options.micro_batch, "pairs per worker").show_default().check(Range(1, 65536));
  verb.add_option("--optimizer", options.optimizer, "of translators and critics").show_default();
  verb.add_option("--schedule", options.schedule, "learning rate, as in 'galvani train --list'").show_default();
  verb.add_option("--adversarial", options.adversarial, "loss of the critics: squares, or log as in the paper")
      .show_default()
      .check(OneOf{{"squares", "log"}});
  verb.add_option("--cycle", options.cycle, "weight of coming back to where one started")
      .show_default()
      .check(Range(0.0, 1e6));
  verb.add_option("--identity", options.identity, "weight of leaving alone what is in the other domain already")
      .show_default()
      .check(Range(0.0, 1e6));
  verb.add_option("--replay", options.replay, "made images of each domain that critics may be shown again")
      .show_default()
      .check(Range(0, 1000000));
  flags->gates.add_to(verb, "complaints>0");
  verb.add_flag("--list", flags->list, "list translators and ways to divide data");
  verb.callback([&common, flags, &verb] { run(common, *flags, verb); });
}

}  // namespace galvani::cli
