#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/progress.h"
#include "galvani/quality/metric.h"
#include "galvani/quality/statistics.h"
#include "galvani/quality/tests.h"
#include "report/section.h"

namespace galvani {
namespace {

constexpr std::int64_t kMostMeasured = 200;  // faults: the page is made in a moment, and means need no more
const std::uint64_t kDrawSeed = 1;

// Faults evenly spread over seeds, beside those, and what was recorded of them. Nothing is run.
struct Measured {
  TestBatch batch;
  std::vector<double> confidence;
  std::vector<std::int64_t> seeds;
};

Measured some_faults(const CampaignReader& reader) {
  FaultFilter filter;
  filter.distinct_only = filter.by_turns = true;
  filter.most = kMostMeasured;
  Measured result;
  std::vector<at::Tensor> tests, originals;
  std::vector<std::int64_t> labels, verdicts;
  for (const FaultRecord& fault : reader.faults(filter)) {
    try {
      tests.push_back(reader.image(fault));
    } catch (const Error&) {
      continue;  // the gallery says which files cannot be read
    }
    originals.push_back(reader.image(fault.seed));
    labels.push_back(fault.label);
    verdicts.push_back(fault.predicted);
    result.confidence.push_back(fault.confidence);
    result.seeds.push_back(fault.seed);
  }
  if (tests.empty()) return result;
  result.batch.type = reader.type();
  result.batch.tests = at::stack(tests);
  result.batch.originals = at::stack(originals);
  result.batch.labels = at::tensor(labels, at::kLong);
  result.batch.verdicts = at::tensor(verdicts, at::kLong);
  return result;
}

Json row(const std::string& name, const std::string& meaning, std::vector<double> values,
         const std::vector<std::int64_t>& seeds) {
  std::vector<double> known;
  std::vector<std::int64_t> groups;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    known.push_back(values[i]);
    groups.push_back(seeds[i]);
  }
  if (known.empty()) return {name, "-", "", meaning};
  auto text = [](double value) {
    return std::abs(value) < 1000 ? fmt::format("{:.4g}", value) : format_count(std::llround(value));
  };
  bool several = std::any_of(groups.begin(), groups.end(), [&](std::int64_t seed) { return seed != groups[0]; });
  if (!several) return {name, text(mean_of(known)), "of one seed", meaning};
  Interval interval = bootstrap_mean(known, groups, Rng(kDrawSeed));
  return {name, text(mean_of(known)), fmt::format("{} to {}", text(interval.low), text(interval.high)), meaning};
}

class QualitySection : public Section {
 public:
  std::string name() const override { return "quality"; }
  bool applies(const PageSubject& subject) const override { return subject.summary.counters.faults > 0; }

  Places make(const PageSubject& subject, Json& data, Page&) const override {
    Measured measured = some_faults(subject.reader);
    Json rows = Json::array();
    if (!measured.confidence.empty()) {
      rows.push_back(row("acac", quality_metrics().at("acac").help, measured.confidence, measured.seeds));
      for (const auto& metric : make_metrics("", subject.reader.type().kind)) {
        MetricTraits traits = metric->traits();
        if (traits.reads != MetricReads::pixels || traits.of_all) continue;
        rows.push_back(row(metric->id(), metric->help(), metric->values(measured.batch, nullptr), measured.seeds));
      }
    }
    data["quality"] = {
        {"rows", rows}, {"n", measured.confidence.size()}, {"of", subject.summary.counters.distinct_faults}};
    return {};
  }
};

}  // namespace

std::unique_ptr<Section> make_quality_section() {
  return std::make_unique<QualitySection>();
}

}  // namespace galvani
