#include "verb.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/log.h"
#include "galvani/base/output_file.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/runtime.h"

namespace galvani::cli {
namespace {

void apply(Common& common) {
  if (common.json_lines) common.json = true;
  if (common.taker != nullptr) return;
  if (common.verbose) log::set_level(log::Level::debug);
  if (common.quiet) log::set_level(log::Level::warning);
  Progress::set_enabled(!common.quiet && !common.json);
  init_runtime();
}

void refuse_crew() {
  if (crew() != nullptr)
    bad_usage(
        "this verb is the work of one process, so leave mpirun away; several can share attack, cover, describe, "
        "excite, fuzz, predict, profile, quality, select and trace");
}

void start_workers(const Common& common) {
  if (common.threads > 0) set_workers(common.threads);
}

void raise_wall(Confinement wanted) {
  for (auto* paths : {&wanted.files, &wanted.places, &wanted.folders})
    paths->erase(std::remove(paths->begin(), paths->end(), std::filesystem::path()), paths->end());
  wanted.folders.push_back(cache_folder());
  if (Crew* all = crew(); all != nullptr && !all->folder().empty()) wanted.folders.push_back(all->folder());
  Confined wall = confine(wanted);
  // Temporary files have to be where something may be written; SQLite makes some, too.
  if (wall.active) ::setenv("TMPDIR", cache_folder().c_str(), 1);
  log::debug("{}: {}", wall.active ? "confined" : "not confined", wall.how);
}

}  // namespace

void Common::give(const Json& document, int indent) const {
  if (taker != nullptr) return taker->result(document, {});
  print_json(document, json_lines ? -1 : indent);
}

void Common::give(const Json& document, const ResultArrays& arrays) const {
  taker->result(document, arrays);
}

void Common::tell(const Json& news) const {
  if (taker != nullptr) return taker->news(news);
  print_json(news);
}

Verb& make_verb(Verb& parent, Common& common, const std::string& name, const std::string& help,
                const std::string& examples) {
  Verb& verb = parent.add_verb(name, help);
  verb.examples(examples);
  verb.add_option("--seed", common.seed, "seed of everything random").show_default().group("Common");
  verb.add_option("--threads", common.threads, "worker threads (default: one per core)")
      .check(Range(1, 1024))
      .group("Common");
  verb.add_flag("--json", common.json, "print the result as one JSON document").group("Common");
  verb.add_flag("-q,--quiet", common.quiet, "no progress, warnings only").group("Common");
  verb.add_flag("-v,--verbose", common.verbose, "say more").group("Common");
  verb.ready([&common, &verb] {
    verb.refuse_empty();
    refuse_crew();
    apply(common);
    start_workers(common);
  });
  return verb;
}

void has_news(Verb& verb, Common& common) {
  verb.add_flag("--json-lines", common.json_lines, "print news and the result as JSON, an object a line")
      .group("Common");
}

void runs_models(Verb& verb, Common& common, std::function<Confinement()> outputs, Processes processes) {
  verb.ready([&common, &verb, outputs = std::move(outputs), processes] {
    verb.refuse_empty();
    if (processes == Processes::one) refuse_crew();
    apply(common);
    Confinement wanted = outputs();
    if (!leads() && processes != Processes::many_that_write) wanted = {};
    for (const auto& file : wanted.files) {
      if (!file.empty()) check_output(file);
    }
    for (const auto& place : wanted.places) check_output(place, Writes::over);
    // Before there are threads, which the wall would not surround.
    if (common.taker == nullptr) raise_wall(std::move(wanted));
    start_workers(common);
  });
}

void add_verbs(Verb& app, Common& common) {
  add_attack_verb(app, common);
  add_calibrate_verb(app, common);
  add_check_verb(app, common);
  add_compare_verb(app, common);
  add_cover_verb(app, common);
  add_data_verb(app, common);
  add_describe_verb(app, common);
  add_excite_verb(app, common);
  add_explain_verb(app, common);
  add_export_verb(app, common);
  add_faults_verb(app, common);
  add_features_verb(app, common);
  add_fuzz_verb(app, common);
  add_inspect_verb(app, common);
  add_model_verb(app, common);
  add_mutate_verb(app, common);
  add_predict_verb(app, common);
  add_profile_verb(app, common);
  add_quality_verb(app, common);
  add_merge_verb(app, common);
  add_repair_verb(app, common);
  add_replay_verb(app, common);
  add_report_verb(app, common);
  add_select_verb(app, common);
  add_stats_verb(app, common);
  add_trace_verb(app, common);
  add_train_verb(app, common);
  add_train_captioner_verb(app, common);
  add_train_generator_verb(app, common);
  add_diff_verb(app, common);
  add_transfer_verb(app, common);
}

void say_text(std::string_view text) {
  while (!text.empty()) {
    std::size_t end = std::min(text.find('\n'), text.size());
    std::string line = printable(text.substr(0, end), kWholeText);
    if (end < text.size()) line += '\n';
    std::fwrite(line.data(), 1, line.size(), stdout);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::fflush(stdout);
}

}  // namespace galvani::cli
