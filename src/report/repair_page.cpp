#include "galvani/report/repair_page.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/progress.h"
#include "galvani/model/evaluate.h"
#include "report/plain_page.h"

namespace galvani {
namespace {

constexpr std::size_t kMostPictures = 200;

std::string share(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.2f}%", value * 100);
}

std::string sets_table(const RepairResult& result) {
  std::string html = "<table><tr><th>accuracy on</th><th class=\"l\">from</th><th>inputs</th>";
  for (const std::string& network : result.networks) html += fmt::format("<th>{}</th>", page_markup(network));
  html += "</tr>\n";
  for (const MeasuredSet& set : result.sets) {
    html += "<tr>" + page_cell(to_string(set.kind)) + page_cell(page_markup(set.name), "l") +
            page_cell(format_count(set.inputs()));
    for (std::size_t i = 0; i < set.verdicts.size(); ++i)
      html += page_cell(share(set.verdicts[i].accuracy()), i == result.after() ? "b" : "");
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
    html += "<tr>" + page_cell(fmt::format("{}", i + 1)) + page_cell(format_count(round.candidates)) +
            page_cell(format_count(round.wrong)) + page_cell(format_count(round.improving)) +
            page_cell(format_count(round.kept)) + page_cell(share(round.coverage_before)) +
            page_cell(share(round.coverage_after)) + page_cell(share(round.clean)) + page_cell(share(round.held_out)) +
            "</tr>\n";
  }
  return html + "</table>\n";
}

std::string classes_table(const RepairResult& result) {
  std::string html = "<table><tr><th>class</th><th>inputs</th><th>mended</th><th>broken</th></tr>\n";
  std::vector<ClassChange> classes = result.by_class();
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (classes[c].mended + classes[c].broken == 0) continue;
    html += "<tr>" + page_cell(page_markup(verdict_name(*result.network, result.clean, static_cast<std::int64_t>(c)))) +
            page_cell(format_count(classes[c].inputs)) + page_cell(format_count(classes[c].mended)) +
            page_cell(format_count(classes[c].broken)) + "</tr>\n";
  }
  return html + "</table>\n";
}

std::string pictures(const RepairResult& result, const std::vector<std::int64_t>& rows) {
  const auto* labels = result.clean.labels.data_ptr<std::int64_t>();
  const auto* said = result.sets[0].verdicts.back().predicted.data_ptr<std::int64_t>();
  std::vector<PagePicture> all;
  for (std::size_t i = 0; i < std::min(rows.size(), kMostPictures); ++i) {
    std::int64_t row = rows[i];
    all.push_back(
        {result.clean.type().encode(result.clean.images[row]),
         fmt::format("{}: {} → {}", result.input_name(row), verdict_name(*result.network, result.clean, labels[row]),
                     verdict_name(*result.network, result.clean, said[row]))});
  }
  return page_pictures(all);
}

}  // namespace

std::string repair_page(const RepairResult& result, const RepairSubject& subject) {
  std::vector<std::int64_t> broken = result.broken();
  std::string body =
      page_section("Before and after",
                   "a control had the same number of steps without the tests; what it gains is not due to "
                   "them",
                   sets_table(result));
  if (result.clean_left_out > 0)
    body += fmt::format(
        "<p class=\"note\">{} images of the clean data are left out: tests that were trained on were "
        "made of them.</p>\n",
        format_count(result.clean_left_out));
  if (!result.rounds.empty())
    body += page_section("Rounds", "coverage of the training data in the network that a round began with",
                         rounds_table(result));
  body += page_section("Clean data by class",
                       fmt::format("{} inputs are right that were wrong, {} are wrong that were right",
                                   format_count(static_cast<std::int64_t>(result.mended().size())),
                                   format_count(static_cast<std::int64_t>(broken.size()))),
                       classes_table(result));
  if (!broken.empty())
    body += page_section("Broken anew",
                         broken.size() > kMostPictures ? fmt::format("the first {}", kMostPictures)
                                                       : std::string("clean inputs that were right before"),
                         pictures(result, broken));
  return plain_page("repair", subject.output, fmt::format("{} repaired with {}", subject.model, subject.how), body);
}

}  // namespace galvani
