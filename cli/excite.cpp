#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "galvani/attribute/excitable.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/generate/changed.h"
#include "galvani/generate/generator.h"
#include "galvani/model/evaluate.h"
#include "galvani/quality/statistics.h"
#include "galvani/quality/tests.h"
#include "list_json.h"
#include "model_flags.h"
#include "spread.h"
#include "verb.h"

namespace galvani::cli {
namespace {

constexpr const char* kUsualChange = "noise:eps=0.1";

struct ExciteFlags {
  ModelFlags model;
  std::string data;
  std::vector<std::string> changes;
  std::vector<std::string> campaigns;
  std::string taps = "default";
  std::string by = "path";
  std::string against;
  double lambda = ExcitementThreshold().lambda;
  std::string scale = "absolute";
  std::int64_t top = 10;
  std::int64_t most = 100;
  std::string picture;
  std::string output;
  bool list = false;
};

void list_estimators(const Common& common) {
  Json all = Json::array();
  Table table({"estimator", "gives", "options (default)"});
  for (const auto& entry : shapley_estimators().entries()) {
    all.push_back(entry_json(entry.name, entry.help, entry.schema));
    table.add({entry.name, entry.help, defaults_text(entry.schema)});
  }
  if (common.json) {
    common.give({{"estimators", all}});
  } else {
    say("{}", table.str());
  }
}

void check_flags(ExciteFlags& flags) {
  if (flags.model.model.empty()) bad_usage("name a model");
  if (flags.data.empty() && flags.campaigns.empty())
    bad_usage("give --data, inputs to change, or --tests, a campaign that has changed some");
  if (flags.data.empty() && !flags.changes.empty()) bad_usage("--change is of --data");
  make_shapley(Spec::parse(flags.by));
  if (!flags.against.empty()) make_shapley(Spec::parse(flags.against));
  for (const std::string& change : flags.changes) resolved_generator(Spec::parse(change));
}

// A number for each input that is the same for the same values, by which groups are compared: places in data and
// numbers of a campaign mean nothing elsewhere.
std::vector<std::int64_t> identities(const at::Tensor& inputs) {
  std::hash<std::string_view> hash;
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < inputs.size(0); ++i) {
    at::Tensor own = inputs[i].contiguous();
    std::string_view bytes(static_cast<const char*>(own.data_ptr()), own.nbytes());
    result.push_back(static_cast<std::int64_t>(hash(bytes) >> 1));
  }
  return result;
}

// The data, changed by every generator that was named; inputs that the model gets wrong as they are are left out.
std::vector<ChangedInputs> change_data(Network& network, const DataView& data, const ExciteFlags& flags,
                                       std::uint64_t seed) {
  if (!data.labelled()) bad_usage("{}: excitable neurons need labelled inputs", data.name);
  check_labels(network, data);
  std::vector<std::int64_t> rows = spread_rows(data.size(), flags.most);
  at::Tensor inputs = data.fetch(rows);
  at::Tensor labels = data.labels.index_select(0, at::tensor(rows, at::kLong));
  at::Tensor right = predict(network, inputs).labels.eq(labels).nonzero().squeeze(1);
  if (right.numel() == 0) bad_input("{}: the model gets none of {} inputs right", data.name, rows.size());
  inputs = inputs.index_select(0, right);
  labels = labels.index_select(0, right);
  std::vector<ChangedInputs> groups;
  for (const std::string& change : flags.changes) {
    GeneratorContext context;
    context.seeds = inputs;
    context.rate = data.type().rate;
    context.network = &network;
    auto generator = make_generator(Spec::parse(change), context);
    Changed changed = changed_by(*generator, network, inputs, labels, Rng(seed).derive("excite"));
    if (changed.rows.empty()) bad_usage("{} makes nothing of {}: there is nothing to look at", change, data.name);
    log::info("{}: {} of {} inputs changed, {} of them misclassified", change, changed.rows.size(), inputs.size(0),
              changed.fooling);
    at::Tensor which = at::tensor(changed.rows, at::kLong);
    at::Tensor originals = inputs.index_select(0, which);
    groups.push_back({change, changed.inputs, originals, labels.index_select(0, which), identities(originals)});
  }
  return groups;
}

ChangedInputs changed_by_campaign(const Network& network, const std::string& folder, std::int64_t most) {
  TestRows found = spread_tests(network, folder, most);
  return {folder, found.tests, found.originals, found.labels, identities(found.originals)};
}

// How two estimators agree on a group.
struct Agreement {
  std::string estimator;
  double correlation = 0;  // Spearman's, of an input's neurons, on average
  double difference = 0;   // mean of what is between the values of a neuron
  double size = 0;         // mean size of these values, by `against`
  double held = -1;        // share of values inside the other's interval; -1: it has none
  double passes = 0;       // of an input, by `against`
};

Agreement compare_estimators(const Excitement& a, const Excitement& b, const std::string& name) {
  Agreement result;
  result.estimator = name;
  const at::Tensor& x = a.values.values;
  const at::Tensor& y = b.values.values;
  std::int64_t n = std::min(x.size(0), y.size(0)), neurons = x.size(1);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto* left = x.data_ptr<double>() + i * neurons;
    const auto* right = y.data_ptr<double>() + i * neurons;
    result.correlation += spearman({left, left + neurons}, {right, right + neurons}).r / static_cast<double>(n);
  }
  result.difference = (x - y).abs().mean().item<double>();
  result.size = y.abs().mean().item<double>();
  for (const auto& [sampled, other] : {std::pair(&a.values, &b.values), std::pair(&b.values, &a.values)}) {
    if (!sampled->half_widths.defined()) continue;
    at::Tensor inside = (sampled->values - other->values).abs().le(sampled->half_widths);
    result.held = inside.to(at::kDouble).mean().item<double>();
  }
  return result;
}

