#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/table.h"
#include "galvani/report/neuron_page.h"
#include "galvani/semantics/describer.h"
#include "galvani/semantics/descriptions.h"
#include "list_json.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct DescribeFlags {
  ModelFlags model;
  std::string data;
  std::string layers = "5";
  std::string describer = "dissect";
  std::string exemplars;
  std::string output = "neurons.json";
  std::string page;
  std::int64_t count = 15;
  double quantile = 0.99;
  bool list = false;

  Confinement outputs() const {
    if (list) return {};
    return {{}, {output, page, exemplars}};
  }
};

void list_describers(const Common& common) {
  Json entries = Json::array();
  Table table({"describer", "how it finds words"});
  Table details({"option", "default", "meaning"});
  for (const auto& entry : describers().entries()) {
    entries.push_back(entry_json(entry.name, entry.help, entry.schema));
    table.add({entry.name, entry.help});
    for (const OptionInfo& option : entry.schema)
      details.add({entry.name + ":" + option.name, to_string(option.fallback), option.help});
  }
  if (common.json) {
    common.give({{"describers", entries}});
    return;
  }
  say("{}\n{}", table.str(), details.str());
}

// Kept from an earlier run, if the file exists; otherwise found now, and kept if there is a file for them.
Exemplars exemplars_of(const DescribeFlags& flags, Network& network, const std::vector<int>& taps,
                       const DataView& data) {
  ExemplarOptions options{flags.count, flags.quantile};
  std::error_code error;
  if (!flags.exemplars.empty() && std::filesystem::exists(flags.exemplars, error)) {
    Exemplars kept = Exemplars::load(flags.exemplars, network);
    bool same = kept.data == data.name && kept.options.count == options.count &&
                kept.options.quantile == options.quantile && kept.layers.size() == taps.size();
    for (std::size_t i = 0; same && i < taps.size(); ++i)
      same = kept.layers[i].tap == network.taps()[static_cast<std::size_t>(taps[i])].name;
    if (!same)
      bad_usage("{}: holds exemplars of other layers, data or options; name another file, or remove it",
                flags.exemplars);
    log::info("{}: exemplars of {} inputs are taken from there", flags.exemplars, kept.inputs);
    return kept;
  }
  Exemplars found = find_exemplars(network, taps, data, options);
  if (!flags.exemplars.empty()) found.save(flags.exemplars);
  return found;
}

// For 'explain', which then needs no file; not being able to is no reason to fail.
void remember(const Descriptions& descriptions, const Network& network) {
  try {
    std::filesystem::path path = last_descriptions(network);
    std::filesystem::create_directories(path.parent_path());
    descriptions.save(path);
  } catch (const std::exception& e) {
    log::debug("{}", e.what());
  }
}

void print_table(const Descriptions& descriptions) {
  constexpr std::size_t kShown = 3;
  Table table({"layer", ">neurons", ">named", "such as"});
  for (const DescribedLayer& layer : descriptions.layers) {
    std::int64_t sure = 0;
    std::map<std::string, int> counts;
    for (const DescribedNeuron& neuron : layer.neurons) {
      sure += neuron.sure ? 1 : 0;
      if (neuron.sure) ++counts[neuron.words];
    }
    std::vector<std::pair<std::string, int>> common(counts.begin(), counts.end());
    std::stable_sort(common.begin(), common.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string examples;
    for (std::size_t i = 0; i < std::min(kShown, common.size()); ++i)
      examples +=
          (i > 0 ? "; " : "") + common[i].first + (common[i].second > 1 ? fmt::format(" ({})", common[i].second) : "");
    table.add({layer.tap, fmt::format("{}", layer.neurons.size()), fmt::format("{}", sure), examples});
  }
  say("{}", table.str());
}

void run(const Common& common, DescribeFlags& flags) {
  if (flags.list) {
    list_describers(common);
    return;
  }
  if (flags.data.empty()) bad_usage("--data is missing: which inputs neurons are looked at with, such as mnist:train");
  std::unique_ptr<Describer> describer = make_describer(Spec::parse(flags.describer));
  auto [network, data] = load_with_data(flags.model, flags.data, "train");
  std::vector<int> taps = choose_layers(*network, flags.layers);
  Exemplars exemplars = exemplars_of(flags, *network, taps, data);
  Descriptions descriptions = describe(*describer, {*network, exemplars, data, common.seed});
  descriptions.save(flags.output);
  remember(descriptions, *network);
  if (!flags.page.empty()) {
    NeuronPageOptions options;
    options.title = "What neurons of " + std::filesystem::path(network->info().path).filename().string() + " see";
    write_file(flags.page, neuron_page(descriptions, exemplars, options));
  }
  std::int64_t sure = 0;
  for (const DescribedLayer& layer : descriptions.layers)
    sure += std::count_if(layer.neurons.begin(), layer.neurons.end(), [](const auto& n) { return n.sure; });
  if (common.json) {
    Json layers = Json::array();
    for (const DescribedLayer& layer : descriptions.layers) {
      Json words = Json::array();
      for (const DescribedNeuron& neuron : layer.neurons) words.push_back(neuron.words);
      layers.push_back({{"tap", layer.tap}, {"words", words}});
    }
    common.give({{"output", flags.output},
                 {"model", network->info().path},
                 {"data", descriptions.data},
                 {"inputs", descriptions.inputs},
                 {"not_finite", exemplars.hurt},
                 {"describer", descriptions.describer},
                 {"neurons", descriptions.neurons()},
                 {"named", sure},
                 {"layers", layers}});
    return;
  }
  print_table(descriptions);
  say("{}: {} neurons, {} of them with words that are clear; looked at {} inputs of {}\n", flags.output,
      descriptions.neurons(), sure, descriptions.inputs, printable(descriptions.data));
  if (!flags.page.empty()) say("{}: the page with their pictures\n", flags.page);
}

}  // namespace

void add_describe_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<DescribeFlags>();
  Verb& verb =
      make_verb(app, common, "describe", "say in words what neurons look at",
                "  galvani describe lenet5.onnx --data mnist:train -o neurons.json --page neurons.html\n"
                "  galvani describe resnet20.onnx --data cifar10:train --layers conv1,layer3.*\n"
                "  galvani describe m.onnx --data photos/ --describer formula:length=3 --exemplars m.exemplars\n"
                "  galvani describe --list");
  runs_models(
      verb, common, [flags] { return flags->outputs(); }, Processes::many);
  flags->model.add_to(verb, /*required=*/false);
  verb.add_option("--data", flags->data, "inputs to look at them with: the training data, if they are at hand");
  verb.add_option("--layers", flags->layers, "how many convolutions, evenly chosen; or layers by name").show_default();
  verb.add_option("--describer", flags->describer, "how words are found (see --list)").show_default();
  verb.add_option("--exemplars", flags->exemplars, "keep the pictures in this file, or take them from there");
  verb.add_option("--count", flags->count, "pictures a neuron").check(Range<std::int64_t>(1, 1000)).show_default();
  verb.add_option("--quantile", flags->quantile, "of a neuron's values above which it is active")
      .check(Range<double>(0.5, 0.99999))
      .show_default();
  verb.add_option("-o,--output", flags->output, "file to write").show_default();
  verb.add_option("--page", flags->page, "HTML page to write: pictures, masks, words, search");
  verb.add_flag("--list", flags->list, "print every describer with its options");
  verb.callback([&common, flags] {
    if (!flags->list && flags->model.model.empty()) bad_usage("model is required: an ONNX or TorchScript file");
    run(common, *flags);
  });
}

}  // namespace galvani::cli
