#include "galvani/quality/measure.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

constexpr std::size_t kMostChunk = 512;
constexpr std::size_t kChunkBytes = std::size_t{32} << 20;

std::vector<std::int64_t> drawn_rows(std::int64_t n, const QualityRequest& request) {
  if (request.most > 0 && request.most < n) {
    std::vector<std::int64_t> rows = Rng(request.seed).derive("tests").sample(n, request.most);
    std::sort(rows.begin(), rows.end());
    return rows;
  }
  std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  return rows;
}

// The values of one metric, and what each of them was made of.
struct Values {
  std::vector<double> values;
  std::vector<std::int64_t> groups;
};

QualityFigure figure_of(const Metric& metric, const Values& found, const QualityRequest& request) {
  QualityFigure figure{metric.id(),   metric.spec(),
                       metric.help(), std::numeric_limits<double>::quiet_NaN(),
                       std::nullopt,  static_cast<std::int64_t>(found.values.size()),
                       false};
  if (found.values.empty()) return figure;
  figure.value = mean_of(found.values);
  // Tests of one original alone say nothing of what others would give.
  bool several = std::any_of(found.groups.begin(), found.groups.end(),
                             [&](std::int64_t group) { return group != found.groups[0]; });
  if (several)
    figure.interval =
        bootstrap_mean(found.values, found.groups, Rng(request.seed).derive("bootstrap"), request.bootstrap);
  return figure;
}

QualityFigure figure_of(const Metric& metric, const Share& share, const QualityRequest& request) {
  QualityFigure figure{metric.id(),  metric.spec(), metric.help(), std::numeric_limits<double>::quiet_NaN(),
                       std::nullopt, share.whole,   true};
  if (share.whole == 0) return figure;
  figure.value = static_cast<double>(share.part) / static_cast<double>(share.whole);
  figure.interval = bootstrap_share(share.part, share.whole, request.bootstrap.level);
  return figure;
}

TestBatch judged(Network& network, const SampleType& type, TestRows rows, bool originals_too, Quality& quality) {
  TestBatch batch;
  Predictions said = predict(network, rows.tests);
  if (originals_too) batch.original_verdicts = predict(network, rows.originals).labels;
  batch.type = type;
  batch.tests = std::move(rows.tests);
  batch.originals = std::move(rows.originals);
  batch.labels = std::move(rows.labels);
  batch.verdicts = said.labels;
  batch.probabilities = said.probabilities;
  quality.looked_at += batch.size();
  quality.misclassified += batch.verdicts.ne(batch.labels).sum().item<std::int64_t>();
  quality.not_a_number += batch.verdicts.eq(kNotANumber).sum().item<std::int64_t>();
  return batch;
}

// A line for every test of the batch, without values yet.
void add_tests(const TestBatch& batch, const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& groups,
               std::size_t metrics, std::vector<TestValues>& each) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    each.push_back({rows[i], groups[static_cast<std::size_t>(rows[i])], batch.labels.data_ptr<std::int64_t>()[i],
                    batch.verdicts.data_ptr<std::int64_t>()[i],
                    std::vector<double>(metrics, std::numeric_limits<double>::quiet_NaN())});
  }
}

}  // namespace

