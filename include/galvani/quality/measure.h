// The quality of tests: metrics with intervals, of as many tests as there are, chunk by chunk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "galvani/base/gate.h"
#include "galvani/base/json.h"
#include "galvani/model/network.h"
#include "galvani/quality/statistics.h"
#include "galvani/quality/tests.h"

namespace galvani {

struct QualityRequest {
  std::string metrics;    // with options, separated by commas; empty: all that make sense
  std::int64_t most = 0;  // tests to look at, drawn at random; 0: all
  std::uint64_t seed = 0;
  bool each = false;  // the values of every test, too
  BootstrapSettings bootstrap;
};

struct QualityFigure {
  std::string id;
  std::string spec;
  std::string meaning;               // in a line
  double value = 0;                  // not a number if there is nothing to measure
  std::optional<Interval> interval;  // none of tests that were all made of one original
  std::int64_t n = 0;                // values it is the mean of
  bool counted = false;              // from the campaign's own counts, not from the stored tests
};

// What was measured of one test; not a number where a metric says nothing of it.
struct TestValues {
  std::int64_t test = 0;      // its row in the set
  std::int64_t original = 0;  // its group there
  std::int64_t label = 0;
  std::int64_t verdict = 0;
  std::vector<double> values;  // in the order of the figures
};

struct Quality {
  std::int64_t tests = 0;          // that there are
  std::int64_t looked_at = 0;      // of them
  std::int64_t misclassified = 0;  // of those
  std::int64_t not_a_number = 0;   // of those, with scores that are not finite
  std::vector<QualityFigure> figures;
  std::vector<TestValues> each;  // of the tests looked at, if that was asked for
};

// Verdicts are as `predict` gives them. The same for any number of workers. With a progress bar; Ctrl-C is honoured.
Quality measure_quality(Network& network, const TestSet& tests, const QualityRequest& request);

// "ric", or "ric:quality=75" where the same metric is asked for twice.
std::string figure_name(const std::vector<QualityFigure>& all, const QualityFigure& figure);
Figures figures_of(const Quality& quality);
std::vector<std::string> quality_figure_names(const std::string& metrics);  // before anything is measured
Json as_json(const Quality& quality);
// CSV: a line for every test, a column for every metric that was measured test by test.
std::string values_csv(const Quality& quality);

}  // namespace galvani
