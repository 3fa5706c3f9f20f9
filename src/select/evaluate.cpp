#include "galvani/select/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "galvani/base/error.h"
#include "galvani/model/evaluate.h"

namespace galvani {

std::vector<std::int64_t> fault_types(const at::Tensor& labels, const at::Tensor& predicted) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> numbers;
  std::vector<std::int64_t> types;
  at::Tensor truth = labels.contiguous(), said = predicted.contiguous();
  for (std::int64_t i = 0; i < truth.size(0); ++i) {
    std::int64_t label = truth.data_ptr<std::int64_t>()[i], verdict = said.data_ptr<std::int64_t>()[i];
    auto next = static_cast<std::int64_t>(numbers.size()) + 1;
    types.push_back(label == verdict ? 0 : numbers.try_emplace({label, verdict}, next).first->second);
  }
  return types;
}

std::vector<std::int64_t> type_curve(const std::vector<std::int64_t>& types, const std::vector<std::int64_t>& picks) {
  std::set<std::int64_t> found;
  std::vector<std::int64_t> curve;
  for (std::int64_t row : picks) {
    std::int64_t type = types.at(static_cast<std::size_t>(row));
    if (type != 0) found.insert(type);
    curve.push_back(static_cast<std::int64_t>(found.size()));
  }
  return curve;
}

PickFigures measure_picks(const std::vector<std::int64_t>& types, const std::vector<std::int64_t>& picks) {
  PickFigures figures;
  figures.picks = static_cast<std::int64_t>(picks.size());
  std::vector<std::int64_t> curve = type_curve(types, picks);
  std::int64_t all = types.empty() ? 0 : *std::max_element(types.begin(), types.end());
  double area = 0, best = 0;
  for (std::size_t i = 0; i < picks.size(); ++i) {
    figures.faults += types[static_cast<std::size_t>(picks[i])] != 0 ? 1 : 0;
    area += static_cast<double>(curve[i]);
    best += static_cast<double>(std::min<std::int64_t>(all, static_cast<std::int64_t>(i) + 1));
  }
  if (picks.empty()) return figures;
  figures.types = curve.back();
  figures.fdr = static_cast<double>(figures.faults) / static_cast<double>(figures.picks);
  figures.rauc = best > 0 ? area / best : 0;
  return figures;
}

Apfd measure_apfd(const std::vector<std::int64_t>& types, const std::vector<std::int64_t>& order) {
  auto n = static_cast<double>(order.size());
  std::set<std::int64_t> found;
  double faults = 0, fault_places = 0, type_places = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::int64_t type = types.at(static_cast<std::size_t>(order[i]));
    if (type == 0) continue;
    auto place = static_cast<double>(i + 1);
    faults += 1;
    fault_places += place;
    if (found.insert(type).second) type_places += place;
  }
  if (faults == 0) return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  return {1 - fault_places / (n * faults) + 1 / (2 * n),
          1 - type_places / (n * static_cast<double>(found.size())) + 1 / (2 * n)};
}

namespace {

SelectorRun figures_of_run(const Selected& selected, const std::vector<std::int64_t>& types, std::uint64_t seed) {
  SelectorRun run;
  run.seed = seed;
  run.seconds = selected.seconds;
  run.apfd = measure_apfd(types, selected.ranking.order);
  for (const auto& picks : selected.picks) run.at.push_back(measure_picks(types, picks));
  return run;
}

std::vector<std::int64_t> fault_curve(const std::vector<std::int64_t>& types, const std::vector<std::int64_t>& picks) {
  std::int64_t found = 0;
  std::vector<std::int64_t> curve;
  for (std::int64_t row : picks) {
    found += types[static_cast<std::size_t>(row)] != 0 ? 1 : 0;
    curve.push_back(found);
  }
  return curve;
}

}  // namespace

PoolEvaluation evaluate_selectors(Network& network, const DataView& pool, const SelectRequest& request,
                                  std::int64_t repeats) {
  if (!pool.labelled()) bad_input("{}: has inputs without a label, so a selection cannot be evaluated", pool.name);
  check_labels(network, pool);
  Selection first = select_from(network, pool, request);
  std::vector<std::int64_t> types = fault_types(pool.labels, first.predicted);
  PoolEvaluation result;
  result.budgets = request.budgets;
  result.inputs = pool.size();
  result.times = first.times;
  for (std::int64_t type : types) {
    result.faults += type != 0 ? 1 : 0;
    result.types = std::max(result.types, type);
  }
  auto largest = std::max_element(request.budgets.begin(), request.budgets.end()) - request.budgets.begin();
  std::vector<std::size_t> random;
  SelectRequest again = request;
  again.by.clear();
  for (std::size_t i = 0; i < first.by.size(); ++i) {
    const Selected& selected = first.by[i];
    SelectorFigures figures;
    figures.id = selected.id;
    figures.spec = selected.spec;
    figures.notes = selected.notes;
    figures.runs.push_back(figures_of_run(selected, types, request.seed));
    if (!selected.picks.empty()) {
      figures.faults = fault_curve(types, selected.picks[static_cast<std::size_t>(largest)]);
      figures.types = type_curve(types, selected.picks[static_cast<std::size_t>(largest)]);
    }
    result.by.push_back(std::move(figures));
    if (!selected.random) continue;
    random.push_back(i);
    again.by.push_back(request.by[i]);
  }
  for (std::int64_t repeat = 1; repeat < repeats && !random.empty(); ++repeat) {
    again.seed = request.seed + static_cast<std::uint64_t>(repeat);
    Selection more = select_from(network, pool, again);
    for (std::size_t i = 0; i < random.size(); ++i)
      result.by[random[i]].runs.push_back(figures_of_run(more.by[i], types, again.seed));
  }
  return result;
}

}  // namespace galvani