double passes_of(const Excitement& found) {
  // Of the changed input and of what it was made of; a derivative is a pass of its own.
  return 2 * (found.values.worths + found.values.slopes).to(at::kDouble).mean().item<double>();
}

class ExciteReport {
 public:
  ExciteReport(const ExciteFlags& flags, const Network& network, const TraceLayout& layout,
               const std::vector<Excitement>& groups)
      : flags_(flags), network_(network), layout_(layout), groups_(groups) {}
  std::vector<Agreement> agreements;  // one a group, if asked for

  Json json() const {
    Json j = {{"model", network_.info().path}, {"neurons", layout_.neurons}, {"by", flags_.by},
              {"lambda", flags_.lambda},       {"scale", flags_.scale},      {"groups", Json::array()},
              {"overlap", Json::array()},      {"values_are", values_are()}};
    for (std::size_t i = 0; i < groups_.size(); ++i) j["groups"].push_back(group_json(i));
    for (std::size_t a = 0; a < groups_.size(); ++a) {
      for (std::size_t b = a + 1; b < groups_.size(); ++b) {
        SharedExcitement both = shared(groups_[a], groups_[b]);
        j["overlap"].push_back({{"a", groups_[a].name},
                                {"b", groups_[b].name},
                                {"top", flags_.top},
                                {"of_means", both.of_means},
                                {"each", both.pairs > 0 ? Json(both.each) : Json()},
                                {"pairs", both.pairs},
                                {"by_chance", both.by_chance}});
      }
    }
    return j;
  }

  void print() const {
    say("{}: {} neurons in {} layers; values by {} ({})\n", network_.info().path, layout_.neurons,
        layout_.blocks.size(), flags_.by, values_are());
    say("excitable: a value above {}{}\n\n", flags_.lambda, flags_.scale == "max" ? " of the input's largest" : "");
    print_layers();
    print_top();
    if (groups_.size() > 1) print_overlap();
    print_agreements();
  }

  // Inputs x neurons of every group.
  std::string csv() const {
    std::string text = "group,input,tap,neuron,value,half_width,excitable\n";
    for (const Excitement& group : groups_) {
      const ShapleyValues& v = group.values;
      for (std::int64_t i = 0; i < v.values.size(0); ++i) {
        for (std::int64_t neuron = 0; neuron < layout_.neurons; ++neuron) {
          NeuronPlace place = place_of(layout_, neuron);
          text +=
              fmt::format("{},{},{},{},{:.6g},{},{}\n", csv_cell(group.name), i, csv_cell(place.tap), place.neuron,
                          v.values[i][neuron].item<double>(),
                          v.half_widths.defined() ? fmt::format("{:.6g}", v.half_widths[i][neuron].item<double>()) : "",
                          group.excitable[i][neuron].item<bool>() ? 1 : 0);
        }
      }
    }
    return text;
  }

  std::string picture() const {
    std::vector<NeuronStrip> strips;
    for (const Excitement& group : groups_)
      strips.push_back({fmt::format("{}: {} inputs, {:.1f}% of the neurons excitable on average", group.name,
                                    group.of.size(), group.share() * 100),
                        group.mean});
    return strips_svg(
        fmt::format("{}: mean values of neurons ({}, by {})", network_.info().path, values_are(), flags_.by), layout_,
        strips);
  }

 private:
  std::string values_are() const {
    return make_shapley(Spec::parse(flags_.by))->is_shapley() ? "Shapley values" : "Aumann-Shapley values";
  }

