#include "coverage/surprise.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "coverage/builtin.h"
#include "coverage/set_criterion.h"
#include "galvani/base/error.h"
#include "galvani/base/parallel.h"

namespace galvani {
namespace {

constexpr std::int64_t kRowsPerTask = 512;
constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

// Where the criteria cut their scores into buckets.
struct Buckets {
  double width;
  double upper;
};

OptionSchema bucket_options(const Buckets& fallback, OptionSchema more) {
  OptionSchema schema = {
      {"width", fallback.width, "width of a bucket", 1e-12, 1e12, {}},
      {"upper", fallback.upper, "scores from here on, and below 0, are not counted (0: no limits)", 0, 1e12, {}},
      {"tap", std::string(), "tap whose traces are compared (default: the last before the output)", {}, {}, {}}};
  schema.insert(schema.end(), more.begin(), more.end());
  return schema;
}

// A signed bucket as a feature: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
std::uint64_t zigzag(std::int64_t bucket) {
  return bucket >= 0 ? static_cast<std::uint64_t>(bucket) * 2 : static_cast<std::uint64_t>(-(bucket + 1)) * 2 + 1;
}

class SurpriseCoverage : public SetCriterion {
 public:
  SurpriseCoverage(const Options& options, const CriterionContext& context, std::unique_ptr<SurpriseScore> score)
      : SetCriterion(context.layout, bucket_count(options), {}),
        score_(std::move(score)),
        width_(options.real("width")),
        upper_(options.real("upper")),
        buckets_(bucket_count(options)) {}

  std::vector<std::string> notes() const override { return score_->notes(); }

 private:
  static std::uint64_t bucket_count(const Options& options) {
    double count = std::ceil(options.real("upper") / options.real("width") - 1e-9);
    if (count > 1e9) bad_usage("{}: a bucket width of {} makes too many buckets", options.str(), options.real("width"));
    return static_cast<std::uint64_t>(count);
  }

  double total() const override { return static_cast<double>(buckets_); }

  void collect_batch(const Traces& traces, Features& out) const override {
    std::vector<double> scores = score_->score(traces);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      double position = scores[i] / width_;
      // Which side of an edge a score falls on must not depend on how the batch was cut.
      if (!score_->exact() && std::abs(position - std::round(position)) < 1e-7 * (1 + std::abs(position)))
        position = score_->score_alone(traces, static_cast<std::int64_t>(i)) / width_;
      if (std::isfinite(position) && std::abs(position) < 1e15) {
        auto bucket = static_cast<std::int64_t>(std::floor(position));
        if (upper_ == 0) {
          out.ids.push_back(zigzag(bucket));
        } else if (bucket >= 0 && bucket < static_cast<std::int64_t>(buckets_)) {
          out.ids.push_back(static_cast<std::uint64_t>(bucket));
        }
      }
      out.finish_input();
    }
  }

  std::unique_ptr<SurpriseScore> score_;
  double width_;
  double upper_;
  std::uint64_t buckets_;
};

const OptionSchema kDensityOptions = {
    {"min_variance", 1e-5, "features that vary less within classes are left out", 0, 1e12, {}},
    {"bandwidth", 0.0, "factor on the standard deviation (0: Scott's rule)", 0, 1e6, {}}};
const OptionSchema kDistanceOptions = {
    {"from", std::string("trace"), "where the distance to other classes is measured from", {}, {}, {"trace", "input"}}};

DensityOptions density_options(const Options& options) {
  return {options.real("min_variance"), options.real("bandwidth")};
}

CriterionEntry entry(const std::string& name, const std::string& help, const Buckets& buckets, const OptionSchema& more,
                     const std::function<std::unique_ptr<SurpriseScore>(const Reference&, const Options&)>& make) {
  return {name, help, bucket_options(buckets, more),
          [name, make](const Options& options, const CriterionContext& context) {
            std::string part = Reference::part_name(Reference::tap_of(options, context.layout));
            const auto& reference = required_profile(context, name).part<Reference>(part, name);
            return std::make_unique<SurpriseCoverage>(options, context, make(reference, options));
          }};
}

}  // namespace

