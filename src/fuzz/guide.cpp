#include "galvani/fuzz/guide.h"

#include <ATen/ATen.h>

#include <type_traits>

#include "fuzz/builtin.h"
#include "galvani/base/error.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

std::vector<std::int64_t> finite_rows(const Judged& judged) {
  std::vector<std::int64_t> rows;
  const auto* predicted = judged.predicted.data_ptr<std::int64_t>();
  bool traced = judged.traces.values.defined();
  for (std::int64_t i = 0; i < judged.size(); ++i) {
    if (predicted[i] != kNotANumber && (!traced || judged.traces.usable[static_cast<std::size_t>(i)]))
      rows.push_back(i);
  }
  return rows;
}

Judged rows_of(const Judged& judged, const std::vector<std::int64_t>& rows) {
  at::Tensor index = at::tensor(rows, at::kLong);
  auto pick = [&](const auto& all) {
    std::decay_t<decltype(all)> some;
    for (std::int64_t row : rows) {
      if (!all.empty()) some.push_back(all[static_cast<std::size_t>(row)]);
    }
    return some;
  };
  return {judged.images.index_select(0, index),
          judged.logits.index_select(0, index),
          judged.predicted.index_select(0, index),
          judged.traces.values.defined() ? rows_of(judged.traces, rows) : Traces(),
          pick(judged.labels),
          pick(judged.parents),
          pick(judged.seeds),
          pick(judged.iterations),
          judged.corpus};
}

// What `run` makes of the finite rows; the others keep the value they begin with.
template <class Result, class Run>
std::vector<Result> of_finite_rows(const Judged& judged, const Run& run) {
  std::vector<Result> results(static_cast<std::size_t>(judged.size()));
  std::vector<std::int64_t> rows = finite_rows(judged);
  if (rows.empty()) return results;
  if (rows.size() == results.size()) {
    run(judged, results);
    return results;
  }
  std::vector<Result> found(rows.size());
  run(rows_of(judged, rows), found);
  for (std::size_t i = 0; i < rows.size(); ++i) results[static_cast<std::size_t>(rows[i])] = found[i];
  return results;
}

}  // namespace

std::vector<double> Guide::absorb(const Judged& seeds) {
  return of_finite_rows<double>(seeds, [this](const Judged& finite, auto& gains) { run_absorb(finite, gains); });
}

std::vector<Decision> Guide::decide(const Judged& mutants) {
  return of_finite_rows<Decision>(mutants, [this](const Judged& finite, auto& decisions) { run(finite, decisions); });
}

void Guide::merge(const Guide& other) {
  if (other.spec() != spec()) bad_usage("a guide {} cannot take in what {} has covered", spec(), other.spec());
  run_merge(other);
}

bool Guide::full() const {
  Covered amount = covered();
  return amount.total > 0 && amount.covered >= amount.total;
}

void Guide::save(ArchiveWriter& out) const {
  out.put(spec_);
  run_save(out);
}

void Guide::load(ArchiveReader& in) {
  if (in.get_text() != spec_) in.broken("belongs to another guide");
  run_load(in);
}

class GuideMaker {
 public:
  static std::unique_ptr<Guide> make(const Spec& spec, const GuideContext& context) {
    Options options = guides().options(spec);
    std::unique_ptr<Guide> guide = guides().create(spec, context);
    guide->id_ = spec.name;
    guide->spec_ = options.str();
    return guide;
  }
};

std::unique_ptr<Guide> make_guide(const Spec& spec, const GuideContext& context) {
  return GuideMaker::make(spec, context);
}

std::vector<Spec> guide_criteria(const Spec& guide) {
  Options options = guides().options(guide);
  GuideTraits traits = guide_traits(guide.name);
  return traits.criteria ? traits.criteria(options) : std::vector<Spec>();
}

GuideDefaults guide_defaults(const Spec& guide) {
  Options options = guides().options(guide);
  GuideTraits traits = guide_traits(guide.name);
  return traits.defaults ? traits.defaults(options) : GuideDefaults();
}

}  // namespace galvani
