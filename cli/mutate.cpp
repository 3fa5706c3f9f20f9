#include <ATen/ATen.h>
#include <fmt/core.h>
#include <fmt/format.h>

#include "galvani/base/error.h"
#include "galvani/base/json.h"
#include "galvani/base/table.h"
#include "galvani/data/view.h"
#include "galvani/mutate/sheet.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct MutateRequest {
  std::string data;
  std::string mutators = "all";
  std::string style;
  std::string output = "mutators.png";
  std::size_t columns = 8;
  bool list = false;
  bool skip_broken = false;
};

std::string range_text(const OptionInfo& info) {
  if (!info.choices.empty()) return fmt::format("{}", fmt::join(info.choices, "|"));
  if (info.low && info.high) return fmt::format("{}..{}", *info.low, *info.high);
  return "text";
}

void list_mutators(const Common& common) {
  Json entries = Json::array();
  Table table({"mutator", "group", "affine", "what it does"});
  Table details({"option", "default", "values", "meaning"});
  for (const auto& entry : mutators().entries()) {
    std::unique_ptr<Mutator> mutator = make_mutator(Spec{entry.name, {}}, {});
    Json options = Json::array();
    table.add({entry.name, to_string(mutator->group()), mutator->affine() ? "yes" : "", entry.help});
    for (const OptionInfo& info : entry.schema) {
      std::string fallback = to_string(info.fallback);
      if (info.name == "seed" || info.name == "image") fallback = "random";
      details.add({entry.name + ":" + info.name, fallback, range_text(info), info.help});
      options.push_back(
          {{"name", info.name}, {"default", fallback}, {"values", range_text(info)}, {"help", info.help}});
    }
    entries.push_back({{"name", entry.name},
                       {"help", entry.help},
                       {"group", to_string(mutator->group())},
                       {"affine", mutator->affine()},
                       {"usual", usual_patterns(entry.name)},
                       {"options", options}});
  }
  Json catalogues = Json::array();
  Table sets({"catalogue", "what it is", "mutators"});
  for (const MutationCatalogue& catalogue : mutation_catalogues()) {
    std::vector<std::string> names;
    for (const auto& entry : catalogue.entries) names.push_back(entry.mutator);
    sets.add({catalogue.name, catalogue.help, fmt::format("{}", fmt::join(names, ", "))});
    catalogues.push_back({{"name", catalogue.name}, {"help", catalogue.help}, {"mutators", names}});
  }
  sets.add({"all", "every mutator with its usual parameters", ""});
  if (common.json) {
    print_json({{"mutators", entries}, {"catalogues", catalogues}}, 2);
    return;
  }
  say("{}\n{}\n{}", table.str(), details.str(), sets.str());
}

at::Tensor images_of_style(const MutateRequest& request) {
  OpenedData opened(request.style);
  return opened.view(needs_to_look_at(opened, request.skip_broken)).load().images;
}

void draw_sheet(const MutateRequest& request, const Common& common) {
  if (request.data.empty()) bad_usage("--data is missing: which images to mutate, such as digits or a folder");
  OpenedData opened(request.data);
  Dataset data = opened.view(needs_to_look_at(opened, request.skip_broken)).load();
  if (data.size() == 0) bad_usage("{}: there are no images to mutate", data.name);
  MutationContext context;
  context.shape = shape_of(data.images[0]);
  context.style_images = request.style.empty() ? data.images : images_of_style(request);
  MutatorSet set(request.mutators, context);
  std::vector<SheetRow> rows = arrange_mutants(set, data, request.columns, Rng(common.seed).derive("sheet"));
  write_mutant_sheet(set, data, rows, request.output);
  if (!common.json) {
    say("{} mutators on images of {} are now in {}\n", rows.size(), printable(data.name), request.output);
    return;
  }
  Json result = Json::array();
  for (const SheetRow& row : rows) {
    Json rules = Json::array();
    for (std::size_t i = 0; i < row.rules.size(); ++i)
      rules.push_back({{"rule", set.text(row.rules[i])}, {"valid", static_cast<bool>(row.valid[i])}});
    result.push_back({{"mutator", row.mutator}, {"image", row.image}, {"rules", rules}});
  }
  print_json({{"data", data.name}, {"mutators", request.mutators}, {"output", request.output}, {"rows", result}}, 2);
}

}  // namespace

void add_mutate_verb(Verb& app, Common& common) {
  Verb& verb = make_verb(app, common, "mutate", "show what the mutators do to images",
                         "  galvani mutate --list\n"
                         "  galvani mutate --data digits -o sheet.png\n"
                         "  galvani mutate --data cifar10 --mutators nsgen -o nsgen.png\n"
                         "  galvani mutate --data digits --mutators rotation:angle=-45..45,noise:sigma=10..60\n"
                         "  galvani mutate --data photos/ --mutators style --style paintings/\n");
  auto request = std::make_shared<MutateRequest>();
  runs_models(verb, common, [request] { return Confinement{{}, {request->list ? std::string() : request->output}}; });
  verb.add_option("--data", request->data, "images to mutate, such as digits:test[:100] or a path");
  verb.add_option("--mutators", request->mutators, "mutators and catalogues (see --list and docs/mutators.md)")
      .show_default();
  verb.add_option("--style", request->style, "images to take a style from (default: the data itself)");
  verb.add_option("-o,--output", request->output, "the PNG file to write").show_default();
  verb.add_option("--columns", request->columns, "mutants in a row").check(Range(1, 64)).show_default();
  verb.add_flag("--skip-broken", request->skip_broken, "leave out files that cannot be read");
  verb.add_flag("--list", request->list, "print every mutator with its options, and the catalogues");
  verb.callback([request, &common] { request->list ? list_mutators(common) : draw_sheet(*request, common); });
}

}  // namespace galvani::cli
