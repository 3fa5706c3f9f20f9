#include "galvani/report/diff.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "galvani/base/error.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/data/image.h"
#include "galvani/data/picture.h"
#include "galvani/model/evaluate.h"
#include "galvani/quality/statistics.h"
#include "report/plain_page.h"

namespace galvani {
namespace {

constexpr std::size_t kMostPictures = 200;

// The old network's number of each of the new one's classes.
std::vector<std::int64_t> matched_classes(const Network& before, const Network& after) {
  std::int64_t classes = before.info().classes;
  if (after.info().classes != classes)
    bad_input("{} knows {}, {} knows {}: there is nothing to compare", before.info().path,
              counted(classes, "class", "classes"), after.info().path,
              counted(after.info().classes, "class", "classes"));
  const std::vector<std::string>& old_names = before.card().class_names;
  const std::vector<std::string>& new_names = after.card().class_names;
  std::vector<std::int64_t> result;
  for (std::int64_t c = 0; c < classes; ++c) {
    result.push_back(c);
    if (old_names.empty() || new_names.empty()) continue;
    const std::string& name = new_names[static_cast<std::size_t>(c)];
    auto same = std::find(old_names.begin(), old_names.end(), name);
    if (same == old_names.end())
      bad_input("{} has a class '{}' that {} does not know: there is nothing to compare", after.info().path,
                printable(name), before.info().path);
    result.back() = same - old_names.begin();
  }
  return result;
}

// Of every input. `numbers` of classes; empty: as they are.
DiffSide side_of(Network& network, const DataView& data, const std::vector<std::int64_t>& numbers,
                 const std::string& title) {
  check_fits(network, data.type().shape, data.name);
  DiffSide side{network.info().path, at::empty({data.size()}, at::kLong), at::empty({data.size()})};
  predict_stream(network, data, title, [&](const Predictions& predictions, std::int64_t first) {
    std::int64_t n = predictions.labels.size(0);
    side.predicted.narrow(0, first, n).copy_(predictions.labels);
    side.confidence.narrow(0, first, n).copy_(predictions.confidence);
  });
  auto* predicted = side.predicted.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < data.size() && !numbers.empty(); ++i) {
    if (predicted[i] != kNotANumber) predicted[i] = numbers[static_cast<std::size_t>(predicted[i])];
  }
  return side;
}

Flip flip_of(std::int64_t label, std::int64_t before, std::int64_t after) {
  if (before == after) return Flip::none;
  if (label < 0) return Flip::other;
  return before == label ? Flip::newly_wrong : after == label ? Flip::newly_right : Flip::other;
}

std::string percent(double share) {
  return fmt::format("{:.2f}%", share * 100);
}

std::string share_text(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "-";
  ShareInterval interval = wilson_interval(part, whole);
  return fmt::format("{} ({} to {})", percent(static_cast<double>(part) / static_cast<double>(whole)),
                     percent(interval.low), percent(interval.high));
}

std::string pictures(const Diff& diff, const DataView& data, std::vector<std::int64_t> rows) {
  if (rows.size() > kMostPictures) rows.resize(kMostPictures);
  at::Tensor samples = data.fetch(rows);
  std::vector<PagePicture> all;
  for (std::size_t i = 0; i < rows.size(); ++i)
    all.push_back({encode_png(picture_of(samples[static_cast<std::int64_t>(i)], data.type())), diff.line(rows[i])});
  return page_pictures(all);
}

std::string figures_table(const Diff& diff) {
  auto row = [](const std::string& name, const std::string& value) {
    return "<tr>" + page_cell(name) + page_cell(value, "l") + "</tr>\n";
  };
  std::int64_t n = diff.size();
  std::string html =
      "<table>" + row("inputs", format_count(n)) + row("same verdict", share_text(diff.count(Flip::none), n));
  if (diff.labelled > 0) {
    html += row("right before", share_text(diff.right(diff.before), diff.labelled)) +
            row("right after", share_text(diff.right(diff.after), diff.labelled)) +
            row("newly wrong", share_text(diff.count(Flip::newly_wrong), diff.labelled)) +
            row("newly right", share_text(diff.count(Flip::newly_right), diff.labelled)) +
            row("as many in each direction", fmt::format("p {:.3g} (sign test)", diff.p));
  }
  return html + row("other changes", format_count(diff.count(Flip::other))) + "</table>\n";
}

std::string classes_table(const Diff& diff) {
  std::string html =
      "<table><tr><th>class</th><th>inputs</th><th>right before</th><th>right after</th><th>newly wrong</th>"
      "<th>newly right</th></tr>\n";
  for (const ClassFlips& c : diff.by_class()) {
    html += "<tr>" + page_cell(page_markup(c.name)) + page_cell(format_count(c.inputs)) +
            page_cell(format_count(c.right_before)) + page_cell(format_count(c.right_after)) +
            page_cell(format_count(c.newly_wrong)) + page_cell(format_count(c.newly_right)) + "</tr>\n";
  }
  return html + "</table>\n";
}

}  // namespace

