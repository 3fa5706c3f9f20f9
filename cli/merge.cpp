#include "galvani/fuzz/merge.h"

#include "campaign_flags.h"
#include "galvani/base/json.h"
#include "galvani/base/progress.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct MergeFlags {
  std::vector<std::string> folders;
  std::string output;
};

void run(const Common& common, const MergeFlags& flags) {
  merge_islands({flags.folders.begin(), flags.folders.end()}, flags.output);
  CampaignReader reader(flags.output);
  CampaignSummary summary = summarise(reader);
  if (common.json) {
    common.give(summary_json(reader, summary));
  } else {
    say("{}\nin {}; the islands are as they were\n", summary_text(reader, summary), flags.output);
  }
}

}  // namespace

void add_merge_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<MergeFlags>();
  Verb& verb = make_verb(app, common, "merge", "write the islands of a fuzz campaign as one campaign",
                         "  galvani merge run9 -o all                              every island in run9\n"
                         "  galvani merge run9/island-1 run9/island-3 -o some\n"
                         "  galvani merge here/run10 there/run10 -o all            shares that came from two machines\n"
                         "stats, report, faults, export, replay, compare and quality take run9 itself, too.");
  verb.add_option("runs", flags->folders, "folders of islands, or folders with islands in them").required();
  verb.add_option("-o,--output", flags->output, "the folder to make").required();
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
