#include "galvani/quality/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/text.h"

namespace galvani {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

// Nothing where the cell is empty.
std::optional<double> cell_value(const std::string& cell, const std::filesystem::path& path, std::size_t line) {
  if (cell.empty()) return std::nullopt;
  double value = 0;
  const char* end = cell.data() + cell.size();
  auto [stop, error] = std::from_chars(cell.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value))
    bad_input("{}, line {}: '{}' is no number", path.string(), line, printable(cell, 40));
  return value;
}

ValueTest tested(const MeasureValues& values, ValueTestKind kind) {
  ValueTest result;
  result.measure = values.name;
  auto correlated = [&](const Correlation& c) {
    result.statistic = result.effect = c.r;
    result.p = c.p;
    result.exact = c.exact;
  };
  switch (kind) {
    case ValueTestKind::u: {
      MannWhitney test = mann_whitney(values.a, values.b);
      result.statistic = test.u;
      result.p = test.p;
      result.exact = test.exact;
      result.effect = vargha_delaney(values.a, values.b);
      break;
    }
    case ValueTestKind::wilcoxon: {
      Wilcoxon test = wilcoxon(values.a, values.b);
      auto pairs = static_cast<double>(test.pairs);
      result.statistic = test.v;
      result.p = test.p;
      result.exact = test.exact;
      result.effect = test.pairs == 0 ? 0.5 : test.v / (pairs * (pairs + 1) / 2);
      break;
    }
    case ValueTestKind::pearson:
      correlated(pearson(values.a, values.b));
      break;
    case ValueTestKind::spearman:
      correlated(spearman(values.a, values.b));
      break;
    case ValueTestKind::point_biserial: {
      std::vector<bool> yes;
      for (double value : values.a) yes.push_back(value != 0);
      correlated(point_biserial(yes, values.b));
      break;
    }
  }
  return result;
}

}  // namespace

ValueTestKind parse_value_test(const std::string& name) {
  for (std::size_t i = 0; i < kValueTestNames.size(); ++i) {
    if (kValueTestNames[i] == name) return static_cast<ValueTestKind>(i);
  }
  bad_usage("there is no test called '{}'; known are {}", printable(name),
            fmt::format("{}", fmt::join(kValueTestNames, ", ")));
}

ValueColumns read_values(const std::filesystem::path& path, ValueTestKind kind) {
  std::istringstream text(read_file(path, kMostBytes));
  ValueColumns columns;
  std::string line;
  for (std::size_t number = 1; std::getline(text, line); ++number) {
    if (line.empty() || line == "\r") continue;
    std::vector<std::string> cells = split_csv_line(line);
    if (cells.size() != 3)
      bad_input("{}, line {}: has {} cells; a measure, a value and another value are three", path.string(), number,
                cells.size());
    if (columns.a.empty()) {
      columns.a = cells[1].empty() ? "a" : cells[1];
      columns.b = cells[2];
      continue;
    }
    std::optional<double> a = cell_value(cells[1], path, number), b = cell_value(cells[2], path, number);
    if (kind != ValueTestKind::u && (!a || !b))
      bad_input("{}, line {}: a value is missing; only the test u goes without pairs", path.string(), number);
    if (kind == ValueTestKind::point_biserial && *a != 0 && *a != 1)
      bad_input("{}, line {}: '{}' is neither 0 nor 1, as point-biserial needs it", path.string(), number,
                printable(cells[1], 40));
    auto measure = std::find_if(columns.measures.begin(), columns.measures.end(),
                                [&](const MeasureValues& m) { return m.name == cells[0]; });
    if (measure == columns.measures.end())
      measure = columns.measures.insert(columns.measures.end(), MeasureValues{cells[0], {}, {}});
    if (a) measure->a.push_back(*a);
    if (b) measure->b.push_back(*b);
  }
  if (columns.measures.empty())
    bad_input("{}: has no values; it needs a header, then lines such as mr,0.31,0.28", path.string());
  for (const MeasureValues& m : columns.measures) {
    if (m.a.empty() || m.b.empty())
      bad_input("{}: '{}' has no values of {}", path.string(), printable(m.name, 40),
                printable(m.a.empty() ? columns.a : columns.b, 40));
  }
  return columns;
}

std::vector<ValueTest> test_values(const ValueColumns& columns, ValueTestKind kind, const Rng& rng) {
  std::vector<ValueTest> tests;
  std::vector<double> p;
  for (std::size_t i = 0; i < columns.measures.size(); ++i) {
    const MeasureValues& values = columns.measures[i];
    ValueTest test = tested(values, kind);
    test.n_a = values.a.size();
    test.n_b = values.b.size();
    test.mean_a = mean_of(values.a);
    test.mean_b = mean_of(values.b);
    test.interval_a = bootstrap_mean(values.a, {}, rng.derive(2 * i));
    test.interval_b = bootstrap_mean(values.b, {}, rng.derive(2 * i + 1));
    p.push_back(test.p);
    tests.push_back(std::move(test));
  }
  std::vector<double> corrected = holm(p);
  for (std::size_t i = 0; i < tests.size(); ++i) tests[i].corrected_p = corrected[i];
  return tests;
}

}  // namespace galvani
