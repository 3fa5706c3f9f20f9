#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "campaign_flags.h"
#include "galvani/base/error.h"
#include "verb.h"

namespace galvani::cli {
namespace {

using nlohmann::json;

void run(const Common& common, const std::string& folder) {
  CampaignReader reader(folder);
  CampaignSummary summary = summarise(reader);
  if (common.json) {
    json j = summary_json(reader, summary);
    j["mutators"] = yields_json(reader.mutators());
    j["by_class"] = yields_json(reader.by_class());
    j["confusion"] = json::array();
    std::vector<std::int64_t> confusion = reader.confusion();
    auto n = static_cast<std::size_t>(reader.classes());
    for (std::size_t i = 0; i < confusion.size(); ++i) {
      if (confusion[i] > 0) j["confusion"].push_back({{"true", i / n}, {"predicted", i % n}, {"faults", confusion[i]}});
    }
    j["seeds"] = reader.seeds().size();
    j["wrong_seeds"] = reader.wrong_seeds().size();
    print_line(j, 1);
    return;
  }
  const CampaignRecord& record = reader.record();
  std::cout << fmt::format("{}: {} on {}, seed {}\n{} seeds; {} inputs were wrong from the start\n\n", folder,
                           record.settings.guide, printable(record.data), record.settings.seed, reader.seeds().size(),
                           reader.wrong_seeds().size());
  std::cout << summary_text(reader, summary) << "\n";
  std::cout << yields_text("mutator", reader.mutators()) << "\n" << yields_text("class", reader.by_class());
}

}  // namespace

void add_stats_verb(CLI::App& app, Common& common) {
  auto folder = std::make_shared<std::string>();
  CLI::App* verb = make_verb(app, common, "stats", "numbers of a fuzz campaign: faults, RFT, FRE, classes, OI, yields",
                             "  galvani stats run1\n  galvani stats run1 --json");
  verb->add_option("run", *folder, "the campaign's folder")->required();
  verb->callback([&common, folder] { run(common, *folder); });
}

}  // namespace galvani::cli
