#include <ATen/ATen.h>
#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/data/export.h"
#include "galvani/data/spec.h"
#include "galvani/data/view.h"
#include "galvani/mutate/one_each.h"
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
  bool one_each = false;

  bool archive() const { return output.size() > 4 && output.compare(output.size() - 4, 4, ".npz") == 0; }
  // What may be written: a file, or the folder of a pool.
  Confinement outputs() const {
    if (list) return {};
    return one_each && !archive() ? Confinement{{output}, {}} : Confinement{{}, {output}};
  }
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
    common.give({{"mutators", entries}, {"catalogues", catalogues}}, 2);
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
  MutationContext context{data.type(), request.style.empty() ? data.images : images_of_style(request)};
  MutatorSet set(request.mutators, context);
  std::vector<SheetRow> rows = arrange_mutants(set, data, request.columns, Rng(common.seed).derive("sheet"));
  write_mutant_sheet(set, data, rows, request.output);
  if (!common.json) {
    say("{} mutators on {} of {} are now in {}\n", rows.size(), data.type().noun(), printable(data.name),
        request.output);
    return;
  }
  Json result = Json::array();
  for (const SheetRow& row : rows) {
    Json rules = Json::array();
    for (std::size_t i = 0; i < row.rules.size(); ++i)
      rules.push_back({{"rule", set.text(row.rules[i])}, {"valid", static_cast<bool>(row.valid[i])}});
    result.push_back({{"mutator", row.mutator}, {"image", row.image}, {"rules", rules}});
  }
  common.give({{"data", data.name}, {"mutators", request.mutators}, {"output", request.output}, {"rows", result}}, 2);
}

// Which rule made which file, of which input.
std::string rules_csv(const std::vector<std::string>& rules, const SampleType& type, const std::string& spec) {
  std::string text = "file,rule,original,index\n";
  for (std::size_t i = 0; i < rules.size(); ++i)
    text += fmt::format("{:06}{},{},{},{}\n", i, type.extension(), csv_cell(rules[i]), csv_cell(spec), i);
  return text;
}

// A pool as NSS' authors make it: every input changed once, with its label.
void write_pool(const MutateRequest& request, const Common& common) {
  if (request.data.empty()) bad_usage("--data is missing: which images to mutate, such as digits or a folder");
  OpenedData opened(request.data);
  DataView data = opened.view(needs_to_look_at(opened, request.skip_broken));
  if (data.size() == 0) bad_usage("{}: there are no images to mutate", data.name);
  OneEach maker(request.mutators, data.type(), request.style.empty() ? at::Tensor() : images_of_style(request));
  std::vector<std::string> rules;
  DataView pool = changed_once(data, maker, common.seed, rules);
  if (request.archive()) {
    write_npz_dataset(pool.load(), request.output);
  } else {
    write_sample_folder(pool, request.output, [&](const std::filesystem::path& folder) {
      write_file(folder / "mutants.csv", rules_csv(rules, data.type(), absolute_spec(request.data)));
    });
  }
  auto unchanged = std::count(rules.begin(), rules.end(), "");
  if (common.json) {
    common.give({{"data", data.name},
                 {"mutators", request.mutators},
                 {"output", request.output},
                 {"seed", common.seed},
                 {"inputs", data.size()},
                 {"unchanged", unchanged}},
                2);
    return;
  }
  say("{}, one of each of {}, written to {}{}\n", counted(data.size(), "mutant"), printable(data.name), request.output,
      unchanged > 0 ? fmt::format("; {} could not be changed", unchanged) : "");
}

}  // namespace

void add_mutate_verb(Verb& app, Common& common) {
  Verb& verb = make_verb(app, common, "mutate", "show what the mutators do to images, or make a pool of mutants",
                         "  galvani mutate --list\n"
                         "  galvani mutate --data digits -o sheet.png\n"
                         "  galvani mutate --data cifar10 --mutators nsgen -o nsgen.png\n"
                         "  galvani mutate --data digits --mutators rotation:angle=-45..45,noise:sigma=10..60\n"
                         "  galvani mutate --data photos/ --mutators style --style paintings/\n"
                         "  galvani mutate --data mnist:test --set nss --one-each -o pool\n");
  auto request = std::make_shared<MutateRequest>();
  runs_models(verb, common, [request] { return request->outputs(); });
  verb.add_option("--data", request->data, "images to mutate, such as digits:test[:100] or a path");
  verb.add_option("--mutators,--set", request->mutators, "mutators and catalogues (see --list and docs/mutators.md)")
      .show_default();
  verb.add_option("--style", request->style, "images to take a style from (default: the data itself)");
  verb.add_option("-o,--output", request->output, "the PNG file to write; with --one-each a folder, or an NPZ file")
      .show_default();
  verb.add_option("--columns", request->columns, "mutants in a row").check(Range(1, 64)).show_default();
  verb.add_flag("--one-each", request->one_each, "write a mutant of every image, with its label, in place of a sheet");
  verb.add_flag("--skip-broken", request->skip_broken, "leave out files that cannot be read");
  verb.add_flag("--list", request->list, "print every mutator with its options, and the catalogues");
  verb.callback([&verb, request, &common] {
    if (request->list) return list_mutators(common);
    if (!request->one_each) return draw_sheet(*request, common);
    if (!verb.was_given("-o")) bad_usage("--one-each writes a pool: name a folder or an NPZ file with -o");
    if (verb.was_given("--columns")) bad_usage("--columns is of a sheet, not of --one-each");
    write_pool(*request, common);
  });
}

}  // namespace galvani::cli
