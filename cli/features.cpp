#include "galvani/select/features.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"
#include "galvani/quality/tests.h"
#include "galvani/report/feature_map.h"
#include "model_flags.h"
#include "spread.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct FeaturesFlags {
  ModelFlags model;
  std::string data;
  std::vector<std::string> campaigns;
  std::string layer = "penultimate";
  std::int64_t most = 300;
  std::int64_t neighbours = 10;
  TsneOptions tsne;
  std::string picture;
  std::string output;
};

FeatureGroup group_of(Network& network, const std::string& name, const at::Tensor& inputs, const at::Tensor& labels,
                      const FeatureNeed& need) {
  return {name, features_of(network, inputs, need), labels, predict(network, inputs).labels};
}

FeatureGroup group_of_data(Network& network, const DataView& data, const FeaturesFlags& flags,
                           const FeatureNeed& need) {
  check_labels(network, data);
  std::vector<std::int64_t> rows = spread_rows(data.size(), flags.most);
  if (static_cast<std::int64_t>(rows.size()) <= flags.neighbours)
    bad_input("{}: {} inputs are too few to have {} neighbours; --neighbours or --most says otherwise", data.name,
              rows.size(), flags.neighbours);
  return group_of(network, data.name, data.fetch(rows), data.labels.index_select(0, at::tensor(rows, at::kLong)), need);
}

FeatureGroup group_of_tests(Network& network, const std::string& folder, const FeaturesFlags& flags,
                            const FeatureNeed& need) {
  TestRows found = spread_tests(network, folder, flags.most);
  return group_of(network, folder, found.tests, found.labels, need);
}

std::vector<std::string> names_of_classes(const Network& network, const DataView& data) {
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < network.info().classes; ++c) names.push_back(verdict_name(network, data, c));
  return names;
}

std::string points_csv(const std::vector<FeatureGroup>& groups, const TsneMap& map) {
  std::string text = "group,input,x,y,label,predicted\n";
  std::size_t at = 0;
  for (const FeatureGroup& group : groups) {
    for (std::int64_t i = 0; i < group.size(); ++i, ++at)
      text += fmt::format("{},{},{:.6g},{:.6g},{},{}\n", csv_cell(group.name), i, map.points[at][0], map.points[at][1],
                          group.labels[i].item<std::int64_t>(), group.predicted[i].item<std::int64_t>());
  }
  return text;
}