std::vector<double> SurpriseScore::score(const Traces& traces) const {
  std::vector<double> scores(static_cast<std::size_t>(traces.size()), kNoScore);
  struct Piece {
    std::int64_t label;
    std::vector<std::int64_t> rows;
  };
  std::map<std::int64_t, std::vector<std::int64_t>> by_label;
  for (std::int64_t i = 0; i < traces.size(); ++i) {
    if (traces.usable[static_cast<std::size_t>(i)]) by_label[traces.predicted.data_ptr<std::int64_t>()[i]].push_back(i);
  }
  std::vector<Piece> tasks;
  for (const auto& [label, rows] : by_label) {
    for (std::size_t at = 0; at < rows.size(); at += kRowsPerTask) {
      auto end = std::min(rows.size(), at + kRowsPerTask);
      tasks.push_back(
          {label, {rows.begin() + static_cast<std::ptrdiff_t>(at), rows.begin() + static_cast<std::ptrdiff_t>(end)}});
    }
  }
  workers().run(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t index, int) {
    const Piece& task = tasks[static_cast<std::size_t>(index)];
    auto n = static_cast<std::int64_t>(task.rows.size());
    at::Tensor batch = at::empty({n, block_.count});
    for (std::int64_t i = 0; i < n; ++i)
      std::copy_n(traces.row(task.rows[static_cast<std::size_t>(i)]) + block_.first, block_.count,
                  batch.data_ptr<float>() + i * block_.count);
    std::vector<double> out(task.rows.size(), kNoScore);
    run(batch, task.label, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) scores[static_cast<std::size_t>(task.rows[i])] = out[i];
  });
  return scores;
}

double SurpriseScore::score_alone(const Traces& traces, std::int64_t row) const {
  if (!traces.usable[static_cast<std::size_t>(row)]) return kNoScore;
  return run_alone(traces.row(row) + block_.first, traces.predicted.data_ptr<std::int64_t>()[row]);
}

at::Tensor factor_covariance(const at::Tensor& covariance, double& ridge) {
  ridge = 0;
  auto scale = covariance.diagonal().mean().item<double>();
  if (!(scale > 0)) scale = 1;
  at::Tensor tried = covariance.clone();
  constexpr int kSmallest = -8;
  constexpr int kLargest = 3;
  for (int power = kSmallest; power <= kLargest; ++power) {
    auto [factor, info] = at::linalg_cholesky_ex(tried);
    // Traces are in single precision: a direction that varies 1e-5 times as much as another varies by rounding alone.
    at::Tensor pivots = factor.diagonal();
    if (info.item<int>() == 0 && (pivots.min() > pivots.max() * 1e-5).item<bool>()) return factor;
    ridge = std::pow(10.0, power) * scale;
    tried = covariance.clone();
    tried.diagonal().add_(ridge);
  }
  bad_input("a covariance of training traces is not finite; the model's activations are too large");
}

namespace {

using MakeScore = std::unique_ptr<SurpriseScore> (*)(const Reference& reference, const Options& options);

struct ScoreKind {
  const char* name;
  const char* criterion;  // that cuts it into buckets
  OptionSchema options;
  MakeScore make;
};

const std::vector<ScoreKind>& score_kinds() {
  static const std::vector<ScoreKind> all = {
      {"lsa", "lsc", kDensityOptions,
       [](const Reference& reference, const Options& o) { return make_lsa(reference, density_options(o)); }},
      {"dsa", "dsc", kDistanceOptions,
       [](const Reference& reference, const Options& o) { return make_dsa(reference, o.text("from") == "input"); }},
      {"mdsa", "mdsc", {}, [](const Reference& reference, const Options&) { return make_mdsa(reference); }}};
  return all;
}

const ScoreKind& score_kind(const std::string& name) {
  for (const ScoreKind& kind : score_kinds()) {
    if (name == kind.name) return kind;
  }
  bad_usage("there is no surprise score called '{}'; known are lsa, dsa, mdsa", printable(name));
}

CriterionEntry bucket_entry(const char* score, const char* help, const Buckets& buckets) {
  const ScoreKind& kind = score_kind(score);
  return entry(kind.criterion, help, buckets, kind.options, kind.make);
}

}  // namespace

CriterionEntry lsc_entry() {
  return bucket_entry("lsa", "buckets of surprise: how unlikely a trace is among its class's", {2, 0});
}

CriterionEntry dsc_entry() {
  return bucket_entry("dsa", "buckets of surprise: how near a trace is to other classes", {0.002, 0});
}

CriterionEntry mdsc_entry() {
  return bucket_entry("mdsa", "buckets of surprise: Mahalanobis distance to the class", {0.1, 0});
}

Spec surprise_criterion(const Spec& score) {
  return {score_kind(score.name).criterion, score.settings};
}

std::unique_ptr<SurpriseScore> make_surprise(const Spec& spec, const TraceLayout& layout, const Profile& profile) {
  const ScoreKind& kind = score_kind(spec.name);
  OptionSchema schema = {
      {"tap", std::string(), "tap whose traces are compared (default: the last before the output)", {}, {}, {}}};
  schema.insert(schema.end(), kind.options.begin(), kind.options.end());
  Options options(spec.name, schema, spec);
  return kind.make(profile.part<Reference>(Reference::part_name(Reference::tap_of(options, layout)), spec.name),
                   options);
}

}  // namespace galvani
