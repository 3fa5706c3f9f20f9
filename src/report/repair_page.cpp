#include "galvani/report/repair_page.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"
#include "report/section.h"
#include "report/sprites.h"

namespace galvani {
namespace {

constexpr std::size_t kMostPictures = 200;

constexpr const char* kStyle =
    "table{border-collapse:collapse;background:var(--card);font-variant-numeric:tabular-nums}"
    "th,td{padding:4px 12px;border-bottom:1px solid var(--line);text-align:right}"
    "th:first-child,td:first-child,th.l,td.l{text-align:left}td.b{font-weight:700}"
    "ul{list-style:none;display:flex;flex-wrap:wrap;gap:10px;padding:0}li{width:112px;font-size:12px;overflow-wrap:"
    "anywhere}"
    "li img{width:112px;height:112px;object-fit:contain;image-rendering:pixelated;background:#888;display:block}";

std::string shown(const std::string& text) {
  return escape_markup(page_text(text));
}

std::string share(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.2f}%", value * 100);
}

std::string cell(const std::string& text, const char* kind = "") {
  return fmt::format("<td class=\"{}\">{}</td>", kind, text);
}

std::string sets_table(const RepairResult& result) {
  std::string html = "<table><tr><th>accuracy on</th><th class=\"l\">from</th><th>inputs</th>";
  for (const std::string& network : result.networks) html += fmt::format("<th>{}</th>", shown(network));
  html += "</tr>\n";
  for (const MeasuredSet& set : result.sets) {
    html += "<tr>" + cell(to_string(set.kind)) + cell(shown(set.name), "l") + cell(format_count(set.inputs()));
    for (std::size_t i = 0; i < set.verdicts.size(); ++i)
      html += cell(share(set.verdicts[i].accuracy()), i == result.after() ? "b" : "");
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string rounds_table(const RepairResult& result) {
  std::string html =
      "<table><tr><th>round</th><th>mutants</th><th>wrong</th><th>coverage-improving</th><th>kept</th>"
      "<th>coverage</th><th>with them</th><th>clean</th><th>held out</th></tr>\n";
  for (std::size_t i = 0; i < result.rounds.size(); ++i) {
    const RepairRound& round = result.rounds[i];
    html += "<tr>" + cell(fmt::format("{}", i + 1)) + cell(format_count(round.candidates)) +
            cell(format_count(round.wrong)) + cell(format_count(round.improving)) + cell(format_count(round.kept)) +
            cell(share(round.coverage_before)) + cell(share(round.coverage_after)) + cell(share(round.clean)) +
            cell(share(round.held_out)) + "</tr>\n";
  }
  return html + "</table>\n";
}

std::string classes_table(const RepairResult& result) {
  std::string html = "<table><tr><th>class</th><th>inputs</th><th>mended</th><th>broken</th></tr>\n";
  std::vector<ClassChange> classes = result.by_class();
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (classes[c].mended + classes[c].broken == 0) continue;
    html += "<tr>" + cell(shown(verdict_name(*result.network, result.clean, static_cast<std::int64_t>(c)))) +
            cell(format_count(classes[c].inputs)) + cell(format_count(classes[c].mended)) +
            cell(format_count(classes[c].broken)) + "</tr>\n";
  }
  return html + "</table>\n";
}

std::string pictures(const RepairResult& result, const std::vector<std::int64_t>& rows) {
  const auto* labels = result.clean.labels.data_ptr<std::int64_t>();
  const auto* said = result.sets[0].verdicts.back().predicted.data_ptr<std::int64_t>();
  std::string html = "<ul>\n";
  for (std::size_t i = 0; i < std::min(rows.size(), kMostPictures); ++i) {
    std::int64_t row = rows[i];
    html += fmt::format("<li><img alt=\"\" src=\"data:image/png;base64,{}\">{}: {} → {}</li>\n",
                        base64(result.clean.type().encode(result.clean.images[row])), shown(result.input_name(row)),
                        shown(verdict_name(*result.network, result.clean, labels[row])),
                        shown(verdict_name(*result.network, result.clean, said[row])));
  }
  return html + "</ul>\n";
}

std::string section(const std::string& title, const std::string& hint, const std::string& content) {
  return fmt::format("<section><h2>{}</h2><p class=\"hint\">{}</p>\n{}</section>\n", title, hint, content);
}

}  // namespace

std::string repair_page(const RepairResult& result, const RepairSubject& subject) {
  std::vector<std::int64_t> broken = result.broken();
  std::string body = section("Before and after",
                             "a control had the same number of steps without the tests; what it gains is not due to "
                             "them",
                             sets_table(result));
  if (result.clean_left_out > 0)
    body += fmt::format(
        "<p class=\"note\">{} images of the clean data are left out: tests that were trained on were "
        "made of them.</p>\n",
        format_count(result.clean_left_out));
  if (!result.rounds.empty())
    body +=
        section("Rounds", "coverage of the training data in the network that a round began with", rounds_table(result));
  body += section("Clean data by class",
                  fmt::format("{} inputs are right that were wrong, {} are wrong that were right",
                              format_count(static_cast<std::int64_t>(result.mended().size())),
                              format_count(static_cast<std::int64_t>(broken.size()))),
                  classes_table(result));
  if (!broken.empty())
    body += section("Broken anew",
                    broken.size() > kMostPictures ? fmt::format("the first {}", kMostPictures)
                                                  : std::string("clean inputs that were right before"),
                    pictures(result, broken));
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
      "'unsafe-inline'\">\n<title>{} - galvani repair</title>\n<style>\n{}{}\n</style>\n</head>\n<body>\n<header><div "
      "class=\"wide\"><p class=\"brand\">galvani <span>repair</span></p>\n<h1>{}</h1>\n<p id=\"subtitle\">{} repaired "
      "with {}</p></div></header>\n<main class=\"wide\">\n{}</main>\n</body>\n</html>\n",
      shown(subject.output), page_part("page.css"), kStyle, shown(subject.output), shown(subject.model),
      shown(subject.how), body);
}

}  // namespace galvani
