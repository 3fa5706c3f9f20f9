// How good a selection was, once labels are known.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/select/select.h"

namespace galvani {

// What is wrong with each input of a pool: 0 if it is classified as its label says, else a number that stands for the
// pair (label, verdict), its fault type. [N]
std::vector<std::int64_t> fault_types(const at::Tensor& labels, const at::Tensor& predicted);

struct PickFigures {
  std::int64_t picks = 0;
  std::int64_t faults = 0;  // among the picks
  std::int64_t types = 0;   // different ones
  double fdr = 0;           // fault detection rate: faults / picks
  // Area under the curve of fault types found, as a share of the area under the best curve there can be: a new type
  // with every pick until there is none left in the pool.
  double rauc = 0;
};

// `types` as fault_types gives them, of the whole pool.
PickFigures measure_picks(const std::vector<std::int64_t>& types, const std::vector<std::int64_t>& picks);
// Different fault types found after 1, 2, ... picks.
std::vector<std::int64_t> type_curve(const std::vector<std::int64_t>& types, const std::vector<std::int64_t>& picks);

// Average percentage of faults detected by an order of the whole pool: 1 - Σ TF_i / (n m) + 1 / (2n). NaN where
// there are no faults.
struct Apfd {
  double faults = 0;  // every wrong input is a fault of its own
  double types = 0;   // a fault is a type, found by the first input that shows it
};
Apfd measure_apfd(const std::vector<std::int64_t>& types, const std::vector<std::int64_t>& order);

struct SelectorRun {
  std::uint64_t seed = 0;
  std::vector<PickFigures> at;  // one for every budget
  Apfd apfd;                    // of the ranking of the whole pool
  double seconds = 0;           // of its own, shared passes apart
};

struct SelectorFigures {
  std::string id;
  std::string spec;
  std::vector<std::string> notes;
  std::vector<SelectorRun> runs;            // one where the seed does not matter
  std::vector<std::int64_t> faults, types;  // found after 1, 2, ... picks of the largest budget, in the first run
};

struct PoolEvaluation {
  std::vector<std::int64_t> budgets;
  std::int64_t inputs = 0;
  std::int64_t faults = 0;  // in the whole pool
  std::int64_t types = 0;
  std::vector<SelectorFigures> by;
  SelectTimes times;  // of the first run
};

// Every selector of the request over a pool with labels; those that are random once for each of so many seeds, from the
// request's on. Error(bad_input) unless every input has a label.
PoolEvaluation evaluate_selectors(Network& network, const DataView& pool, const SelectRequest& request,
                                  std::int64_t repeats);

}  // namespace galvani
