#include "galvani/report/explain.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/table.h"
#include "galvani/fuzz/merge.h"
#include "galvani/fuzz/reader.h"
#include "galvani/model/evaluate.h"
#include "galvani/report/replay.h"
#include "galvani/semantics/descriptions.h"
#include "model_flags.h"
#include "path_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostExplained = 20;

struct ExplainFlags {
  ModelFlags model;
  std::vector<std::string> inputs;
  std::int64_t fault = 0;
  std::string describe;
  std::string guide = "nsgen:steps=200,rule=trapezoid";
  std::string layers = "5";
  std::string target;
  std::string output;
  std::string as;  // empty: by the end of the name
};

PictureFormat format_of(const ExplainFlags& flags) {
  std::string end = flags.as.empty() ? fs::path(flags.output).extension().string() : "." + flags.as;
  if (end == ".png") return PictureFormat::png;
  if (end == ".svg") return PictureFormat::svg;
  if (end == ".html") return PictureFormat::html;
  bad_usage("-o is '{}', but must end in .png, .svg or .html, or --as say which", printable(flags.output));
}

// Neurons by their numbers, where nobody described them.
Descriptions nameless(const Network& network, const std::string& layers) {
  Descriptions result;
  result.model = network.identity();
  for (int index : choose_layers(network, layers)) {
    const Tap& tap = network.taps()[static_cast<std::size_t>(index)];
    DescribedLayer layer{tap.name, {}};
    for (std::int64_t n = 0; n < tap.neurons(); ++n) {
      DescribedNeuron neuron;
      neuron.words = fmt::format("neuron {} of {}", n, tap.name);
      neuron.sure = true;
      neuron.threshold = std::numeric_limits<float>::max();
      layer.neurons.push_back(std::move(neuron));
    }
    result.layers.push_back(std::move(layer));
  }
  return result;
}

// What was given, or what 'describe' said of this model the last time.
Descriptions descriptions_for(const ExplainFlags& flags, const Network& network) {
  if (!flags.describe.empty()) return Descriptions::load(flags.describe, network);
  fs::path last = last_descriptions(network);
  std::error_code error;
  if (fs::exists(last, error)) {
    try {
      Descriptions found = Descriptions::load(last, network);
      log::info("words are those of the last 'galvani describe' of this model, which looked at {}",
                printable(found.data));
      return found;
    } catch (const Error& e) {
      log::debug("{}", e.what());
    }
  }
  log::info("nobody described this model's neurons, so they have numbers for names: galvani describe {} --data ...",
            network.info().path);
  return nameless(network, flags.layers);
}

// A class by name or number; -1: what the network says.
std::int64_t target_of(const ExplainFlags& flags, const PathFinder& finder, std::int64_t classes) {
  if (flags.target.empty()) return -1;
  for (std::int64_t label = 0; label < classes; ++label) {
    if (finder.class_name(label) == flags.target || std::to_string(label) == flags.target) return label;
  }
  bad_usage("--target is '{}', which is neither the name nor the number of a class", printable(flags.target));
}

Json as_json(const Explanation& row) {
  Json steps = Json::array();
  for (const ExplainedStep& step : row.steps)
    steps.push_back({{"layer", step.tap},
                     {"neuron", step.neuron},
                     {"words", step.words},
                     {"sure", step.sure},
                     {"share", step.share},
                     {"share_of_layer", step.whole}});
  Json j = {{"input", row.name},         {"verdict", row.verdict_name}, {"confidence", row.confidence},
            {"target", row.target_name}, {"reasons", row.text},         {"path", steps}};
  if (!row.made_by.empty()) j["made_by"] = row.made_by;
  return j;
}

std::string step_text(const ExplainedStep& step) {
  return fmt::format("{}: {}{} ({:.0f}%)", step.neuron, step.words, step.sure ? "" : " ?", step.share * 100);
}

void print(const Explanation& row) {
  say("{}: {} ({:.1f}%){}\n", printable(row.name, kWholeText), row.verdict_name, row.confidence * 100,
      row.target != row.verdict ? "; the way of " + row.target_name : "");
  Table table({"layer", "neuron: what it sees (share of the score)"});
  for (const ExplainedStep& step : row.steps) table.add({step.tap, step_text(step)});
  say("{}{}\n", table.str(), row.text);
}

void print_pair(const ExplainPicture& picture) {
  const Explanation& a = picture.rows[0];
  const Explanation& b = picture.rows[1];
  say("{}: {} ({:.1f}%)\n{} by {}: {} ({:.1f}%)\n", a.name, a.verdict_name, a.confidence * 100, b.name, b.made_by,
      b.verdict_name, b.confidence * 100);
  Table table({"layer", "original", "mutant", ""});
  std::int64_t where = parting(a, b);
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    bool same = a.steps[i].neuron == b.steps[i].neuron;
    table.add({a.steps[i].tap, step_text(a.steps[i]), step_text(b.steps[i]),
               static_cast<std::int64_t>(i) == where ? "← the ways part"
               : same                                ? ""
                                                     : "←"});
  }
  say("{}{}\n{}\nsimilarity of the reasons: {:.3f}\n", table.str(), a.text, b.text, picture.similarity);
}

