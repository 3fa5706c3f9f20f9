#include "galvani/fuzz/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/json.h"
#include "galvani/base/progress.h"
#include "gate_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

constexpr std::size_t kDamageShown = 20;

struct CheckFlags {
  std::string folder;
  bool no_lineages = false;
  GateFlags gates;
};

std::string intact_text(const CheckedPart& part) {
  return fmt::format("{} of {} {}", format_count(part.intact), format_count(part.all), part.name);
}

Json as_json(const CheckFlags& flags, const CheckReport& report) {
  Json j = {{"folder", flags.folder},
            {"sound", report.sound()},
            {"parts", Json::object()},
            {"damage", report.damage},
            {"notes", report.notes}};
  for (const CheckedPart& part : report.parts) j["parts"][part.name] = {{"all", part.all}, {"intact", part.intact}};
  return j;
}

void print(const CheckFlags& flags, const CheckReport& report) {
  std::vector<std::string> parts;
  for (const CheckedPart& part : report.parts) parts.push_back(intact_text(part));
  say("{}: {}\nintact: {}\n", flags.folder, report.sound() ? "sound" : "damaged", fmt::join(parts, ", "));
  for (std::size_t i = 0; i < std::min(kDamageShown, report.damage.size()); ++i) say("damaged: {}\n", report.damage[i]);
  if (report.damage.size() > kDamageShown)
    say("and {} more; --json has all\n", format_count(static_cast<std::int64_t>(report.damage.size() - kDamageShown)));
  for (const std::string& note : report.notes) say("note: {}\n", note);
}

Figures figures_of(const CheckReport& report) {
  return {{"damage", static_cast<double>(report.damage.size())}, {"notes", static_cast<double>(report.notes.size())}};
}

void run(Common& common, const CheckFlags& flags) {
  flags.gates.check(names_of(figures_of(CheckReport())));
  CheckOptions options;
  options.lineages = !flags.no_lineages;
  CheckReport report = check_campaign(flags.folder, options);
  if (!report.sound()) common.exit_code = 1;
  if (common.json) {
    common.give(as_json(flags, report));
  } else {
    print(flags, report);
  }
  flags.gates.judge(common, figures_of(report), {"galvani check", flags.folder, 0, {}}, [&] { return report.damage; });
}

}  // namespace

void add_check_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<CheckFlags>();
  Verb& verb = make_verb(app, common, "check", "is a campaign's folder what the campaign wrote?",
                         "  galvani check run1\n"
                         "  galvani check run1 --json              every damaged thing by name\n"
                         "  galvani check run1 --no-lineages       mutants are not made again from their parents\n"
                         "Nothing is written. Exit code 1 if damage was found.");
  runs_models(verb, common, [flags] { return Confinement{{}, {flags->gates.junit}}; });
  verb.add_option("run", flags->folder, "the campaign's folder").required();
  verb.add_flag("--no-lineages", flags->no_lineages, "do not make every mutant again from its parent");
  flags->gates.usual = "damage>0";
  flags->gates.add_to(verb, "notes>0");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
