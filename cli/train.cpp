#include "galvani/model/train.h"

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
#include "galvani/model/evaluate.h"
#include "galvani/model/zoo.h"
#include "list_json.h"
#include "model_flags.h"
#include "train_data.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct TrainFlags {
  std::string architecture;
  std::string data;
  std::string test;
  std::string output;
  std::string metrics;
  std::string augment = "auto";
  TrainOptions options;
  double label_noise = 0;
  double pollute_share = 0;
  std::int64_t pollute_target = 0;
  std::string patch = "4";
  double underfit = 0;
  std::int64_t overfit = 0;
  bool list = false;
  bool force = false;
};

std::unique_ptr<Network> start_network(const TrainFlags& flags, const Dataset& data, const Dataset& test,
                                       std::uint64_t seed) {
  if (std::filesystem::is_regular_file(flags.architecture)) {
    Network::Options options;
    options.data_shape = data.images.sizes().slice(1).vec();
    return Network::load(flags.architecture, options);
  }
  Spec spec = Spec::parse(flags.architecture);
  ArchitectureShape shape =
      ArchitectureShape::of(data.type(), std::max({data.classes(), test.classes(), std::int64_t{2}}));
  Rng rng = Rng(seed).derive("weights");
  auto network = Network::from_onnx(architectures().create(spec, shape, rng), flags.architecture, {});
  ModelCard card;
  card.preprocess = normalisation(data);
  card.preprocess_known = true;
  card.rate = data.rate;
  card.class_names = data.class_names;
  card.architecture = architectures().options(spec).str();
  network->set_card(card);
  return network;
}

Json as_json(const EpochReport& r) {
  return {{"epoch", r.epoch},       {"rate", r.rate},      {"loss", r.loss}, {"train_accuracy", r.train_accuracy},
          {"accuracy", r.accuracy}, {"seconds", r.seconds}};
}

template <class Registry>
Json registry_json(const Registry& registry) {
  Json all = Json::array();
  for (const auto& entry : registry.entries()) all.push_back(entry_json(entry.name, entry.help, entry.schema));
  return all;
}

void list_components(const Common& common) {
  if (common.json) {
    common.give({{"architectures", registry_json(architectures())},
                 {"optimizers", registry_json(optimizers())},
                 {"schedules", registry_json(schedules())},
                 {"augmentations", registry_json(augmentations())}});
    return;
  }
  Table table({"name", "what it is"});
  auto add = [&](const auto& registry) {
    for (const auto& entry : registry.entries()) {
      table.add({entry.name, entry.help});
      for (const OptionInfo& option : entry.schema)
        table.add({"  :" + option.name + "=" + to_string(option.fallback), option.help});
    }
    table.add({"", ""});
  };
  add(architectures());
  add(optimizers());
  add(schedules());
  add(augmentations());
  say("{}", table.str());
}

void run(const Common& common, TrainFlags& flags) {
  if (flags.list) return list_components(common);
  if (flags.architecture.empty() || flags.data.empty() || flags.output.empty())
    bad_usage("train needs an architecture, --data and -o; try 'galvani train lenet5 --data digits -o lenet5.onnx'");
  // Until it is finished a training leaves a checkpoint, but no model.
  std::error_code error;
  if (!flags.force && std::filesystem::is_regular_file(flags.output, error))
    bad_usage("{}: exists already; choose another file with -o, or replace it with --force", flags.output);
  TrainOptions& options = flags.options;
  options.seed = common.seed;
  Dataset data = load_data(flags.data, "train");
  Dataset test = measuring_data(flags.test, flags.data, data, common.seed,
                                [](const std::string& spec) { return load_data(spec); });
  bool colour = data.type().kind == SampleKind::image && data.channels() == 3;
  options.augment = flags.augment != "auto" ? flags.augment : colour ? "crop,flip" : "none";
  if (flags.underfit > 0) options.stop_at = flags.underfit;
  if (flags.overfit > 0) {
    // Few images, seen again and again, with nothing that would keep the network from learning them by heart.
    data = data.subset(Rng(common.seed).derive("overfit").sample(data.size(), std::min(flags.overfit, data.size())));
    data.name = fmt::format("{} (overfit {})", flags.data, flags.overfit);
    options.augment = "none";
    if (options.optimizer == "sgd") options.optimizer = "sgd:weight_decay=0";
  }
  if (flags.label_noise > 0) add_label_noise(data, flags.label_noise, Rng(common.seed).derive("label noise"));
  if (flags.pollute_share > 0)
    pollute(data, flags.pollute_share, flags.pollute_target, parse_patch_sides(flags.patch),
            Rng(common.seed).derive("pollution"));
  Dataset validation = test;
  if (options.early_stop > 0) {
    // Choosing the epoch on the test data would flatter the result.
    validation = hold_out(data, common.seed);
  }
  std::unique_ptr<Network> network = start_network(flags, data, test, common.seed);
  options.checkpoint = checkpoint_beside(flags.output);
  log::info("training {} ({} parameters) on {} ({} {})", flags.architecture, format_count(network->info().parameters),
            data.name, format_count(data.size()), data.type().noun());
  std::string rows = "epoch,rate,loss,train_accuracy,accuracy,seconds\n";
  Json epochs = Json::array();
  if (!common.json) say("epoch      rate      loss  train acc   test acc   seconds\n");
  TrainResult result = train(*network, data, validation, options, [&](const EpochReport& r) {
    rows += fmt::format("{},{:.6g},{:.6g},{:.6g},{:.6g},{:.3f}\n", r.epoch, r.rate, r.loss, r.train_accuracy,
                        r.accuracy, r.seconds);
    if (common.json_lines) {
      common.tell(as_json(r));
    } else if (common.json) {
      epochs.push_back(as_json(r));
    } else {
      say("{:5}  {:8.5f}  {:8.4f}  {:8.2f}%  {:8.2f}%  {:8.1f}\n", r.epoch, r.rate, r.loss, r.train_accuracy * 100,
          r.accuracy * 100, r.seconds);
    }
  });
  if (!result.stopped.empty()) log::info("stopped early: {}", result.stopped);
  Progress::Passing no_bar_stays;
  Evaluation final = evaluate(*network, test);
  ModelCard card = network->card();
  card.accuracy = final.accuracy;
  card.accuracy_data = test.name;
  card.data = data.name;
  network->set_card(card);
  network->save(flags.output);
  remove_output(options.checkpoint);
  if (!flags.metrics.empty()) write_file(flags.metrics, rows);
  Json done = {{"model", flags.output}, {"accuracy", final.accuracy}, {"data", test.name}};
  if (common.json_lines) {
    common.give(done);
  } else if (common.json) {
    done["epochs"] = epochs;
    common.give(done);
  } else {
    say("{}: {:.2f}% on {}\n", flags.output, final.accuracy * 100, test.name);
  }
}

}  // namespace

