#include "galvani/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/json_text.h"
#include "galvani/base/plot.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/coverage/criterion.h"
#include "galvani/fuzz/summary.h"
#include "galvani/model/evaluate.h"
#include "report/gallery.h"
#include "report/page_parts.h"

namespace galvani {
namespace {

using nlohmann::json;

constexpr std::size_t kPagePoints = 300;
constexpr std::size_t kMostNotedFiles = 3;
constexpr std::size_t kMostText = 200;  // characters of a name from a file

std::string shown(const std::string& text) {
  return printable(text, kMostText);
}

// JSON inside a script element: no '<' means no way out of it.
std::string script_json(const json& value) {
  std::string result;
  for (char c : json_text(value)) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

json yields(const std::vector<YieldRecord>& rows) {
  json all = json::array();
  std::int64_t label = 0;
  for (const YieldRecord& row : rows)
    all.push_back({{"name", shown(row.name)},
                   {"label", label++},
                   {"mutants", row.mutants},
                   {"valid", row.valid},
                   {"faults", row.faults}});
  return all;
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  return fmt::format("{:.3g} ms", seconds * 1000);
}

json figures(const CampaignReader& reader, const CampaignSummary& s) {
  const CampaignCounters& c = s.counters;
  json all = json::array();
  auto add = [&](const char* name, const std::string& value, const std::string& detail, bool main = false) {
    all.push_back({name, value, detail, main});
  };
  add("faults", format_count(c.faults),
      fmt::format("{:.2f}% of {} valid mutants", s.rft_all * 100, format_count(c.valid)), true);
  add("distinct faults", format_count(c.distinct_faults), "different images", true);
  add("faults among kept", format_count(c.kept_faults),
      fmt::format("RFT {:.4f} of {} kept", s.rft, format_count(c.kept)), true);
  if (s.not_a_number > 0)
    add(kNotANumberName, format_count(s.not_a_number), "faults whose scores are NaN or infinite", true);
  add("coverage", c.coverable > 0 || c.covered > 0 ? coverage_text({c.covered, c.coverable}) : "-",
      c.coverable > 0 ? fmt::format("{}, {:.6g} of {:.6g}", reader.record().settings.guide, c.covered, c.coverable)
                      : reader.record().settings.guide);
  add("time per fault", c.faults > 0 ? seconds_text(s.fre_all) : "-",
      fmt::format("FRE (kept) {}", c.kept_faults > 0 ? seconds_text(s.fre) : "-"));
  add("classes", fmt::format("{}/{}", s.classes, reader.classes()),
      fmt::format("{} predicted, {} pairs", s.predicted, s.transitions));
  add("impartiality (OI)", fmt::format("{:.3f}", s.impartiality), "evenness of predicted classes, 0 to 1");
  double rate = s.seconds > 0 ? static_cast<double>(c.valid) / s.seconds : 0;
  add("work", format_duration(s.seconds),
      fmt::format("{} iterations, {} mutants/s", format_count(c.iterations),
                  format_count(static_cast<std::int64_t>(rate))));
  return all;
}

json settings(const CampaignReader& reader, const CampaignSummary& s) {
  const CampaignRecord& r = reader.record();
  const CampaignSettings& set = r.settings;
  const CampaignCounters& c = s.counters;
  json all = json::array();
  auto add = [&](const char* name, const std::string& value) { all.push_back({name, shown(value)}); };
  add("model", r.model);
  add("model, SHA-256", r.model_sha256);
  add("input", r.input);
  add("data", r.data);
  if (!r.profile.empty()) add("profile of training data", r.profile);
  if (!r.style.empty()) add("style source", r.style);
  add("guide", set.guide);
  add("mutators", set.mutators);
  add("scheduler", set.scheduler);
  add("seed of the campaign", std::to_string(set.seed));
  add("validity", fmt::format("alpha {:g}, beta {:g}", set.alpha, set.beta));
  add("energy, batch", fmt::format("{}, {}", set.energy, set.batch));
  add("seeds", format_count(static_cast<std::int64_t>(reader.seeds().size())));
  add("inputs wrong from the start", format_count(static_cast<std::int64_t>(reader.wrong_seeds().size())));
  add("iterations", format_count(c.iterations));
  add("mutants, valid", fmt::format("{}, {}", format_count(c.mutants), format_count(c.valid)));
  add("kept, distinct", fmt::format("{}, {}", format_count(c.kept), format_count(c.distinct_kept)));
  add("faults, distinct, kept",
      fmt::format("{}, {}, {}", format_count(c.faults), format_count(c.distinct_faults), format_count(c.kept_faults)));
  add("faults whose scores are not a number", format_count(s.not_a_number));
  add("RFT (kept), all", fmt::format("{:.4f}, {:.4f}", s.rft, s.rft_all));
  add("FRE (kept), all", fmt::format("{}, {}", c.kept_faults > 0 ? seconds_text(s.fre) : "-",
                                     c.faults > 0 ? seconds_text(s.fre_all) : "-"));
  add("#Classes, OI", fmt::format("{}, {:.4f}", s.classes, s.impartiality));
  add("resets", format_count(c.resets));
  add("verdicts taken again alone", format_count(c.reexamined));
  add("time of work", format_duration(s.seconds));
  add("Galvani", r.version);
  return all;
}

std::string plots(const CampaignReader& reader) {
  std::vector<TimelinePoint> timeline = reader.timeline(kPagePoints);
  PlotPanel coverage{"Coverage", "iterations", "", {{"coverage", {}}}, false};
  PlotPanel faults{"Faults", "iterations", "", {{"all", {}}, {"distinct", {}}, {"kept", {}}}, false};
  PlotPanel times{"Faults over time", "seconds of work", "", {{"distinct", {}}, {"kept", {}}}, false};
  for (const TimelinePoint& point : timeline) {
    auto x = static_cast<double>(point.iterations);
    coverage.percent = point.coverable > 0;
    coverage.series[0].points.emplace_back(x, point.coverage());
    double counts[] = {static_cast<double>(point.faults), static_cast<double>(point.distinct_faults),
                       static_cast<double>(point.kept_faults)};
    for (std::size_t i = 0; i < 3; ++i) faults.series[i].points.emplace_back(x, counts[i]);
    for (std::size_t i = 0; i < 2; ++i) times.series[i].points.emplace_back(point.seconds, counts[i + 1]);
  }
  bool measured = std::any_of(timeline.begin(), timeline.end(), [](const TimelinePoint& p) { return p.covered > 0; });
  std::string result;
  for (const PlotPanel& panel : measured ? std::vector{coverage, faults, times} : std::vector{faults, times})
    result += "<div>" + plot_svg({panel}, 1) + "</div>";
  return result;
}

json notes(const Page& page, const Gallery& gallery) {
  json all = json::array();
  if (page.faults == 0) all.push_back("No fault was found.");
  if (page.shown < page.faults) {
    std::string which =
        gallery.shown_distinct < gallery.distinct
            ? fmt::format("{} of the {} distinct ones, taken evenly from all of them",
                          format_count(gallery.shown_distinct), format_count(gallery.distinct))
            : fmt::format("all {} distinct ones and the first {} repetitions", format_count(gallery.distinct),
                          format_count(gallery.shown - gallery.shown_distinct));
    all.push_back(fmt::format("The gallery has {} of {} faults: {}. The figures, bars and the heat map count all.",
                              format_count(page.shown), format_count(page.faults), which));
  }
  if (!page.bad.empty()) {
    std::string text =
        fmt::format("{} faults have no picture: ", format_count(static_cast<std::int64_t>(page.bad.size())));
    for (std::size_t i = 0; i < std::min(kMostNotedFiles, page.bad.size()); ++i)
      text += (i > 0 ? "; " : "") + shown(page.bad[i]);
    all.push_back(text + (page.bad.size() > kMostNotedFiles ? "; ..." : "."));
  }
  return all;
}

// One pass, so that what is put in is not looked at again.
std::string fill(std::string_view form, const std::map<std::string, std::string, std::less<>>& values) {
  std::string result;
  while (!form.empty()) {
    std::size_t mark = form.find('%');
    std::size_t end = mark == std::string_view::npos ? mark : form.find('%', mark + 1);
    result += form.substr(0, mark);
    if (end == std::string_view::npos) {
      if (mark != std::string_view::npos) result += form.substr(mark);
      break;
    }
    auto value = values.find(form.substr(mark + 1, end - mark - 1));
    if (value == values.end()) {
      result += '%';
      form.remove_prefix(mark + 1);
    } else {
      result += value->second;
      form.remove_prefix(end + 1);
    }
  }
  return result;
}

std::string sheet_elements(const char* kind, const std::vector<std::string>& sheets) {
  std::string result;
  for (std::size_t i = 0; i < sheets.size(); ++i)
    result += fmt::format("<script type=\"text/plain\" id=\"{}{}\" data-type=\"{}\">{}</script>\n", kind, i,
                          SheetMaker::type(), sheets[i]);
  return result;
}

}  // namespace

Page make_page(const CampaignReader& reader, const PageOptions& options) {
  if (options.most < 0) bad_usage("a page cannot show {} faults", options.most);
  Page page;
  CampaignSummary summary = summarise(reader);
  const CampaignRecord& record = reader.record();
  page.faults = summary.counters.faults;
  json data;
  std::string name = std::filesystem::absolute(reader.folder()).lexically_normal().filename().string();
  if (name.empty())
    name = std::filesystem::absolute(reader.folder()).lexically_normal().parent_path().filename().string();
  data["title"] = shown(name);
  data["subtitle"] = shown(fmt::format("{} on {}, guide {}, mutators {}, seed {}",
                                       std::filesystem::path(record.model).filename().string(), record.data,
                                       record.settings.guide, record.settings.mutators, record.settings.seed));
  data["figures"] = figures(reader, summary);
  data["settings"] = settings(reader, summary);
  data["mutators"] = yields(reader.mutators());
  data["byClass"] = yields(reader.by_class());
  data["classCount"] = reader.classes();
  data["classes"] = json::array();
  for (std::int64_t c = 0; c < reader.classes(); ++c) data["classes"].push_back(shown(reader.class_name(c)));
  data["notANumber"] = {{"verdict", kNotANumber}, {"name", kNotANumberName}};
  data["confusion"] = json::array();
  for (const ConfusionRecord& cell : reader.confusion())
    data["confusion"].push_back({cell.label, cell.predicted, cell.faults});
  Gallery gallery = make_gallery(reader, options.most, data);
  page.shown = gallery.shown;
  page.images = gallery.images;
  page.bad = gallery.bad;
  data["notes"] = notes(page, gallery);

  std::map<std::string, std::string, std::less<>> values = {
      {"TITLE", escape_markup(shown(name) + " - galvani report")},
      {"CSS", page_parts::page_css},
      {"JS", page_parts::page_js},
      {"PLOTS", plots(reader)},
      {"SHEETS", sheet_elements("s", gallery.seed_sheets) + sheet_elements("m", gallery.fault_sheets)},
      {"DATA", ""}};
  std::size_t size = fill(page_parts::page_html, values).size() + script_json(data).size();
  data["footer"] = fmt::format(
      "This page is one file of {}: {} faults, {} different images{}. Made by Galvani {} from {}. It loads nothing "
      "from "
      "anywhere.",
      format_bytes(size), format_count(page.shown), format_count(page.images),
      gallery.reduced ? fmt::format(", reduced to {} x {} pixels", data["tile"]["width"].get<int>(),
                                    data["tile"]["height"].get<int>())
                      : "",
      GALVANI_VERSION, shown(reader.folder().string()));
  values["DATA"] = script_json(data);
  page.html = fill(page_parts::page_html, values);
  return page;
}

}  // namespace galvani
