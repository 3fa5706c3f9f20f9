// Tests of plain numbers: a table of two columns, a test for every measure in it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "galvani/quality/statistics.h"

namespace galvani {

enum class ValueTestKind { u, wilcoxon, pearson, spearman, point_biserial };
inline const std::vector<std::string> kValueTestNames = {"u", "wilcoxon", "pearson", "spearman", "point-biserial"};
// Usage error if there is none of this name.
ValueTestKind parse_value_test(const std::string& name);

// Values of the two columns that belong to one measure.
struct MeasureValues {
  std::string name;
  std::vector<double> a;
  std::vector<double> b;
};
struct ValueColumns {
  std::string a;  // what the columns are called
  std::string b;
  std::vector<MeasureValues> measures;  // in the order of their first rows
};
// CSV with a header and three columns: a measure, a value of a, a value of b. A test of pairs needs both in every row;
// for `u` either may be empty. Error(bad_input) names the line that is wrong.
ValueColumns read_values(const std::filesystem::path& path, ValueTestKind kind);

struct ValueTest {
  std::string measure;
  std::size_t n_a = 0;
  std::size_t n_b = 0;
  double mean_a = 0;
  double mean_b = 0;
  Interval interval_a;  // 95% of bootstrap means
  Interval interval_b;
  double statistic = 0;  // U, V, or r
  double p = 1;          // two-sided
  double corrected_p = 1;
  bool exact = false;
  double effect = 0;  // u: A12. wilcoxon: share of the ranks of a > b (0.5: neither). Correlations: r
};
// One for every measure, corrected for their number by Holm's method.
std::vector<ValueTest> test_values(const ValueColumns& columns, ValueTestKind kind, const Rng& rng);

}  // namespace galvani
