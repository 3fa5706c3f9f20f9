#include "galvani/quality/metric.h"

#include <ATen/ATen.h>

#include <limits>

#include "galvani/base/error.h"
#include "galvani/model/evaluate.h"

namespace galvani {

TestBatch TestBatch::rows(const std::vector<std::int64_t>& indices) const {
  at::Tensor index = at::tensor(indices, at::kLong);
  auto some = [&](const at::Tensor& all) { return all.defined() ? all.index_select(0, index) : all; };
  return {type,           some(tests),         some(originals),        some(labels),
          some(verdicts), some(probabilities), some(original_verdicts)};
}

std::vector<double> Metric::values(const TestBatch& batch, Network* network) const {
  MetricTraits wants = traits();
  if (batch.tests.sizes() != batch.originals.sizes())
    fail(ErrorCode::internal, "{}: tests and originals differ in shape", id_);
  if (wants.reads != MetricReads::pixels && !batch.probabilities.defined())
    fail(ErrorCode::internal, "{}: reads what the model says", id_);
  if (wants.reads == MetricReads::network && network == nullptr)
    fail(ErrorCode::internal, "{}: needs a network to run", id_);
  auto n = static_cast<std::size_t>(batch.size());
  std::vector<double> result(n, std::numeric_limits<double>::quiet_NaN());
  std::vector<std::int64_t> looked_at;
  const auto* labels = batch.labels.data_ptr<std::int64_t>();
  const auto* verdicts = batch.verdicts.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < n; ++i) {
    if (wants.of_all || verdicts[i] != labels[i]) looked_at.push_back(static_cast<std::int64_t>(i));
  }
  if (looked_at.empty()) return result;
  std::vector<double> found = run(looked_at.size() == n ? batch : batch.rows(looked_at), network);
  if (found.size() != looked_at.size())
    fail(ErrorCode::internal, "{}: {} values for {} tests", id_, found.size(), looked_at.size());
  for (std::size_t i = 0; i < found.size(); ++i) result[static_cast<std::size_t>(looked_at[i])] = found[i];
  return result;
}

std::unique_ptr<Metric> make_metric(const Spec& spec) {
  Options options = quality_metrics().options(spec);
  std::unique_ptr<Metric> metric = quality_metrics().create(spec);
  metric->id_ = spec.name;
  metric->spec_ = options.str();
  metric->help_ = quality_metrics().at(spec.name).help;
  return metric;
}

std::vector<std::unique_ptr<Metric>> make_metrics(const std::string& specs, SampleKind kind) {
  std::vector<std::unique_ptr<Metric>> result;
  bool image = kind == SampleKind::image;
  if (specs.empty()) {
    for (const std::string& name : quality_metrics().names()) {
      std::unique_ptr<Metric> metric = make_metric(Spec::parse(name));
      if (image || !metric->traits().images_only) result.push_back(std::move(metric));
    }
    return result;
  }
  for (const Spec& spec : Spec::parse_list(specs)) {
    std::unique_ptr<Metric> metric = make_metric(spec);
    if (!image && metric->traits().images_only)
      bad_usage("the metric {} is of images, and these are sounds", spec.name);
    for (const auto& other : result) {
      if (other->spec() == metric->spec()) bad_usage("the metric {} is named twice", spec.str());
    }
    result.push_back(std::move(metric));
  }
  return result;
}

}  // namespace galvani
