// What inputs cover: one pass over data for all criteria, and two sets of inputs compared.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "galvani/base/gate.h"
#include "galvani/coverage/measure.h"
#include "galvani/coverage/minimise.h"
#include "galvani/coverage/profile.h"
#include "galvani/data/view.h"
#include "galvani/trace/trace.h"

namespace galvani {

struct CoverRequest {
  std::string criteria;                       // "kmnc:k=1000,nlc"
  std::shared_ptr<const Profile> profile;     // null where no criterion needs one
  std::vector<std::filesystem::path> states;  // coverage saved earlier, to start from
  bool by_class = false;                      // what the inputs of each class cover alone, too
  bool minimise = false;                      // so that `smallest` can be asked for
};

struct CoverResult {
  explicit CoverResult(Measurement measured) : measurement(std::move(measured)) {}

  Measurement measurement;
  std::int64_t inputs = 0;
  std::int64_t dropped = 0;  // inputs that no criterion could use: NaN or infinite values
  double forward_seconds = 0;
  // By label, or by verdict where the data have no labels.
  std::map<std::int64_t, std::vector<std::unique_ptr<Criterion>>> by_class;
  FeatureTable features;  // of `minimise`

  // Inputs that keep what is covered: greedy for criteria that are sets of features; for the others those that gained
  // something, in order, which lead to the same state. REQUIRES `minimise`.
  std::vector<std::int64_t> smallest() const;
};

// With a progress bar; Ctrl-C is honoured. Usage error if `minimise` is asked for a criterion in which every input
// counts.
CoverResult measure_coverage(Tracer& tracer, const DataView& data, const CoverRequest& request);

// How two sets of inputs cover one criterion.
struct CoverDifference {
  std::string id;
  std::string spec;
  Covered a;
  Covered b;
  Covered together;
  std::optional<std::uint64_t> only_a;  // features, where the criterion is a set of them
  std::optional<std::uint64_t> only_b;
};
// REQUIRES that both were measured with the same criteria.
std::vector<CoverDifference> compare_coverage(const CoverResult& a, const CoverResult& b);

// inputs, dropped, and the score of each criterion under its name, or its spec where a name occurs twice. The names are
// known before anything is measured.
std::vector<std::string> cover_figure_names(const std::string& criteria);
Figures figures_of(const CoverResult& result);
// <name>-a, -b, -together and -adds (what b adds to a) of each criterion.
std::vector<std::string> difference_figure_names(const std::string& criteria);
Figures figures_of(const std::vector<CoverDifference>& differences);

}  // namespace galvani
