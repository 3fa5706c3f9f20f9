#include <fmt/format.h>

#include "campaign_flags.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/output_file.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/fuzz/merge.h"
#include "galvani/report/page.h"
#include "galvani/report/replay.h"
#include "gate_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct ReportFlags {
  std::string folder;
  std::string output;
  PageOptions page;
  GateFlags gates;
};

std::filesystem::path page_in(const std::string& folder) {
  return std::filesystem::path(folder) / "report.html";
}

Figures figures_of(const Page& page) {
  auto n = [](auto count) { return static_cast<double>(count); };
  return {{"faults", n(page.faults)},
          {"shown", n(page.shown)},
          {"images", n(page.images)},
          {"bad-files", n(page.bad.size())}};
}

void run(Common& common, const ReportFlags& flags) {
  flags.gates.check(names_of(figures_of(Page())));
  CampaignReader reader(flags.folder);
  bool inside = flags.output.empty();
  std::filesystem::path output = inside ? page_in(flags.folder) : std::filesystem::path(flags.output);
  std::unique_ptr<Network> network;
  try {
    network = load_campaign_model(reader.record());
  } catch (const Error& e) {
    log::info("the page groups no faults by what the model sees in them, for it cannot be loaded: {}", e.what());
  }
  PageOptions options = flags.page;
  options.network = network.get();
  Page page = make_page(reader, options);
  if (inside) {
    write_over(output, page.html);
  } else {
    write_file(output, page.html);
  }
  if (common.json) {
    common.give({{"page", output.string()},
                 {"bytes", page.html.size()},
                 {"faults", page.faults},
                 {"shown", page.shown},
                 {"images", page.images},
                 {"bad_files", page.bad}});
  } else {
    say("{}: {} of {}, {}\n", output.string(), format_count(page.shown), counted(page.faults, "fault"),
        format_bytes(page.html.size()));
  }
  if (!page.bad.empty() && !common.json)
    log::warn("{} no picture: {}", counted(static_cast<std::int64_t>(page.bad.size()), "fault has", "faults have"),
              page.bad.front());
  flags.gates.judge(common, figures_of(page), {"galvani report", flags.folder, 0, {}}, [&] { return page.bad; });
}

}  // namespace

void add_report_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<ReportFlags>();
  Verb& verb = make_verb(app, common, "report", "a fuzz campaign as one HTML page, with a gallery of its faults",
                         "  galvani report run1                        writes run1/report.html\n"
                         "  galvani report run1 -o page.html --most 500");
  runs_models(verb, common, [flags] {
    Confinement wall{{}, {flags->output, flags->gates.junit}};
    if (flags->output.empty() && holds_campaign(flags->folder)) wall.places.push_back(page_in(flags->folder));
    return wall;
  });
  verb.add_option("run", flags->folder, "the campaign's folder").required();
  verb.add_option("-o,--output", flags->output, "the page (default: report.html in the folder)");
  verb.add_option("--most", flags->page.most, "faults in the gallery; distinct ones come first")
      .check(Range(std::int64_t{0}, std::int64_t{1000000}))
      .show_default();
  flags->gates.add_to(verb, "bad-files>0");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