  Json neuron_json(std::int64_t neuron, double value) const {
    NeuronPlace place = place_of(layout_, neuron);
    return {{"tap", place.tap}, {"neuron", place.neuron}, {"value", value}};
  }

  Json group_json(std::size_t index) const {
    const Excitement& group = groups_[index];
    at::Tensor residual = group.values.residual().abs();
    Json j = {{"name", group.name},
              {"inputs", group.of.size()},
              {"not_finite", group.not_finite},
              {"share", group.share()},
              {"excitable", group.share() * static_cast<double>(layout_.neurons)},
              {"loss_change", (group.values.all).mean().item<double>()},
              {"residual", residual.max().item<double>()},
              {"passes", passes_of(group)},
              {"layers", Json::array()},
              {"top", Json::array()}};
    if (group.values.half_widths.defined()) j["half_width"] = group.values.half_widths.mean().item<double>();
    for (const TraceBlock& block : layout_.blocks) {
      j["layers"].push_back({{"tap", block.tap},
                             {"neurons", block.count},
                             {"share", layer_share(group, block)},
                             {"value", layer_value(group, block)}});
    }
    for (std::int64_t i = 0; i < group.top_mean.size(0); ++i) {
      auto neuron = group.top_mean[i].item<std::int64_t>();
      j["top"].push_back(neuron_json(neuron, group.mean[neuron].item<double>()));
    }
    if (index < agreements.size()) {
      const Agreement& a = agreements[index];
      j["against"] = {{"estimator", a.estimator},   {"rank_correlation", a.correlation},
                      {"difference", a.difference}, {"mean_size", a.size},
                      {"passes", a.passes},         {"inside_interval", a.held >= 0 ? Json(a.held) : Json()}};
    }
    return j;
  }

  static double layer_share(const Excitement& group, const TraceBlock& block) {
    return group.excitable.narrow(1, block.first, block.count).to(at::kDouble).mean().item<double>();
  }
  static double layer_value(const Excitement& group, const TraceBlock& block) {
    return group.mean.narrow(0, block.first, block.count).sum().item<double>();
  }

  void print_layers() const {
    Table table({"group", "layer", ">neurons", ">excitable", ">share", ">change of the loss"});
    for (const Excitement& group : groups_) {
      for (const TraceBlock& block : layout_.blocks) {
        double share = layer_share(group, block);
        table.add({group.name, block.tap, format_count(block.count),
                   fmt::format("{:.1f}", share * static_cast<double>(block.count)), fmt::format("{:.1f}%", share * 100),
                   fmt::format("{:.4g}", layer_value(group, block))});
      }
      table.add({group.name, "all", format_count(layout_.neurons),
                 fmt::format("{:.1f}", group.share() * static_cast<double>(layout_.neurons)),
                 fmt::format("{:.1f}%", group.share() * 100), fmt::format("{:.4g}", group.mean.sum().item<double>())});
    }
    say("{}\n", table.str());
    for (const Excitement& group : groups_) {
      if (group.not_finite > 0)
        log::warn("{}: the loss of {} inputs is not a finite number; they are left out", group.name, group.not_finite);
    }
  }

  void print_top() const {
    for (const Excitement& group : groups_) {
      std::string line;
      for (std::int64_t i = 0; i < group.top_mean.size(0); ++i) {
        auto neuron = group.top_mean[i].item<std::int64_t>();
        NeuronPlace place = place_of(layout_, neuron);
        line += fmt::format("{}{}[{}] {:.3g}", i == 0 ? "" : ", ", place.tap, place.neuron,
                            group.mean[neuron].item<double>());
      }
      say("most excited by {}: {}\n", group.name, line);
    }
    say("\n");
  }

  void print_overlap() const {
    Table table(
        {"group", "and", fmt::format(">of the top {} in common, by mean", flags_.top), ">by input", ">by chance"});
    for (std::size_t a = 0; a < groups_.size(); ++a) {
      for (std::size_t b = a + 1; b < groups_.size(); ++b) {
        SharedExcitement both = shared(groups_[a], groups_[b]);
        table.add({groups_[a].name, groups_[b].name, std::to_string(both.of_means),
                   both.pairs > 0 ? fmt::format("{:.2f}", both.each) : "-", fmt::format("{:.2f}", both.by_chance)});
      }
    }
    say("{}\n", table.str());
  }

  void print_agreements() const {
    for (std::size_t i = 0; i < agreements.size(); ++i) {
      const Agreement& a = agreements[i];
      say("{}: {} against {}: rank correlation {:.3f}, mean difference {:.3g} of a mean size of {:.3g}{}; {:.0f} and "
          "{:.0f} passes an input\n",
          groups_[i].name, flags_.by, a.estimator, a.correlation, a.difference, a.size,
          a.held >= 0 ? fmt::format(", {:.1f}% inside the intervals", a.held * 100) : "", passes_of(groups_[i]),
          a.passes);
    }
  }