const char* to_string(Flip flip) {
  switch (flip) {
    case Flip::none:
      return "same";
    case Flip::newly_wrong:
      return "newly wrong";
    case Flip::newly_right:
      return "newly right";
    case Flip::other:
      break;
  }
  return "other";
}

std::int64_t Diff::count(Flip flip) const {
  return std::count(flips.begin(), flips.end(), flip);
}

std::int64_t Diff::right(const DiffSide& side) const {
  if (flips.empty()) return 0;
  return side.predicted.eq(labels).logical_and(labels.ge(0)).sum().item<std::int64_t>();
}

std::vector<std::int64_t> Diff::rows(Flip flip) const {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < size(); ++i) {
    if (flips[static_cast<std::size_t>(i)] == flip) result.push_back(i);
  }
  return result;
}

std::string Diff::verdict(std::int64_t predicted) const {
  return predicted == kNotANumber ? kNotANumberName : classes.at(static_cast<std::size_t>(predicted));
}

std::string Diff::line(std::int64_t row) const {
  auto side = [&](const DiffSide& of) {
    return fmt::format("{} ({:.2f})", verdict(of.predicted.data_ptr<std::int64_t>()[row]),
                       of.confidence.data_ptr<float>()[row]);
  };
  std::int64_t label = labels.data_ptr<std::int64_t>()[row];
  return fmt::format("{}: {}{} → {}", inputs[static_cast<std::size_t>(row)],
                     label < 0 ? "" : fmt::format("is {}, ", verdict(label)), side(before), side(after));
}

std::vector<ClassFlips> Diff::by_class() const {
  std::vector<ClassFlips> all;
  for (const std::string& name : classes) all.push_back({name});
  for (std::int64_t i = 0; i < size(); ++i) {
    std::int64_t label = labels.data_ptr<std::int64_t>()[i];
    if (label < 0) continue;
    ClassFlips& row = all.at(static_cast<std::size_t>(label));
    ++row.inputs;
    row.right_before += before.predicted.data_ptr<std::int64_t>()[i] == label ? 1 : 0;
    row.right_after += after.predicted.data_ptr<std::int64_t>()[i] == label ? 1 : 0;
    row.newly_wrong += flips[static_cast<std::size_t>(i)] == Flip::newly_wrong ? 1 : 0;
    row.newly_right += flips[static_cast<std::size_t>(i)] == Flip::newly_right ? 1 : 0;
  }
  all.erase(std::remove_if(all.begin(), all.end(), [](const ClassFlips& row) { return row.inputs == 0; }), all.end());
  return all;
}

