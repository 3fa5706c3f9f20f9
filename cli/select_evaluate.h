// galvani select --evaluate: how good selectors are on a pool whose labels are known.
#pragma once

#include <string>
#include <vector>

#include "galvani/base/json.h"
#include "galvani/select/evaluate.h"
#include "gate_flags.h"
#include "verb.h"

namespace galvani::cli {

struct EvaluateOutputs {
  std::string csv;
  std::string plot;
};

// Shares of the pool, in percent, at which selectors are evaluated.
const std::vector<int>& evaluated_shares();
// Of a pool of n: how many inputs each of them is.
std::vector<std::int64_t> evaluated_budgets(std::int64_t n);

// Names of selectors as users tell them apart: what they wrote.
std::vector<std::string> selector_names(const std::vector<Spec>& by);
std::vector<std::string> evaluation_figure_names(const std::vector<Spec>& by);

void report_evaluation(Common& common, const PoolEvaluation& evaluation, const std::vector<Spec>& by,
                       const EvaluateOutputs& outputs, const Network& network, const std::string& data,
                       const GateFlags& gates);

// The same for every verb's end: where the time of a selection went.
Json times_json(const SelectTimes& times);
std::string times_text(const SelectTimes& times);

}  // namespace galvani::cli
