// Ranks the inputs of a pool by one or more selectors. The pool is read piece by piece, at most twice, and never held.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "galvani/data/view.h"
#include "galvani/select/selector.h"

namespace galvani {

// What is done about inputs that are exact copies of others in the pool: the second label of one image is worth
// nothing.
enum class PoolCopies {
  ignored,   // not looked for
  refused,   // Error(bad_input) that counts and names them
  left_out,  // of those that are alike one is picked at most, so there may be fewer picks
};

struct SelectRequest {
  std::vector<Spec> by;
  std::vector<std::int64_t> budgets;  // how many inputs are to be picked; each from 1 to the size of the pool
  const DataView* train = nullptr;
  const DataView* originals = nullptr;  // as many as in the pool, in its order
  bool diverse = false;                 // picks of every selector are made diverse
  PoolCopies copies = PoolCopies::ignored;
  std::uint64_t seed = 0;
};

// Where the time went, in seconds.
struct SelectTimes {
  double training = 0;  // passes over the training data
  double passes = 0;    // through the network: the pool, its sample, mutants, originals
  double mutating = 0;
  double again = 0;   // the best ones, once more
  double sample = 0;  // of passes and mutating: what was for the sample
};

struct Selected {
  std::string id;
  std::string spec;
  Ranking ranking;
  std::vector<std::vector<std::int64_t>> picks;  // one list for every budget, in order of preference
  std::vector<std::string> notes;
  double seconds = 0;  // of its own, shared passes apart
  std::int64_t unscored = 0;
  bool random = false;  // it depends on the seed
};

struct Selection {
  at::Tensor predicted;   // [N] int64: verdicts
  at::Tensor confidence;  // [N] float
  std::vector<Selected> by;
  SelectTimes times;
  std::vector<std::pair<std::int64_t, std::int64_t>> copies;  // an input and the first that it is a copy of
};

Selection select_from(Network& network, const DataView& pool, const SelectRequest& request);

// "2 of the 31 inputs are exact copies of others: b.png is a.png, ...": the first few by name.
std::string copies_text(const DataView& pool, const std::vector<std::pair<std::int64_t, std::int64_t>>& copies);

}  // namespace galvani
