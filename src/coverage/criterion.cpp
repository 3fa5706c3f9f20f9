#include "galvani/coverage/criterion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "coverage/maker.h"
#include "galvani/base/error.h"
#include "galvani/base/progress.h"
#include "galvani/coverage/profile.h"

namespace galvani {
namespace {

constexpr std::uint32_t kStateVersion = 1;
constexpr std::string_view kStateKind = "coverage state";

}  // namespace

std::string coverage_text(const Covered& amount) {
  // Rounded down near the end: "100.00%" means everything.
  double percent = amount.score() * 100;
  if (percent < 100) percent = std::min(percent, 99.99);
  if (amount.total > 0) return fmt::format("{:.2f}%", percent);
  return amount.covered == std::floor(amount.covered) ? format_count(static_cast<std::int64_t>(amount.covered))
                                                      : fmt::format("{:.5g}", amount.covered);
}

std::vector<double> Criterion::add(const Traces& traces) {
  check(traces);
  std::vector<double> gains(static_cast<std::size_t>(traces.size()), 0.0);
  run(traces, gains);
  for (char usable : traces.usable) (usable ? inputs_ : dropped_) += 1;
  return gains;
}

bool Criterion::features(const Traces& traces, Features& out) const {
  check(traces);
  return run_features(traces, out);
}

bool Criterion::run_features(const Traces& traces, Features& out) const {
  return false;
}

void Criterion::check(const Traces& traces) const {
  if (traces.values.dim() != 2 || traces.values.size(1) != layout_.neurons)
    fail(ErrorCode::internal, "{}: traces have {} neurons instead of {}", id_, traces.values.size(-1), layout_.neurons);
  if (needs().relevance && traces.size() > 0 && !traces.relevance.defined())
    fail(ErrorCode::internal, "{}: traces come without relevance", id_);
  if (needs().layers && traces.size() > 0 && traces.layers.empty())
    fail(ErrorCode::internal, "{}: traces come without the layers' inputs", id_);
}

void Criterion::reset() {
  run_reset();
  inputs_ = dropped_ = 0;
}

void Criterion::merge(const Criterion& other) {
  if (other.spec_ != spec_ || other.layout_.signature() != layout_.signature())
    bad_usage("coverage of {} cannot be merged with that of {}: they count different things", spec_, other.spec_);
  run_merge(other);
  inputs_ += other.inputs_;
  dropped_ += other.dropped_;
}

std::unique_ptr<Criterion> Criterion::fresh() const {
  return make_criterion(Spec::parse(spec_), {layout_, profile_});
}

void Criterion::save(ArchiveWriter& out) const {
  out.put(spec_);
  out.put(inputs_);
  out.put(dropped_);
  run_save(out);
}

void Criterion::load(ArchiveReader& in) {
  std::string spec = in.get_text();
  if (spec != spec_) bad_input("{}: holds coverage of {}, not of {}", in.file(), printable(spec), spec_);
  auto inputs = in.get<std::int64_t>();
  auto dropped = in.get<std::int64_t>();
  if (inputs < 0 || dropped < 0) in.broken("counts fewer than no inputs");
  run_load(in);
  inputs_ = inputs;
  dropped_ = dropped;
}

std::unique_ptr<Criterion> CriterionMaker::make(const Spec& spec, const CriterionContext& context) {
  Options options = criteria().options(spec);
  if (context.layout.neurons == 0)
    bad_usage("{} looks at neurons, but there are none to observe: the network has no layers", spec.name);
  std::unique_ptr<Criterion> criterion = criteria().create(spec, context);
  criterion->id_ = spec.name;
  criterion->spec_ = options.str();
  criterion->profile_ = context.profile;
  return criterion;
}

std::unique_ptr<Criterion> make_criterion(const Spec& spec, const CriterionContext& context) {
  return CriterionMaker::make(spec, context);
}

std::vector<std::unique_ptr<Criterion>> make_criteria(const std::string& specs, const CriterionContext& context) {
  std::vector<std::unique_ptr<Criterion>> result;
  for (const Spec& spec : Spec::parse_list(specs)) {
    result.push_back(make_criterion(spec, context));
    for (std::size_t i = 0; i + 1 < result.size(); ++i) {
      if (result[i]->spec() == result.back()->spec()) bad_usage("the criterion {} is named twice", spec.str());
    }
  }
  if (result.empty()) bad_usage("no criteria are named");
  return result;
}

void save_states(const std::filesystem::path& path, const std::vector<std::unique_ptr<Criterion>>& criteria,
                 const TraceLayout& layout) {
  ArchiveWriter out;
  out.put(layout.signature());
  out.put(static_cast<std::uint64_t>(criteria.size()));
  for (const auto& criterion : criteria) criterion->save(out);
  write_sealed(path, kStateKind, kStateVersion, out.bytes());
}

void merge_states(const std::filesystem::path& path, const std::vector<std::unique_ptr<Criterion>>& criteria,
                  const TraceLayout& layout) {
  std::string payload = read_sealed(path, kStateKind, kStateVersion);
  ArchiveReader in(payload, path.string());
  if (in.get_text() != layout.signature())
    bad_input("{}: holds coverage of another model, or of other taps", path.string());
  auto count = in.get<std::uint64_t>();
  if (count != criteria.size())
    bad_input("{}: holds {} criteria, but {} are asked for", path.string(), count, criteria.size());
  std::vector<std::unique_ptr<Criterion>> loaded;
  for (const auto& criterion : criteria) {
    loaded.push_back(criterion->fresh());
    loaded.back()->load(in);
  }
  in.expect_end();
  for (std::size_t i = 0; i < criteria.size(); ++i) criteria[i]->merge(*loaded[i]);
}

}  // namespace galvani