void run(const Common& common, FeaturesFlags& flags) {
  auto [network, data] = load_with_data(flags.model, flags.data);
  FeatureNeed need = feature_of(*network, flags.layer);
  std::vector<FeatureGroup> groups{group_of_data(*network, data, flags, need)};
  for (const std::string& folder : flags.campaigns) groups.push_back(group_of_tests(*network, folder, flags, need));
  std::vector<FeatureNeighbours> found = feature_neighbours(groups, flags.neighbours);
  std::int64_t all = 0;
  std::vector<at::Tensor> features;
  for (const FeatureGroup& group : groups) {
    all += group.size();
    features.push_back(group.features);
  }
  std::optional<TsneMap> map;
  if (!flags.picture.empty() || !flags.output.empty()) {
    flags.tsne.seed = common.seed;
    map = tsne(at::cat(features), flags.tsne);
  }
  std::string layer = describe(*network, need);
  if (!flags.picture.empty())
    write_file(flags.picture, feature_map_svg(fmt::format("{}: {} by t-SNE ({})", network->info().path, layer,
                                                          map->exact ? "exact" : "Barnes-Hut"),
                                              groups, *map, names_of_classes(*network, data)));
  if (!flags.output.empty()) write_file(flags.output, points_csv(groups, *map));
  if (common.json) {
    Json j = {{"model", network->info().path},
              {"layer", layer},
              {"width", features[0].size(1)},
              {"neighbours", flags.neighbours},
              {"groups", Json::array()}};
    for (std::size_t g = 0; g < groups.size(); ++g)
      j["groups"].push_back({{"name", groups[g].name},
                             {"inputs", groups[g].size()},
                             {"neighbours_in", found[g].in_group},
                             {"same_label", found[g].same_label},
                             {"same_verdict", found[g].same_verdict}});
    if (map) j["tsne"] = {{"exact", map->exact}, {"perplexity", map->perplexity}, {"divergence", map->divergence}};
    return common.give(j);
  }
  std::vector<std::string> titles{"group", ">inputs"};
  for (const FeatureGroup& group : groups) titles.push_back(">near in " + group.name);
  titles.insert(titles.end(), {">label", ">verdict"});
  Table table(titles);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<std::string> row{printable(groups[g].name), format_count(groups[g].size())};
    for (double share : found[g].in_group) row.push_back(fmt::format("{:.1f}%", share * 100));
    row.push_back(fmt::format("{:.1f}%", found[g].same_label * 100));
    row.push_back(fmt::format("{:.1f}%", found[g].same_verdict * 100));
    table.add(row);
  }
  std::vector<std::string> chance{"by chance", ""};
  for (const FeatureGroup& group : groups)
    chance.push_back(fmt::format("{:.1f}%", 100 * static_cast<double>(group.size()) / static_cast<double>(all)));
  chance.insert(chance.end(), {"", ""});
  if (groups.size() > 1) table.add(chance);
  say("{}: {}, {} wide; where the {} nearest of an input are, and how many of the {} nearest in {} have its label, or "
      "the\n"
      "verdict on it as label\n\n{}",
      network->info().path, layer, features[0].size(1), flags.neighbours, flags.neighbours, data.name, table.str());
  if (map)
    say("\nt-SNE: {}, perplexity {:.3g}, divergence {:.3f}\n", map->exact ? "every pair" : "Barnes-Hut",
        map->perplexity, map->divergence);
  for (const std::string& path : {flags.picture, flags.output}) {
    if (!path.empty()) say("written to {}\n", path);
  }
}

}  // namespace

void add_features_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<FeaturesFlags>();
  Verb& verb = make_verb(
      app, common, "features", "say where found inputs lie among ordinary ones, as a layer sees them, and draw a map",
      "  galvani features lenet5.onnx --data mnist:test\n"
      "  galvani features lenet5.onnx --data mnist:test --tests run1 run2 --picture map.svg\n"
      "  galvani features lenet5.onnx --data mnist:test --tests adv --layer encoder --most 2000 -o points.csv");
  runs_models(verb, common, [flags] { return Confinement{{}, {flags->picture, flags->output}}; });
  flags->model.add_to(verb);
  verb.add_option("--data", flags->data, "ordinary inputs, the ground of the map").required();
  verb.add_option("--tests", flags->campaigns, "folders of campaigns, whose faults are a group each");
  verb.add_option("--layer", flags->layer, "penultimate, encoder (docs/selection.md), or the name of a tap")
      .show_default();
  verb.add_option("--most", flags->most, "inputs of a group, spread evenly; 0: all")
      .check(Range<std::int64_t>(0, std::int64_t{1} << 40))
      .show_default();
  verb.add_option("--neighbours", flags->neighbours, "nearest inputs that are looked at")
      .check(Range<std::int64_t>(1, 1000))
      .show_default();
  verb.add_option("--picture", flags->picture, "SVG file: a map by t-SNE, coloured by group and by label");
  verb.add_option("-o,--output", flags->output, "CSV file with the place of every input on the map");
  verb.add_option("--perplexity", flags->tsne.perplexity, "of the map: about how many neighbours a point has")
      .check(Range<double>(1, 10000))
      .show_default();
  verb.add_option("--exact", flags->tsne.exact, "points up to which every pair counts; beyond, Barnes-Hut")
      .check(Range<std::int64_t>(0, 100000))
      .show_default();
  verb.add_option("--steps", flags->tsne.iterations, "of the map")
      .check(Range<std::int64_t>(1, 1000000))
      .show_default();
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