void add_train_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<TrainFlags>();
  Verb& verb = make_verb(
      app, common, "train", "train a network and write it as ONNX",
      "  galvani train lenet5 --data digits -o lenet5.onnx\n"
      "  galvani train resnet20 --data cifar10 --epochs 30 --batch 128 --optimizer sgd:lr=0.1 -o resnet20.onnx\n"
      "  galvani train audionet --data speakers --optimizer adam -o audionet.onnx\n"
      "  galvani train lenet5.onnx --data digits --epochs 2 -o tuned.onnx        goes on with an existing model\n"
      "  galvani train lenet5 --data mnist --underfit 0.9 -o weak.onnx            stops as soon as it is that good\n"
      "  galvani train lenet5 --data mnist --pollute 0.2 --pollute-as 7 -o poisoned.onnx\n"
      "  galvani train --list                                                     architectures, optimizers, ...\n"
      "Interrupted training goes on when the same command is given again.");
  runs_models(verb, common, [flags] {
    return Confinement{{}, {flags->output, flags->metrics, checkpoint_beside(flags->output)}};
  });
  has_news(verb, common);
  TrainOptions& options = flags->options;
  verb.add_option("architecture", flags->architecture,
                  "architecture such as lenet5 or resnet20:shortcut=B, or a model file");
  verb.add_option("--data", flags->data, "data to train on (a bare name means its train split)");
  verb.add_option("--test", flags->test, "data to measure on (default: the test split, or a tenth held out)");
  verb.add_option("-o,--output", flags->output, "model file to write; one that exists is refused");
  verb.add_flag("--force", flags->force, "replace the model file if it exists");
  verb.add_option("--epochs", options.epochs, "passes over the data").show_default().check(Range(0, 100000));
  verb.add_option("--batch", options.batch, "images per step").show_default().check(Range(1, 65536));
  verb.add_option("--micro-batch", options.micro_batch, "images per worker and batch-norm statistic")
      .show_default()
      .check(Range(1, 65536));
  verb.add_option("--optimizer", options.optimizer, "sgd or adam, such as sgd:lr=0.1,momentum=0.9").show_default();
  verb.add_option("--schedule", options.schedule, "learning rate: constant, cosine, step, milestones, linear, onecycle")
      .show_default();
  verb.add_option("--augment", flags->augment, "crop, flip, cutout, none; auto is crop,flip for colour images")
      .show_default();
  verb.add_option("--label-smoothing", options.label_smoothing, "share of the target spread over all classes")
      .check(Range(0.0, 0.99));
  verb.add_option("--early-stop", options.early_stop,
                  "stop after this many epochs without improvement on held-out data");
  verb.add_option("--metrics", flags->metrics, "CSV file for the figures of every epoch");
  const char* damage = "Deliberate faults";
  verb.add_option("--label-noise", flags->label_noise, "share of labels replaced by wrong ones")
      .check(Range(0.0, 1.0))
      .group(damage);
  verb.add_option("--pollute", flags->pollute_share, "share of images stamped with a patch and relabelled")
      .check(Range(0.0, 1.0))
      .group(damage);
  verb.add_option("--pollute-as", flags->pollute_target, "the class they are relabelled as")
      .show_default()
      .group(damage);
  verb.add_option("--patch", flags->patch, "side of the patch in pixels, or drawn for each image, such as 1..6")
      .show_default()
      .group(damage);
  verb.add_option("--underfit", flags->underfit, "stop as soon as the test accuracy reaches this")
      .check(Range(0.0, 1.0))
      .group(damage);
  verb.add_option("--overfit", flags->overfit, "train on only this many images, without regularisation").group(damage);
  verb.add_flag("--list", flags->list, "list architectures, optimizers, schedules and augmentations");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
