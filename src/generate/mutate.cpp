// Changes by rules (docs/mutators.md), as NSGen makes them: drawn until one is valid, at most one affine step in a
// lineage. The memo of a lineage is the rule of its affine step.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/archive.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/mutate/engine.h"
#include "generate/builtin.h"

namespace galvani {
namespace {

constexpr std::size_t kProbedRules = 3;  // of a family, and at least one of every pattern
constexpr int kStrengths = 16;

class MutateProposal : public Proposal {
 public:
  MutateProposal(const Generator& generator, const MutationEngine& engine, std::vector<PickedParent> picked,
                 const PickOrder& order)
      : Proposal(generator, std::move(picked), order), engine_(engine) {
    for (const PickedParent& parent : parents()) references_.push_back(generator.reference(parent.seed, parent.memo));
  }

 private:
  Candidates run(std::int64_t most) override {
    Candidates result;
    result.each = due(most);
    std::vector<Parent> wanted;
    wanted.reserve(result.each.size());
    for (const Candidate& candidate : result.each) {
      const PickedParent& parent = parents()[candidate.parent];
      wanted.push_back(
          {parent.input, references_[candidate.parent], !parent.memo.empty(), parent.stream(candidate.slot)});
    }
    mutants_ = engine_.mutate(wanted);
    for (std::size_t i = 0; i < result.each.size(); ++i) {
      const Mutant& mutant = mutants_.each[i];
      result.each[i].valid = mutant.valid;
      result.each[i].kind = mutant.tries > 0 ? mutant.rule.mutator : -1;
    }
    result.inputs = std::move(mutants_.images);
    return result;
  }
  std::string run_provenance(std::size_t row) const override { return engine_.set().text(mutants_.each[row].rule); }

  const MutationEngine& engine_;
  std::vector<at::Tensor> references_;
  Mutants mutants_;
};

class MutateGenerator : public Generator {
 public:
  MutateGenerator(const Options& options, const GeneratorContext& context)
      : engine_(options.text("set"), context_of(context), engine_options(options)) {}

  std::vector<std::string> kinds() const override { return mutators().names(); }
  std::string files_sha256() const override { return engine_.set().files_sha256(); }

  std::string probe(const at::Tensor& seed) const override {
    Rng rng(0);
    ArchiveWriter out;
    for (const Family& family : engine_.set().families()) {
      for (const Rule& rule : family.examples(std::max(kProbedRules, family.patterns.size()), rng)) {
        out.put(engine_.set().text(rule));
        at::Tensor made = engine_.set().apply(rule, seed).contiguous();
        out.put(std::string_view(static_cast<const char*>(made.data_ptr()), made.nbytes()));
      }
    }
    return sha256(out.bytes());
  }

  std::string inherit(const std::string& memo, const std::string& provenance) const override {
    if (!memo.empty()) return memo;
    return engine_.set().mutator(engine_.set().parse(provenance)).affine() ? provenance : "";
  }
  at::Tensor reference(const at::Tensor& seed, const std::string& memo) const override {
    return memo.empty() ? seed : engine_.set().apply(engine_.set().parse(memo), seed).contiguous();
  }
  bool valid(const at::Tensor& reference, const at::Tensor& input) const override {
    return engine_.valid(reference, input);
  }

  // Of affine steps: the values between those that do nothing, which are their defaults, and the step's own.
  std::vector<std::string> weaker(const std::string& provenance) const override {
    const Rule whole = engine_.set().parse(provenance);
    const Mutator& mutator = engine_.set().mutator(whole);
    std::vector<std::string> result;
    if (!mutator.affine()) return result;
    const OptionSchema& parameters = mutator.parameters();
    for (int k = 1; k < kStrengths; ++k) {
      Rule rule = whole;
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        double neutral = rule_value(parameters[i], parameters[i].fallback);
        double value = neutral + (whole.values[i] - neutral) * k / kStrengths;
        bool integer = std::holds_alternative<std::int64_t>(parameters[i].fallback);
        rule.values[i] = integer ? std::round(value) : std::round(value * 1e4) / 1e4;
      }
      result.push_back(mutator.text(rule));
    }
    return result;
  }

 private:
  static MutationContext context_of(const GeneratorContext& context) {
    return {SampleType::of(context.seeds.sizes().slice(1).vec(), context.rate),
            context.style_images.defined() ? context.style_images : context.seeds};
  }
  static MutationEngine::Options engine_options(const Options& options) {
    MutationEngine::Options result;
    result.validity = {options.real("alpha"), options.real("beta"), options.real("snr")};
    result.max_tries = static_cast<int>(options.integer("tries"));
    result.exempt_style = options.text("exempt") == "style";
    return result;
  }
  std::unique_ptr<Proposal> run_begin(std::vector<PickedParent> parents, const PickOrder& order) const override {
    return std::make_unique<MutateProposal>(*this, engine_, std::move(parents), order);
  }
  at::Tensor run_make(const std::string& provenance, const at::Tensor& parent, const at::Tensor&) const override {
    return engine_.set().apply(engine_.set().parse(provenance), parent);
  }

  MutationEngine engine_;
};

}  // namespace

GeneratorEntry mutate_generator_entry() {
  return {"mutate",
          "changes by rules: rotation, blur, contrast, ...; of sounds gain, noise, pitch, ...",
          {{"set", std::string("nsgen"), "mutators and catalogues, as docs/mutators.md has them", {}, {}, {}},
           {"alpha", 0.2, "validity: share of pixels that may change at will", 0.0, 1.0, {}},
           {"beta", 0.4, "validity: share of 255 that any pixel may change", 0.0, 1.0, {}},
           {"snr", 5.0, "validity of sounds: dB by which the original is louder than the change", -200.0, 200.0, {}},
           {"tries", std::int64_t{50}, "for a valid mutant", 1.0, 1 << 20, {}},
           {"exempt", std::string("none"), "steps whose validity is not looked at", {}, {}, {"none", "style"}},
           {"validity",
            std::string("nsgen"),
            "preset: as the paper says, or what NLC's own program does",
            {},
            {},
            {"nsgen", "nlc-code"}}},
          [](const Options& options, const GeneratorContext& context) -> std::unique_ptr<Generator> {
            return std::make_unique<MutateGenerator>(options, context);
          }};
}

}  // namespace galvani
