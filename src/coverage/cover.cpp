#include "galvani/coverage/cover.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "galvani/base/error.h"
#include "galvani/base/options.h"

namespace galvani {
namespace {

using CriterionList = std::vector<std::unique_ptr<Criterion>>;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void check_minimisable(const CriterionList& criteria) {
  for (const auto& criterion : criteria) {
    if (!criterion->traits().gainers_suffice)
      bad_usage("--minimise cannot keep the coverage of {}: every input counts in it, also one that covers nothing new",
                criterion->spec());
  }
}

// Every class has criteria of its own, given rows of that class alone.
void add_by_class(const Labelled& data, const Traces& traces, std::int64_t first, CoverResult& result) {
  bool labelled = data.labelled();
  std::map<std::int64_t, std::vector<std::int64_t>> rows;
  for (std::int64_t i = 0; i < traces.size(); ++i) {
    auto label = labelled ? data.labels[first + i].item<std::int64_t>() : traces.predicted[i].item<std::int64_t>();
    rows[label].push_back(i);
  }
  for (const auto& [label, members] : rows) {
    CriterionList& criteria = result.by_class[label];
    if (criteria.empty()) {
      for (const auto& criterion : result.measurement.criteria()) criteria.push_back(criterion->fresh());
    }
    Traces own = rows_of(traces, members);
    for (const auto& criterion : criteria) criterion->add(own);
  }
}

// The name of each criterion, or its spec where a name occurs twice.
std::vector<std::string> short_names(const std::vector<std::string>& ids, const std::vector<std::string>& specs) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ids.size(); ++i)
    names.push_back(std::count(ids.begin(), ids.end(), ids[i]) > 1 ? specs[i] : ids[i]);
  return names;
}

std::vector<std::string> short_names(const std::string& list) {
  std::vector<std::string> ids, specs;
  for (const Spec& spec : Spec::parse_list(list)) {
    ids.push_back(spec.name);
    specs.push_back(criteria().options(spec).str());
  }
  return short_names(ids, specs);
}

Figures difference_figures(const std::vector<std::string>& names, const std::vector<CoverDifference>& differences) {
  Figures figures;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const CoverDifference& d = differences[i];
    figures.emplace_back(names[i] + "-a", d.a.score());
    figures.emplace_back(names[i] + "-b", d.b.score());
    figures.emplace_back(names[i] + "-together", d.together.score());
    figures.emplace_back(names[i] + "-adds", d.together.score() - d.a.score());
  }
  return figures;
}

}  // namespace

std::vector<std::int64_t> CoverResult::smallest() const {
  std::vector<std::int64_t> kept;
  for (const KeptInput& input : galvani::minimise(features)) kept.push_back(input.input);
  for (std::size_t i = 0; i < measurement.criteria().size(); ++i) {
    if (measurement.criteria()[i]->covered_features() != nullptr) continue;
    std::vector<std::int64_t> gainers = measurement.gainers(i);
    kept.insert(kept.end(), gainers.begin(), gainers.end());
  }
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

CoverResult measure_coverage(Tracer& tracer, const DataView& data, const CoverRequest& request) {
  CriterionList criteria = make_criteria(request.criteria, {tracer.layout(), request.profile});
  if (request.minimise) check_minimisable(criteria);
  for (const auto& state : request.states) merge_states(state, criteria, tracer.layout());
  CoverResult result{Measurement(std::move(criteria))};
  result.inputs = data.size();
  tracer.need(result.measurement.needs());
  auto start = std::chrono::steady_clock::now();
  double in_sink = 0;
  tracer.stream(data, "covering", [&](const Traces& traces, std::int64_t first) {
    auto now = std::chrono::steady_clock::now();
    result.measurement.add(traces);
    result.dropped += std::count(traces.usable.begin(), traces.usable.end(), 0);
    if (request.by_class) add_by_class(data, traces, first, result);
    if (request.minimise) {
      Features found;
      for (std::size_t i = 0; i < result.measurement.criteria().size(); ++i) {
        if (result.measurement.criteria()[i]->features(traces, found)) result.features.add(first, found, i);
      }
    }
    in_sink += seconds_since(now);
  });
  result.forward_seconds = seconds_since(start) - in_sink;
  return result;
}

std::vector<CoverDifference> compare_coverage(const CoverResult& a, const CoverResult& b) {
  std::vector<CoverDifference> differences;
  for (std::size_t i = 0; i < a.measurement.criteria().size(); ++i) {
    const Criterion& in_a = *a.measurement.criteria()[i];
    const Criterion& in_b = *b.measurement.criteria()[i];
    auto together = in_a.fresh();
    together->merge(in_a);
    together->merge(in_b);
    CoverDifference d{in_a.id(), in_a.spec(), in_a.covered(), in_b.covered(), together->covered(), {}, {}};
    if (in_a.covered_features() != nullptr) {
      d.only_a = in_a.covered_features()->count_missing_from(*in_b.covered_features());
      d.only_b = in_b.covered_features()->count_missing_from(*in_a.covered_features());
    }
    differences.push_back(std::move(d));
  }
  return differences;
}

std::vector<std::string> cover_figure_names(const std::string& criteria) {
  std::vector<std::string> names = {"inputs", "dropped"};
  for (std::string& name : short_names(criteria)) names.push_back(std::move(name));
  return names;
}

Figures figures_of(const CoverResult& result) {
  std::vector<std::string> ids, specs;
  for (const auto& criterion : result.measurement.criteria()) {
    ids.push_back(criterion->id());
    specs.push_back(criterion->spec());
  }
  Figures figures = {{"inputs", static_cast<double>(result.inputs)}, {"dropped", static_cast<double>(result.dropped)}};
  std::vector<std::string> names = short_names(ids, specs);
  for (std::size_t i = 0; i < names.size(); ++i)
    figures.emplace_back(names[i], result.measurement.criteria()[i]->score());
  return figures;
}

std::vector<std::string> difference_figure_names(const std::string& criteria) {
  std::vector<std::string> names = short_names(criteria);
  return names_of(difference_figures(names, std::vector<CoverDifference>(names.size())));
}

Figures figures_of(const std::vector<CoverDifference>& differences) {
  std::vector<std::string> ids, specs;
  for (const CoverDifference& d : differences) {
    ids.push_back(d.id);
    specs.push_back(d.spec);
  }
  return difference_figures(short_names(ids, specs), differences);
}

}  // namespace galvani
