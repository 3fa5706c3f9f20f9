// Do tests that break one model break others? Every set of tests against every model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/base/gate.h"
#include "galvani/base/json.h"
#include "galvani/model/network.h"
#include "galvani/quality/tests.h"

namespace galvani {

// One set of tests on one model.
struct TransferCell {
  std::int64_t tests = 0;
  std::int64_t right = 0;                     // tests whose original the model gets right
  std::int64_t broken = 0;                    // of those, tests that it gets wrong
  std::int64_t wrong = 0;                     // tests that it gets wrong, whatever it makes of the original
  bool own = false;                           // the tests were found with this model
  std::vector<std::int64_t> broken_ids = {};  // which they are: TestSet::id

  double rate() const;  // broken / right; not a number if nothing is right
};

// One set of tests: a row of the matrix.
struct TransferSource {
  std::string name;          // for people
  std::string model_sha256;  // of the model they were found with; empty: unknown
  const TestSet* tests = nullptr;
};

struct TransferRow {
  std::string name;
  std::vector<TransferCell> cells;  // one a model
};
struct Transfer {
  std::vector<std::string> models;
  std::vector<TransferRow> rows;

  double mean() const;     // rate over all cells that are not their own; not a number if there is none
  double highest() const;  // of those
};

// At most `most` tests of each set, drawn at random; 0: all. Verdicts are as `predict` gives them. Error(bad_input)
// naming the model if it does not take the tests. With a progress bar; Ctrl-C is honoured.
Transfer measure_transfer(const std::vector<TransferSource>& sources, const std::vector<Network*>& models,
                          std::int64_t most, std::uint64_t seed);

Figures figures_of(const Transfer& transfer);
Json as_json(const Transfer& transfer);
// A heat map: rows are tests, columns models, colours rates.
std::string transfer_svg(const Transfer& transfer);

}  // namespace galvani