Diff diff_networks(Network& before, const DataView& data_before, Network& after, const DataView& data_after) {
  std::vector<std::int64_t> numbers = matched_classes(before, after);
  if (data_before.size() != data_after.size())
    bad_input("{}: the two models take {} and {} of it", data_before.name, data_before.size(), data_after.size());
  check_labels(before, data_before);
  Diff diff;
  diff.data = data_before.name;
  diff.labels = data_before.labels.contiguous();
  for (std::int64_t c = 0; c < before.info().classes; ++c) diff.classes.push_back(verdict_name(before, data_before, c));
  for (std::int64_t i = 0; i < data_before.size(); ++i) {
    std::string file = data_before.file(i);
    diff.inputs.push_back(file.empty() ? std::to_string(i) : file);
  }
  diff.before = side_of(before, data_before, {}, "the old model");
  diff.after = side_of(after, data_after, numbers, "the new model");
  const auto* labels = diff.labels.data_ptr<std::int64_t>();
  std::vector<double> was, is;
  for (std::int64_t i = 0; i < data_before.size(); ++i) {
    std::int64_t old_one = diff.before.predicted.data_ptr<std::int64_t>()[i];
    std::int64_t new_one = diff.after.predicted.data_ptr<std::int64_t>()[i];
    diff.flips.push_back(flip_of(labels[i], old_one, new_one));
    if (labels[i] < 0) continue;
    ++diff.labelled;
    was.push_back(old_one == labels[i] ? 1 : 0);
    is.push_back(new_one == labels[i] ? 1 : 0);
  }
  // All differences have one size, so that Wilcoxon's test is the sign test.
  diff.p = wilcoxon(was, is).p;
  return diff;
}

Figures figures_of(const Diff& diff) {
  auto n = static_cast<double>(diff.size());
  Figures figures = {{"inputs", n}};
  auto add = [&](const std::string& name, std::int64_t number, double whole) {
    figures.emplace_back(name, static_cast<double>(number));
    figures.emplace_back(name + "%", whole > 0 ? static_cast<double>(number) / whole : 0);
  };
  add("flips", diff.size() - diff.count(Flip::none), n);
  figures.emplace_back("agreement", n > 0 ? static_cast<double>(diff.count(Flip::none)) / n : 1);
  if (diff.labelled == 0) return figures;
  auto labelled = static_cast<double>(diff.labelled);
  figures.emplace_back("accuracy-old", static_cast<double>(diff.right(diff.before)) / labelled);
  figures.emplace_back("accuracy-new", static_cast<double>(diff.right(diff.after)) / labelled);
  add("negative-flips", diff.count(Flip::newly_wrong), labelled);
  add("positive-flips", diff.count(Flip::newly_right), labelled);
  return figures;
}

std::string diff_csv(const Diff& diff) {
  std::string text = "input,label,old,old_name,old_confidence,new,new_name,new_confidence,flip\n";
  for (std::int64_t i = 0; i < diff.size(); ++i) {
    std::int64_t label = diff.labels.data_ptr<std::int64_t>()[i];
    text += fmt::format("{},{}", csv_name(diff.inputs[static_cast<std::size_t>(i)]),
                        label < 0 ? "" : std::to_string(label));
    for (const DiffSide* side : {&diff.before, &diff.after}) {
      std::int64_t predicted = side->predicted.data_ptr<std::int64_t>()[i];
      text += fmt::format(",{},{},{:.6g}", predicted, csv_name(diff.verdict(predicted)),
                          side->confidence.data_ptr<float>()[i]);
    }
    text += fmt::format(",{}\n", to_string(diff.flips[static_cast<std::size_t>(i)]));
  }
  return text;
}

std::string diff_page(const Diff& diff, const DataView& data) {
  std::string body = page_section("Both models", "shares with their 95% intervals", figures_table(diff));
  if (diff.labelled > 0) body += page_section("Classes", "of the labelled inputs", classes_table(diff));
  const std::pair<Flip, const char*> kinds[] = {
      {Flip::newly_wrong, "Newly wrong"}, {Flip::newly_right, "Newly right"}, {Flip::other, "Other changes"}};
  for (const auto& [flip, title] : kinds) {
    std::vector<std::int64_t> rows = diff.rows(flip);
    if (rows.empty()) continue;
    std::string hint = rows.size() > kMostPictures ? fmt::format("the first {} of {}", kMostPictures,
                                                                 format_count(static_cast<std::int64_t>(rows.size())))
                                                   : counted(static_cast<std::int64_t>(rows.size()), "input");
    body += page_section(title, hint, pictures(diff, data, rows));
  }
  return plain_page("diff", diff.after.model, fmt::format("compared with {} on {}", diff.before.model, diff.data),
                    body);
}

}  // namespace galvani
