#include "galvani/report/page.h"

#include <fmt/format.h>

#include "galvani/base/error.h"
#include "galvani/base/json.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/fuzz/summary.h"
#include "galvani/generate/generator.h"
#include "galvani/model/evaluate.h"
#include "report/section.h"

namespace galvani {
namespace {

constexpr std::size_t kMostText = 200;  // characters of a name from a file

// JSON inside a script element: no '<' means no way out of it.
std::string script_json(const Json& value) {
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

// One pass, so that what is put in is not looked at again.
std::string fill(std::string_view form, const Section::Places& values) {
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

std::string name_of(const CampaignReader& reader) {
  std::filesystem::path folder = std::filesystem::absolute(reader.folder()).lexically_normal();
  return (folder.filename().empty() ? folder.parent_path() : folder).filename().string();
}

// What several sections look at.
Json common_data(const CampaignReader& reader) {
  const CampaignRecord& record = reader.record();
  Json data;
  data["title"] = page_text(name_of(reader));
  std::string task = record.task() == Task::classes ? "" : fmt::format(", task {}", to_string(record.task()));
  if (!record.preprocess.tolerance.empty()) task += fmt::format(" (tolerance {})", record.preprocess.tolerance);
  data["subtitle"] = page_text(fmt::format(
      "{} on {}, guide {}, generator {}, seed {}{}", std::filesystem::path(record.model).filename().string(),
      record.data, record.settings.guide, short_generator(record.settings.generator), record.settings.seed, task));
  data["mutators"] = page_yields(reader.kinds());
  data["classCount"] = reader.classes();
  data["classes"] = Json::array();
  for (std::int64_t c = 0; c < reader.classes(); ++c) data["classes"].push_back(page_text(reader.class_name(c)));
  data["notANumber"] = {{"verdict", kNotANumber}, {"name", kNotANumberName}};
  data["confusion"] = Json::array();
  for (const ConfusionRecord& cell : reader.confusion())
    data["confusion"].push_back({cell.label, cell.predicted, cell.faults});
  return data;
}

}  // namespace

std::string page_text(const std::string& text) {
  return printable(text, kMostText);
}

Json page_yields(const std::vector<YieldRecord>& rows) {
  Json all = Json::array();
  std::int64_t label = 0;
  for (const YieldRecord& row : rows)
    all.push_back({{"name", page_text(row.name)},
                   {"label", label++},
                   {"mutants", row.mutants},
                   {"valid", row.valid},
                   {"faults", row.faults}});
  return all;
}

std::vector<std::unique_ptr<Section>> page_sections() {
  std::vector<std::unique_ptr<Section>> sections;
  for (auto* make : {make_summary_section, make_robustness_section, make_growth_section, make_confusion_section,
                     make_yields_section, make_reasons_section, make_quality_section, make_gallery_section})
    sections.push_back(make());
  return sections;
}

Page make_page(const CampaignReader& reader, const PageOptions& options) {
  if (options.most < 0) bad_usage("a page cannot show {} faults", options.most);
  CampaignSummary summary = summarise(reader);
  PageSubject subject{reader, summary, options};
  Page page;
  page.faults = summary.counters.faults;
  Json data = common_data(reader);
  std::string script(page_part("page.js"));
  Section::Places places = {{"TITLE", escape_markup(page_text(name_of(reader)) + " - galvani report")},
                            {"CSS", std::string(page_part("page.css"))},
                            {"SECTIONS", ""},
                            {"TAIL", ""},
                            {"DATA", ""}};
  for (const auto& section : page_sections()) {
    if (!section->applies(subject)) continue;
    Section::Places own = section->make(subject, data, page);
    places["SECTIONS"] += (places["SECTIONS"].empty() ? "" : "\n") + fill(page_part(section->name() + ".html"), own);
    places["TAIL"] += own["TAIL"];
    script += page_part(section->name() + ".js");
  }
  places["JS"] = script + "page.start();\n";
  std::string form(page_part("page.html"));
  std::size_t size = fill(form, places).size() + script_json(data).size();
  data["footer"] =
      fmt::format("This page is one file of {}: {}. Made by Galvani {} from {}. It loads nothing from anywhere.",
                  format_bytes(size), page.remarks, GALVANI_VERSION, page_text(reader.folder().string()));
  places["DATA"] = script_json(data);
  page.html = fill(form, places);
  return page;
}

}  // namespace galvani
