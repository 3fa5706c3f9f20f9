#include "galvani/generate/generator.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "galvani/base/archive.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "generate/builtin.h"

namespace galvani {
namespace {

void check_input(const at::Tensor& input, const at::Tensor& example, const char* what) {
  if (input.sizes() != example.sizes() || input.scalar_type() != example.scalar_type() || !input.is_contiguous())
    bad_usage("{} must be a contiguous tensor of shape {} and type {}", what,
              fmt::format("{}", fmt::join(example.sizes(), "x")), c10::toString(example.scalar_type()));
}

// To the whole numbers that the file format has. A value that is not a number makes a candidate invalid.
at::Tensor to_grid(const at::Tensor& inputs, at::ScalarType type, std::vector<Candidate>& each) {
  if (inputs.scalar_type() == type) return inputs.contiguous();
  if (!inputs.is_floating_point())
    fail(ErrorCode::internal, "a generator gave candidates of type {}", c10::toString(inputs.scalar_type()));
  at::Tensor finite = inputs.isfinite().flatten(1).all(1);
  const bool* good = finite.data_ptr<bool>();
  for (std::size_t i = 0; i < each.size(); ++i) each[i].valid = each[i].valid && good[i];
  bool bytes = type == at::kByte;
  double low = bytes ? 0 : std::numeric_limits<std::int16_t>::min();
  double high = bytes ? 255 : std::numeric_limits<std::int16_t>::max();
  return inputs.nan_to_num(0, high, low).round().clamp(low, high).to(type).contiguous();
}

}  // namespace

Proposal::Proposal(const Generator& generator, std::vector<PickedParent> parents, const PickOrder& order)
    : generator_(generator), parents_(std::move(parents)), order_(order), closed_(parents_.size(), 0) {}

std::vector<Candidate> Proposal::due(std::int64_t most) {
  std::vector<Candidate> result;
  while (static_cast<std::int64_t>(result.size()) < most && parent_ < parents_.size() && slot_ < order_.energy) {
    Candidate candidate;
    candidate.parent = parent_;
    candidate.slot = slot_;
    if (!closed(parent_)) result.push_back(candidate);
    // All of a parent and then the next, or one of every parent and then the next of each.
    if (order_.stop_at_kept) {
      if (++parent_ < parents_.size()) continue;
      parent_ = 0;
      ++slot_;
      // What comes next depends on what is kept of these.
      if (!result.empty()) break;
    } else if (++slot_ == order_.energy) {
      slot_ = 0;
      ++parent_;
    }
  }
  return result;
}

Candidates Proposal::next(std::int64_t most) {
  Candidates candidates = run(most);
  last_ = candidates.each;
  if (candidates.each.empty()) return candidates;
  auto n = static_cast<std::int64_t>(candidates.each.size());
  const at::Tensor& example = parents_.front().input;
  std::vector<std::int64_t> sizes = example.sizes().vec();
  sizes.insert(sizes.begin(), n);
  if (n > most || candidates.inputs.sizes() != at::IntArrayRef(sizes))
    fail(ErrorCode::internal, "generator '{}' gave candidates of another number or shape than was asked for",
         generator_.id());
  candidates.inputs = to_grid(candidates.inputs, example.scalar_type(), candidates.each);
  return candidates;
}

void Proposal::learn(const Outcome& outcome) {
  if (order_.stop_at_kept) {
    for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
      if (outcome.kept[i] != 0) closed_[last_[static_cast<std::size_t>(outcome.rows[i])].parent] = 1;
    }
  }
  run_learn(outcome);
}

std::unique_ptr<Proposal> Generator::begin(std::vector<PickedParent> parents, const PickOrder& order) const {
  if (parents.empty() || order.energy < 1) bad_usage("a generator needs a parent and at least one candidate to make");
  const at::Tensor& example = example_.defined() ? example_ : parents.front().input;
  for (const PickedParent& parent : parents) {
    check_input(parent.input, example, "a parent");
    check_input(parent.seed, example, "the seed of a parent");
  }
  return run_begin(std::move(parents), order);
}

std::string Generator::probe(const at::Tensor& seed) const {
  PickedParent parent{seed, seed, "", 0, 1, Rng(0)};
  std::unique_ptr<Proposal> proposal = begin({parent}, {4, false});
  ArchiveWriter out;
  Candidates made = proposal->next(4);
  for (std::size_t i = 0; i < made.each.size(); ++i) out.put(proposal->provenance(i));
  if (made.inputs.defined())
    out.put(std::string_view(static_cast<const char*>(made.inputs.data_ptr()), made.inputs.nbytes()));
  return sha256(out.bytes());
}

at::Tensor Generator::make(const std::string& provenance, const at::Tensor& parent, const at::Tensor& seed) const {
  check_input(parent, example_, "a parent");
  check_input(seed, example_, "the seed of a parent");
  return run_make(provenance, parent, seed);
}

std::unique_ptr<Generator> make_generator(const Spec& spec, const GeneratorContext& context) {
  if (!context.seeds.defined() || context.seeds.size(0) == 0) bad_usage("a generator needs seeds");
  bool image = context.seeds.scalar_type() == at::kByte;
  std::string resolved = resolved_generator(spec, image ? SampleKind::image : SampleKind::audio);
  std::unique_ptr<Generator> generator = generators().create(Spec::parse(resolved), context);
  generator->id_ = spec.name;
  generator->spec_ = resolved;
  generator->example_ = context.seeds[0];
  return generator;
}

std::string short_generator(const std::string& spec) {
  Spec full = Spec::parse(spec);
  const GeneratorEntry& entry = generators().at(full.name);
  Spec result{full.name, {}};
  for (const auto& setting : full.settings) {
    auto info = std::find_if(entry.schema.begin(), entry.schema.end(),
                             [&](const OptionInfo& option) { return option.name == setting.first; });
    if (info == entry.schema.end() || to_string(info->fallback) != setting.second) result.settings.push_back(setting);
  }
  return result.str();
}

std::string kind_of(const std::string& provenance) {
  return provenance.substr(0, provenance.find(':'));
}

Followed follow(const Generator& generator, const at::Tensor& seed, const std::vector<std::string>& provenances) {
  Followed now{seed.contiguous(), ""};
  for (const std::string& provenance : provenances) {
    now.input = generator.make(provenance, now.input, seed).contiguous();
    now.memo = generator.inherit(now.memo, provenance);
  }
  return now;
}

}  // namespace galvani
