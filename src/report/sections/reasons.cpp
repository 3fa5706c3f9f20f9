// Of campaigns guided by decision paths: how alike mutants and originals are decided, and which reasons came and went.
#include <algorithm>
#include <array>
#include <map>
#include <variant>

#include "galvani/base/error.h"
#include "galvani/base/options.h"
#include "galvani/base/plot.h"
#include "report/section.h"

namespace galvani {
namespace {

constexpr std::size_t kBins = 40;
constexpr std::size_t kMostReasons = 12;

// What a guide said, by name; empty: nothing that can be read.
Json::Object said_by_guide(const MutantRecord& mutant) {
  if (mutant.metadata.empty()) return {};
  try {
    Json parsed = Json::parse(mutant.metadata);
    if (const auto* object = std::get_if<Json::Object>(&parsed.value())) return *object;
  } catch (const Error&) {
    // a damaged store; the rest can be shown
  }
  return {};
}

double number_of(const Json::Object& object, const std::string& name) {
  auto found = object.find(name);
  if (found == object.end()) return 1;
  if (const auto* real = std::get_if<double>(&found->second.value())) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&found->second.value())) return static_cast<double>(*whole);
  if (const auto* whole = std::get_if<std::uint64_t>(&found->second.value())) return static_cast<double>(*whole);
  return 1;
}

// "a; b; c"
void count_parts(const Json::Object& object, const std::string& name, std::map<std::string, std::int64_t>& counts) {
  auto found = object.find(name);
  if (found == object.end()) return;
  const auto* text = std::get_if<std::string>(&found->second.value());
  if (text == nullptr) return;
  for (std::size_t start = 0; start < text->size();) {
    std::size_t end = std::min(text->find("; ", start), text->size());
    ++counts[text->substr(start, end - start)];
    start = end + 2;
  }
}

Json most_frequent(const std::map<std::string, std::int64_t>& counts) {
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Json rows = Json::array();
  for (std::size_t i = 0; i < std::min(kMostReasons, sorted.size()); ++i) {
    Json row = Json::array();
    row.push_back(page_text(sorted[i].first));
    row.push_back(sorted[i].second);
    rows.push_back(row);
  }
  return rows;
}

class ReasonsSection : public Section {
 public:
  std::string name() const override { return "reasons"; }
  bool applies(const PageSubject& subject) const override {
    return Spec::parse(subject.reader.record().settings.guide).name == "nsgen";
  }

  Places make(const PageSubject& subject, Json& data, Page&) const override {
    std::array<std::int64_t, kBins> faults{}, others{};
    double least = 1;
    auto similarities = [&](const auto& visit) {
      subject.reader.for_each_fault({}, [&](const FaultRecord& fault) { visit(fault, true); });
      subject.reader.for_each_input([&](const InputRecord& input) {
        if (!input.fault) visit(input, false);
      });
    };
    similarities([&](const MutantRecord& mutant, bool) {
      least = std::min(least, number_of(said_by_guide(mutant), "similarity"));
    });
    least = std::min(least, 0.99);
    std::map<std::string, std::int64_t> came, went;
    similarities([&](const MutantRecord& mutant, bool fault) {
      Json::Object said = said_by_guide(mutant);
      if (said.empty()) return;
      double place = (number_of(said, "similarity") - least) / (1 - least) * static_cast<double>(kBins);
      auto bin = static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(kBins - 1)));
      ++(fault ? faults : others)[bin];
      if (!fault) return;
      count_parts(said, "came", came);
      count_parts(said, "went", went);
    });
    data["reasons"] = {{"came", most_frequent(came)}, {"went", most_frequent(went)}};
    PlotPanel panel{"Similarity of the reasons",
                    "similarity to the original's",
                    "mutants",
                    {{"faults", {}}, {"kept, no fault", {}}},
                    false};
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      double x = least + (1 - least) * (static_cast<double>(bin) + 0.5) / static_cast<double>(kBins);
      panel.series[0].points.emplace_back(x, static_cast<double>(faults[bin]));
      panel.series[1].points.emplace_back(x, static_cast<double>(others[bin]));
    }
    return {{"PLOT", plot_svg({panel}, 1)}};
  }
};

}  // namespace

std::unique_ptr<Section> make_reasons_section() {
  return std::make_unique<ReasonsSection>();
}

}  // namespace galvani