Quality measure_quality(Network& network, const TestSet& tests, const QualityRequest& request) {
  check_fits(network, tests.type().shape, tests.name());
  std::vector<std::unique_ptr<Metric>> metrics = make_metrics(request.metrics, tests.type().kind);
  std::optional<TestCounts> counts = tests.counts(network);
  std::vector<std::optional<Share>> shares(metrics.size());
  bool originals_too = false;
  for (std::size_t m = 0; m < metrics.size(); ++m) {
    if (counts) shares[m] = metrics[m]->counted(*counts);
    originals_too = originals_too || (!shares[m] && metrics[m]->traits().original_verdicts);
  }
  Quality quality;
  quality.tests = tests.size();
  std::vector<std::int64_t> rows = drawn_rows(tests.size(), request);
  std::vector<Values> found(metrics.size());
  std::size_t chunk = std::clamp<std::size_t>(kChunkBytes / tests.type().bytes(), 1, kMostChunk);
  Progress progress("measuring", static_cast<std::int64_t>(rows.size()), "tests");
  for (std::size_t first = 0; first < rows.size(); first += chunk) {
    check_interrupt();
    std::vector<std::int64_t> some(rows.begin() + static_cast<std::ptrdiff_t>(first),
                                   rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), first + chunk)));
    TestBatch batch = judged(network, tests.type(), tests.fetch(some), originals_too, quality);
    std::size_t before = quality.each.size();
    if (request.each) add_tests(batch, some, tests.groups(), metrics.size(), quality.each);
    for (std::size_t m = 0; m < metrics.size(); ++m) {
      if (shares[m]) continue;
      std::vector<double> values = metrics[m]->values(batch, &network);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (request.each) quality.each[before + i].values[m] = values[i];
        if (std::isnan(values[i])) continue;
        found[m].values.push_back(values[i]);
        found[m].groups.push_back(tests.groups()[static_cast<std::size_t>(some[i])]);
      }
    }
    progress.advance(batch.size());
  }
  progress.finish();
  for (std::size_t m = 0; m < metrics.size(); ++m)
    quality.figures.push_back(shares[m] ? figure_of(*metrics[m], *shares[m], request)
                                        : figure_of(*metrics[m], found[m], request));
  return quality;
}

std::string figure_name(const std::vector<QualityFigure>& all, const QualityFigure& figure) {
  auto same = std::count_if(all.begin(), all.end(), [&](const QualityFigure& other) { return other.id == figure.id; });
  return same > 1 ? figure.spec : figure.id;
}

Figures figures_of(const Quality& quality) {
  Figures figures = {{"tests", static_cast<double>(quality.looked_at)},
                     {"misclassified", static_cast<double>(quality.misclassified)},
                     {"not-a-number", static_cast<double>(quality.not_a_number)}};
  for (const QualityFigure& figure : quality.figures)
    figures.emplace_back(figure_name(quality.figures, figure), figure.value);
  return figures;
}

std::vector<std::string> quality_figure_names(const std::string& metrics) {
  Quality named;
  for (const auto& metric : make_metrics(metrics, SampleKind::image)) {
    named.figures.emplace_back();
    named.figures.back().id = metric->id();
    named.figures.back().spec = metric->spec();
  }
  return names_of(figures_of(named));
}

Json as_json(const Quality& quality) {
  Json metrics = Json::array();
  for (const QualityFigure& figure : quality.figures) {
    Json j = {{"id", figure.id},
              {"spec", figure.spec},
              {"meaning", figure.meaning},
              {"n", figure.n},
              {"counted", figure.counted}};
    j["value"] = std::isnan(figure.value) ? Json() : Json(figure.value);
    j["interval"] = figure.interval ? Json{figure.interval->low, figure.interval->high} : Json();
    metrics.push_back(std::move(j));
  }
  return {{"tests", quality.tests},
          {"looked_at", quality.looked_at},
          {"misclassified", quality.misclassified},
          {"not_a_number", quality.not_a_number},
          {"metrics", metrics}};
}

std::string values_csv(const Quality& quality) {
  std::string text = "test,original,label,verdict";
  for (const QualityFigure& figure : quality.figures) {
    if (!figure.counted) text += "," + csv_cell(figure_name(quality.figures, figure));
  }
  text += "\n";
  for (const TestValues& test : quality.each) {
    text += fmt::format("{},{},{},{}", test.test, test.original, test.label, test.verdict);
    for (std::size_t m = 0; m < quality.figures.size(); ++m) {
      if (quality.figures[m].counted) continue;
      text += std::isnan(test.values[m]) ? "," : fmt::format(",{:.9g}", test.values[m]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace galvani
