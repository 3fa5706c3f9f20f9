#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "campaign_flags.h"
#include "galvani/base/files.h"
#include "galvani/base/json_text.h"
#include "galvani/base/log.h"
#include "galvani/base/progress.h"
#include "galvani/report/page.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct ReportFlags {
  std::string folder;
  std::string output;
  PageOptions page;
};

void run(const Common& common, const ReportFlags& flags) {
  CampaignReader reader(flags.folder);
  std::filesystem::path output = flags.output;
  if (flags.output.empty()) output = std::filesystem::path(flags.folder) / "report.html";
  Page page = make_page(reader, flags.page);
  write_file(output, page.html);
  if (common.json) {
    print_json({{"page", output.string()},
                {"bytes", page.html.size()},
                {"faults", page.faults},
                {"shown", page.shown},
                {"images", page.images},
                {"bad_files", page.bad}},
               1);
    return;
  }
  if (!page.bad.empty()) log::warn("{} faults have no picture: {}", page.bad.size(), page.bad.front());
  say("{}: {} of {} faults, {}\n", output.string(), format_count(page.shown), format_count(page.faults),
      format_bytes(page.html.size()));
}

}  // namespace

void add_report_verb(CLI::App& app, Common& common) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* verb = make_verb(app, common, "report", "a fuzz campaign as one HTML page, with a gallery of its faults",
                             "  galvani report run1                        writes run1/report.html\n"
                             "  galvani report run1 -o page.html --most 500");
  verb->add_option("run", flags->folder, "the campaign's folder")->required();
  verb->add_option("-o,--output", flags->output, "the page (default: report.html in the folder)");
  verb->add_option("--most", flags->page.most, "faults in the gallery; distinct ones come first")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1000000}))
      ->capture_default_str();
  verb->callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
