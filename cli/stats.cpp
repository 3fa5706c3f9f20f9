#include <fmt/format.h>

#include "campaign_flags.h"
#include "galvani/base/error.h"
#include "galvani/base/json.h"
#include "galvani/base/table.h"
#include "gate_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct StatsFlags {
  std::string folder;
  bool wrong_seeds = false;
  GateFlags gates;
};

void print_wrong_seeds(const CampaignReader& reader) {
  Table table({"input", "true", "predicted", ">confidence"});
  for (const WrongSeedRecord& seed : reader.wrong_seeds())
    table.add({seed.source.empty() ? fmt::format("item {}", seed.item) : printable(seed.source, 60),
               printable(reader.class_name(seed.label), 30), printable(reader.class_name(seed.predicted), 30),
               fmt::format("{:.1f}%", seed.confidence * 100)});
  say("inputs of {} that were wrong before anything was changed\n\n{}", printable(reader.record().data), table.str());
}

Json wrong_seeds_json(const CampaignReader& reader) {
  auto all = Json::array();
  for (const WrongSeedRecord& seed : reader.wrong_seeds())
    all.push_back({{"item", seed.item},
                   {"file", seed.source},
                   {"label", seed.label},
                   {"predicted", seed.predicted},
                   {"predicted_name", reader.class_name(seed.predicted)},
                   {"confidence", seed.confidence}});
  return all;
}

void print(const Common& common, const StatsFlags& flags, const CampaignReader& reader,
           const CampaignSummary& summary) {
  if (common.json) {
    Json j = summary_json(reader, summary);
    j["mutators"] = yields_json(reader.kinds());
    j["by_class"] = yields_json(reader.by_class());
    j["confusion"] = Json::array();
    for (const ConfusionRecord& cell : reader.confusion())
      j["confusion"].push_back({{"true", cell.label},
                                {"predicted", cell.predicted},
                                {"predicted_name", reader.class_name(cell.predicted)},
                                {"faults", cell.faults}});
    j["wrong_seeds"] = wrong_seeds_json(reader);
    common.give(j);
    return;
  }
  if (flags.wrong_seeds) {
    print_wrong_seeds(reader);
    return;
  }
  const CampaignRecord& record = reader.record();
  say("{}: {} on {}, seed {}\n{}\n\n", flags.folder, record.settings.guide, printable(record.data),
      record.settings.seed, base_text(record, summary.seeds));
  say("{}\n", summary_text(reader, summary));
  say("{}\n{}", yields_text("mutator", reader.kinds()), yields_text("class", reader.by_class()));
}

void run(Common& common, const StatsFlags& flags) {
  flags.gates.check(names_of(figures_of(CampaignSummary())));
  CampaignReader reader(flags.folder);
  CampaignSummary summary = summarise(reader);
  print(common, flags, reader, summary);
  flags.gates.judge(common, figures_of(summary), {"galvani stats", flags.folder, summary.seconds, {}},
                    [&] { return fault_lines(reader); });
}

}  // namespace

void add_stats_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<StatsFlags>();
  Verb& verb = make_verb(app, common, "stats", "numbers of a fuzz campaign: faults, RFT, FRE, classes, OI, yields",
                         "  galvani stats run1\n  galvani stats run1 --wrong-seeds\n  galvani stats run1 --json");
  verb.add_option("run", flags->folder, "the campaign's folder").required();
  verb.add_flag("--wrong-seeds", flags->wrong_seeds, "list the inputs the model got wrong from the start");
  flags->gates.usual = "faults>0";
  flags->gates.add_to(verb, "faults>0");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
