#include "campaign_flags.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/log.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/model/evaluate.h"

namespace galvani::cli {
namespace fs = std::filesystem;

std::string usual_folder(const std::string& model, const std::string& what) {
  // Processes of one job may look at the clock a second apart.
  return made_by_first([&] {
    std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    std::array<char, 32> date{};
    std::strftime(date.data(), date.size(), "%Y%m%d-%H%M%S", &local);
    std::string stem = fs::path(model).stem().string() + (what.empty() ? "" : "-" + what);
    std::string folder = (fs::path("galvani-runs") / (stem + "-" + date.data())).string();
    std::string unused = folder;
    for (int n = 2; fs::exists(unused); ++n) unused = folder + "-" + std::to_string(n);  // two within a second
    return unused;
  });
}

void use_execution_of(const std::string& folder, Network::Options& options) {
  if (!is_campaign(folder)) return;
  Execution then = CampaignRecord::from_toml(fs::path(folder) / "campaign.toml").execution;
  std::int64_t asked = options.micro_batch;
  bool as_asked = (asked == 0 || asked == then.micro_batch) && (!options.unfused || !then.fused);
  if (as_asked) options.execution = then;
}

void say_base(const Common& common, const std::string& folder, Network& network, const Dataset& data,
              const std::string& spec) {
  constexpr std::int64_t kLookedAt = 500;
  if (!leads()) return;
  CampaignReader begun(folder);
  SeedFigures base = begun.seed_figures();
  if (!common.json) say("{}\n", base_text(begun.record(), base));
  if (network.info().question.by_reference()) return;
  Evaluation evaluation;
  evaluation.images = base.looked_at;
  evaluation.accuracy = base.accuracy();
  std::optional<std::string> doubt = suspicious(network, evaluation, spec);
  // Which class is taken for which may say more.
  if (doubt && data.labelled()) {
    WorkAlone alone;
    doubt = suspicious(network, evaluate_some(network, data, kLookedAt), spec);
  }
  if (doubt) log::warn("{}", *doubt);
}

std::string yields_text(const char* title, const std::vector<YieldRecord>& yields) {
  Table table({title, ">mutants", ">valid", ">outputs", ">faults", ">faults/valid", ">kept faults"});
  for (const YieldRecord& y : yields) {
    if (y.mutants == 0) continue;
    double share = y.valid > 0 ? static_cast<double>(y.faults) / static_cast<double>(y.valid) : 0;
    table.add({printable(y.name), format_count(y.mutants), format_count(y.valid), format_count(y.kept),
               format_count(y.faults), fmt::format("{:.2f}%", share * 100), format_count(y.kept_faults)});
  }
  return table.str();
}

void add_counters(const CampaignCounters& c, Json& to) {
  for_each_counter(c, [&](const char*, const char* name, const auto& value) { to[name] = value; });
  if (c.coverable <= 0) to["coverable"] = Json();
  to["coverage"] = c.coverage();
}

namespace {

// Of the tried seeds the share that a change of at most this size broke.
Json broken_by_change(const SeedFigures& seeds) {
  Json all = Json::array();
  if (seeds.smallest.empty()) return all;
  for (double step : change_steps()) all.push_back({{"change", step}, {"share", seeds.broken_by(step)}});
  return all;
}

}  // namespace

Json summary_json(const CampaignReader& reader, const CampaignSummary& s) {
  const CampaignCounters& c = s.counters;
  const CampaignRecord& record = reader.record();
  Json j = {{"folder", reader.opened().string()},
            {"seeds", s.seeds.seeds},
            {"tried_seeds", s.seeds.tried},
            {"broken_seeds", s.seeds.broken},
            {"broken_share", s.seeds.share()},
            {"broken_by_change", broken_by_change(s.seeds)},
            {"base_accuracy", s.seeds.accuracy()},
            {"preprocessing_assumed", record.preprocess_assumed},
            {"model", record.model},
            {"data", record.data},
            {"guide", record.settings.guide},
            {"seed", record.settings.seed},
            {"not_a_number", s.not_a_number},
            {"rft", s.rft},
            {"rft_all", s.rft_all},
            {"seconds", s.seconds},
            {"fre", c.kept_faults > 0 ? Json(s.fre) : Json()},
            {"fre_all", c.faults > 0 ? Json(s.fre_all) : Json()},
            {"classes", s.classes},
            {"predicted_classes", s.predicted},
            {"transitions", s.transitions},
            {"oi", s.impartiality}};
  add_counters(c, j);
  return j;
}

std::string summary_text(const CampaignReader& reader, const CampaignSummary& s) {
  const CampaignCounters& c = s.counters;
  Table table({"", ""});
  auto n = [](std::int64_t value) { return format_count(value); };
  auto distinct = [&](std::int64_t value) {
    return reader.type().kind == SampleKind::image ? counted(value, "distinct image") : counted(value, "distinct clip");
  };
  table.add({"seeds", seeds_text(s.seeds)});
  if (std::string changes = changes_text(s.seeds); !changes.empty()) table.add({"smallest change", changes});
  table.add({"faults", fmt::format("{} of {} ({:.2f}%), {}", n(c.faults), counted(c.valid, "valid mutant"),
                                   s.rft_all * 100, distinct(c.distinct_faults))});
  if (s.not_a_number > 0)
    table.add({kNotANumberName, fmt::format("{} of the faults: their scores are NaN or infinite", n(s.not_a_number))});
  table.add({"outputs", fmt::format("{} kept, {}", n(c.kept), distinct(c.distinct_kept))});
  table.add({"faults among outputs", fmt::format("{}, RFT {:.4f}", n(c.kept_faults), s.rft)});
  if (c.faults > 0)
    table.add({"time per fault", fmt::format("{:.4g} s (all), {} (outputs, FRE)", s.fre_all,
                                             c.kept_faults > 0 ? fmt::format("{:.4g} s", s.fre) : "-")});
  if (!reader.record().by_reference())
    table.add({"classes", fmt::format("{} of {} true, {} predicted, {} pairs, OI {:.4f}", s.classes, reader.classes(),
                                      s.predicted, s.transitions, s.impartiality)});
  else
    table.add({"task", to_string(reader.record().task()) +
                           (reader.record().preprocess.tolerance.empty()
                                ? std::string()
                                : ", tolerance " + printable(reader.record().preprocess.tolerance))});
  auto amount = [](double value) {
    return value == std::floor(value) ? format_count(static_cast<std::int64_t>(value)) : fmt::format("{:.6g}", value);
  };
  table.add({"coverage", c.coverable > 0 ? fmt::format("{:.2f}% ({} of {}), {}", c.coverage() * 100, amount(c.covered),
                                                       amount(c.coverable), reader.record().settings.guide)
                         : c.covered > 0 ? fmt::format("{:.6g}, {}", c.covered, reader.record().settings.guide)
                                         : "not measured"});
  if (c.resets > 0) table.add({"resets", n(c.resets)});
  double rate = s.seconds > 0 ? static_cast<double>(c.valid) / s.seconds : 0;
  table.add(
      {"work", fmt::format("{}, {} ({} valid) in {}, {}/s", counted(c.iterations, "iteration"),
                           counted(c.mutants, "mutant"), n(c.valid), format_duration(s.seconds), format_rate(rate))});
  return table.str();
}

}  // namespace galvani::cli