void finish(const Common& common, const ExplainFlags& flags, const ExplainPicture& picture) {
  if (!flags.output.empty()) write_file(flags.output, draw(picture, format_of(flags)));
  if (common.json) {
    Json rows = Json::array();
    for (const Explanation& row : picture.rows) rows.push_back(as_json(row));
    Json j = {{"inputs", rows}};
    if (picture.compared) {
      j["similarity"] = picture.similarity;
      std::int64_t where = parting(picture.rows[0], picture.rows[1]);
      j["parts_at"] = where < 0 ? Json() : Json(picture.rows[0].steps[static_cast<std::size_t>(where)].tap);
    }
    common.give(j);
    return;
  }
  if (picture.compared) {
    print_pair(picture);
  } else {
    for (const Explanation& row : picture.rows) print(row);
  }
  if (!flags.output.empty()) say("{}: the picture\n", flags.output);
}

void explain_fault(const Common& common, ExplainFlags& flags) {
  CampaignReader reader(flags.model.model);
  std::unique_ptr<Network> network = load_campaign_model(reader.record());
  FaultRecord fault = reader.fault(flags.fault);
  std::vector<std::string> names;
  for (std::int64_t label = 0; label < reader.classes(); ++label) names.push_back(reader.class_name(label));
  PathFinder finder(*network, descriptions_for(flags, *network), path_options(flags.guide), names);
  at::Tensor images = at::stack({reader.image(fault.seed), reader.image(fault)});
  std::int64_t target = flags.target == "label" ? fault.label : target_of(flags, finder, reader.classes());
  ExplainPicture picture;
  picture.title = fmt::format("Fault {} of {}: {} taken for {}", fault.id,
                              fs::path(flags.model.model).lexically_normal().filename().string(),
                              reader.class_name(fault.label), reader.class_name(fault.predicted));
  std::string rules = fmt::format("{}", fmt::join(reader.lineage(fault).rules, ", "));
  picture.rows = explain(*network, finder, images, {"original", "mutant"}, at::full({2}, target, at::kLong));
  picture.rows[1].made_by = rules;
  picture.similarity = finder.similarity({{&picture.rows[0].path, &picture.rows[1].path}})[0];
  picture.compared = true;
  finish(common, flags, picture);
}

void explain_files(const Common& common, ExplainFlags& flags) {
  if (flags.inputs.empty()) bad_usage("name the picture to explain, or a campaign and --fault");
  std::string spec = fmt::format("{}", fmt::join(flags.inputs, "+"));
  auto [network, data] = load_with_data(flags.model, spec, "test", /*with_labels=*/false);
  if (data.size() > static_cast<std::int64_t>(kMostExplained))
    bad_usage("{}: has {} inputs, but {} at most are explained at a time", printable(spec), data.size(),
              kMostExplained);
  if (data.type().kind != SampleKind::image) bad_usage("{}: only images can be explained", printable(spec));
  PathFinder finder(*network, descriptions_for(flags, *network), path_options(flags.guide),
                    path_class_names(*network, data));
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    std::string file = data.file(i);
    names.push_back(file.empty() ? fmt::format("input {}", i) : fs::path(file).filename().string());
  }
  ExplainPicture picture;
  picture.title = fmt::format("What {} looks at", fs::path(network->info().path).filename().string());
  picture.rows = explain(*network, finder, data.fetch(0, data.size()), names,
                         at::full({data.size()}, target_of(flags, finder, network->info().classes), at::kLong));
  finish(common, flags, picture);
}

}  // namespace

void add_explain_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<ExplainFlags>();
  Verb& verb = make_verb(app, common, "explain", "say why a decision was made: the neurons its score flows through",
                         "  galvani explain lenet5.onnx photo.png --describe neurons.json -o why.svg\n"
                         "  galvani explain run1 --fault 17 --describe neurons.json -o fault17.png\n"
                         "  galvani explain resnet20.onnx 'cifar10:test[7]' --target cat");
  runs_models(verb, common, [flags] { return Confinement{{}, {flags->output}}; });
  flags->model.add_to(verb);
  verb.add_option("input", flags->inputs, "pictures: files, or a spec of data");
  verb.add_option("--fault", flags->fault,
                  "number of a fault, if the model is a campaign's folder: it is compared with its seed");
  verb.add_option("--describe", flags->describe, "file of 'galvani describe' (default: the last one of this model)");
  verb.add_option("--layers", flags->layers, "where nothing is described: how many convolutions, or layers by name")
      .show_default();
  verb.add_option("--guide", flags->guide, "nsgen with other options of paths, such as nsgen:steps=50").show_default();
  verb.add_option("--target", flags->target,
                  "the class whose score is followed (default: what the input is taken for); of a fault also 'label'");
  verb.add_option("-o,--output", flags->output, "picture to write: .png, .svg or .html");
  verb.add_option("--as", flags->as, "what the picture is (default: by its name)").check(OneOf{{"png", "svg", "html"}});
  verb.callback([&common, flags] {
    if (!flags->output.empty()) format_of(*flags);
    bool campaign = holds_campaign(flags->model.model);
    if (campaign && flags->fault < 1) bad_usage("{} is a campaign: name a fault with --fault", flags->model.model);
    if (!campaign && flags->fault != 0)
      bad_usage("--fault is of a campaign, but {} is none", printable(flags->model.model));
    if (campaign) return explain_fault(common, *flags);
    explain_files(common, *flags);
  });
}

}  // namespace galvani::cli