  const ExciteFlags& flags_;
  const Network& network_;
  const TraceLayout& layout_;
  const std::vector<Excitement>& groups_;
};

void run(const Common& common, ExciteFlags& flags) {
  if (flags.list) return list_estimators(common);
  check_flags(flags);
  std::shared_ptr<Network> network;
  std::vector<ChangedInputs> groups;
  if (!flags.data.empty()) {
    if (flags.changes.empty()) {
      flags.changes = {kUsualChange};
      log::info("inputs are changed by {}; --change says otherwise", kUsualChange);
    }
    auto [loaded, data] = load_with_data(flags.model, flags.data);
    network = std::move(loaded);
    groups = change_data(*network, data, flags, common.seed);
  } else {
    network = flags.model.load(campaign_tests(CampaignReader(flags.campaigns.front()))->type());
  }
  for (const std::string& folder : flags.campaigns) groups.push_back(changed_by_campaign(*network, folder, flags.most));
  ExciteOptions options;
  options.by = flags.by;
  options.taps = network->select_taps(flags.taps);
  options.threshold = {flags.lambda, flags.scale == "max"};
  options.top = flags.top;
  options.seed = common.seed;
  std::vector<Excitement> found;
  for (const ChangedInputs& group : groups) found.push_back(excite(*network, group, options));
  TraceLayout layout = LossGame(*network, options.taps, groups[0].inputs, {}, groups[0].labels).layout();
  ExciteReport report(flags, *network, layout, found);
  if (!flags.against.empty()) {
    ExciteOptions other = options;
    other.by = flags.against;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      Excitement against = excite(*network, groups[i], other);
      report.agreements.push_back(compare_estimators(found[i], against, flags.against));
      report.agreements.back().passes = passes_of(against);
    }
  }
  if (!flags.picture.empty()) write_file(flags.picture, report.picture());
  if (!flags.output.empty()) write_file(flags.output, report.csv());
  if (common.json) {
    common.give(report.json());
  } else {
    report.print();
  }
}

}  // namespace

void add_excite_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<ExciteFlags>();
  Verb& verb =
      make_verb(app, common, "excite", "say which neurons answer for what changes of inputs do to the loss",
                "  galvani excite lenet5.onnx --data mnist:test\n"
                "  galvani excite lenet5.onnx --data mnist:test --change noise:eps=0.3 attack:eps=0.3 "
                "swarm:eps=0.3 --picture e.svg\n"
                "  galvani excite lenet5.onnx --tests run1 --by permutation:pairs=64 -o values.csv\n"
                "  galvani excite lenet1.onnx --data mnist:test --most 5 --taps 'conv*' --by path --against exact\n"
                "  galvani excite --list");
  runs_models(
      verb, common,
      [flags] {
        return Confinement{{}, {flags->picture, flags->output}};
      },
      Processes::many);
  flags->model.add_to(verb, /*required=*/false);
  verb.add_option("--data", flags->data, "labelled inputs; those the model gets right are changed");
  verb.add_option("--change", flags->changes,
                  "generators that change them, a group each (default: noise:eps=0.1; see galvani fuzz --list)");
  verb.add_option("--tests", flags->campaigns, "folders of campaigns, whose faults are a group each");
  verb.add_option("--most", flags->most, "inputs of a group, spread evenly; 0: all")
      .check(Range<std::int64_t>(0, std::int64_t{1} << 40))
      .show_default();
  verb.add_option("--taps", flags->taps, "the layers whose neurons count").show_default();
  verb.add_option("--by", flags->by, "how values are found: exact, permutation, regression, path (see --list)")
      .show_default();
  verb.add_option("--against", flags->against, "another way to find them, and how far apart the two are");
  verb.add_option("--lambda", flags->lambda, "the value above which a neuron is excitable").show_default();
  verb.add_option("--scale", flags->scale, "of values: absolute, or max, as shares of an input's largest")
      .check(OneOf{{"absolute", "max"}})
      .show_default();
  verb.add_option("--top", flags->top, "neurons of an input that groups are compared by")
      .check(Range<std::int64_t>(1, 1000000))
      .show_default();
  verb.add_option("--picture", flags->picture, "SVG file: a strip for each layer, a cell for each neuron");
  verb.add_option("-o,--output", flags->output, "CSV file with the value of every neuron for every input");
  verb.add_flag("--list", flags->list, "list the estimators and their options");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
