#include "select_picks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"
#include "select_evaluate.h"

namespace galvani::cli {
namespace {

constexpr std::size_t kShownPicks = 20;

std::string score_text(double score) {
  return std::isnan(score) ? "" : std::isinf(score) ? "inf" : fmt::format("{:.6g}", score);
}

}  // namespace

Pick Picks::at(std::size_t selector, std::size_t i) const {
  const Selected& selected = selection_.by[selector];
  std::int64_t row = selected.picks[0][i];
  std::int64_t predicted = selection_.predicted.data_ptr<std::int64_t>()[row];
  return {static_cast<std::int64_t>(i) + 1,
          row,
          pool_.file(row),
          selected.ranking.scores[static_cast<std::size_t>(row)],
          predicted,
          verdict_name(network_, pool_, predicted),
          static_cast<double>(selection_.confidence.data_ptr<float>()[row])};
}

std::string PickTable::header() const {
  return std::string("selector,rank,index,file,score,predicted,name,confidence,label,pool") +
         (reasons_ != nullptr ? ",second,second_confidence,against,against_name,layer,neuron,change" : "");
}

std::string PickTable::before(const std::string& selector, const Pick& pick) const {
  return fmt::format("{},{},{},{},{},{},{},{:.6g},", csv_cell(selector), pick.rank, pick.row, csv_cell(pick.file),
                     score_text(pick.score), pick.predicted, csv_cell(pick.name), pick.confidence);
}

std::string PickTable::after(const Pick& pick) const {
  std::string text = "," + csv_cell(spec_);
  if (reasons_ == nullptr) return text;
  const PickReason& reason = reasons_->picks[static_cast<std::size_t>(pick.rank) - 1];
  text += fmt::format(",{},{:.6g},", reason.second < 0 ? "" : csv_cell(name_of(reason.second)), reason.confidence);
  if (reason.against.empty()) return text + ",,,,";
  return text + fmt::format("{},{},{},{},{:.4g}", csv_cell(reason.against), csv_cell(name_of(reason.verdict)),
                            csv_cell(reason.tap), reason.neuron, reason.change);
}

std::vector<std::string> PickTable::sentences(const Pick& pick) const {
  std::vector<std::string> lines = {fmt::format("{} ({:.1f}%)", pick.name, pick.confidence * 100)};
  if (reasons_ == nullptr) return lines;
  const PickReason& reason = reasons_->picks[static_cast<std::size_t>(pick.rank) - 1];
  if (reason.second >= 0)
    lines.push_back(fmt::format("or {} ({:.1f}%)", name_of(reason.second), reason.confidence * 100));
  if (reason.against.empty()) return lines;
  lines.push_back(fmt::format("{} {}: {}", reason.against == "original" ? "its" : "after", reason.against,
                              name_of(reason.verdict)));
  lines.push_back(fmt::format("most changed: neuron {} of {}", reason.neuron, reason.tap));
  return lines;
}

std::string PickTable::name_of(std::int64_t verdict) const {
  return verdict_name(network_, pool_, verdict);
}

Json picks_json(const Picks& picks, const Selection& selection, const std::vector<std::string>& names) {
  Json all = Json::array();
  for (std::size_t s = 0; s < names.size(); ++s) {
    const Selected& selected = selection.by[s];
    Json rows = Json::array();
    for (std::size_t i = 0; i < picks.size(s); ++i) {
      Pick pick = picks.at(s, i);
      Json row = {{"rank", pick.rank},
                  {"index", pick.row},
                  {"score", std::isfinite(pick.score) ? Json(pick.score) : Json()},
                  {"predicted", pick.predicted},
                  {"name", pick.name},
                  {"confidence", pick.confidence}};
      if (!pick.file.empty()) row["file"] = pick.file;
      rows.push_back(std::move(row));
    }
    all.push_back({{"name", names[s]},
                   {"spec", selected.spec},
                   {"seconds", selected.seconds},
                   {"unscored", selected.unscored},
                   {"notes", selected.notes},
                   {"picks", rows}});
  }
  return all;
}

Json reasons_json(const SelectionReasons& reasons) {
  Json layers = Json::array(), picks = Json::array();
  for (const LayerChange& layer : reasons.layers)
    layers.push_back({{"tap", layer.tap}, {"change", layer.change}, {"neuron", layer.neuron}, {"most", layer.most}});
  for (const PickReason& reason : reasons.picks) {
    Json pick = {{"index", reason.row}, {"second", reason.second}, {"second_confidence", reason.confidence}};
    if (!reason.against.empty()) {
      pick["against"] = reason.against;
      pick["verdict"] = reason.verdict;
      pick["tap"] = reason.tap;
      pick["neuron"] = reason.neuron;
      pick["change"] = reason.change;
    }
    picks.push_back(std::move(pick));
  }
  return {{"layers", layers}, {"picks", picks}};
}

void print_picks(const Picks& picks, const Selection& selection, const std::vector<std::string>& names,
                 const DataView& pool) {
  for (std::size_t s = 0; s < names.size(); ++s) {
    say("{} of {} {} by {}\n", format_count(static_cast<std::int64_t>(picks.size(s))), format_count(pool.size()),
        pool.type().noun(), names[s]);
    Table table({">rank", pool.files.empty() ? ">index" : "file", ">score", "predicted", ">confidence"});
    for (std::size_t i = 0; i < std::min(picks.size(s), kShownPicks); ++i) {
      Pick pick = picks.at(s, i);
      table.add({std::to_string(pick.rank), pick.file.empty() ? std::to_string(pick.row) : printable(pick.file),
                 score_text(pick.score), pick.name, fmt::format("{:.1f}%", pick.confidence * 100)});
    }
    say("{}", table.str());
    if (picks.size(s) > kShownPicks)
      say("and {} more\n", format_count(static_cast<std::int64_t>(picks.size(s) - kShownPicks)));
    const Selected& selected = selection.by[s];
    if (selected.unscored > 0) say("{} inputs could not be scored and come last\n", format_count(selected.unscored));
    for (const std::string& note : selected.notes) say("{}\n", note);
    say("\n");
  }
  say("{}\n", times_text(selection.times));
}

void print_reasons(const SelectionReasons& reasons, const Picks& picks, const PickTable& table) {
  if (!reasons.layers.empty()) {
    Table layers({"layer", ">change", ">most sensitive neuron", ">its change"});
    for (const LayerChange& layer : reasons.layers)
      layers.add({layer.tap, fmt::format("{:.3f}", layer.change), std::to_string(layer.neuron),
                  fmt::format("{:.3f}", layer.most)});
    say("{}changes over the picks, in standard deviations of the layer's neurons\n\n", layers.str());
  }
  Table each({">rank", "verdict", "why"});
  for (std::size_t i = 0; i < std::min(picks.size(0), kShownPicks); ++i) {
    std::vector<std::string> lines = table.sentences(picks.at(0, i));
    std::string rest;
    for (std::size_t at = 1; at < lines.size(); ++at) rest += (at == 1 ? "" : "; ") + lines[at];
    each.add({std::to_string(i + 1), lines[0], rest});
  }
  say("{}\n", each.str());
}

Json copies_json(const Selection& selection, const DataView& pool) {
  Json all = Json::array();
  for (auto [later, earlier] : selection.copies) {
    Json one = {{"index", later}, {"of", earlier}};
    if (!pool.file(later).empty()) {
      one["file"] = pool.file(later);
      one["of_file"] = pool.file(earlier);
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace galvani::cli
