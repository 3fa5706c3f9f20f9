// Which rules a campaign draws from: catalogues of the papers, single mutators, weights.
//
//   nsgen                          a catalogue
//   deephunter:group=d             part of one
//   rotation,blur:w=2              mutators with their usual parameters, blur twice as often
//   rotation:angle=-10..10         any angle of a range        (angle=-10..10..2: in steps; angle=-5/5: one of several)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "galvani/base/rng.h"
#include "galvani/mutate/mutator.h"

namespace galvani {

// Rules of one mutator: for every parameter a value, a list or a range.
class RulePattern {
 public:
  // Parameters that are not given keep their defaults; `seed` and `image` are drawn.
  RulePattern(const Mutator& mutator, const Spec& spec);

  Rule draw(Rng& rng) const;
  // How many rules there are; 0: a continuum or as good as one.
  std::int64_t count() const;
  // All of them, the last parameter changing fastest. REQUIRES count() > 0.
  std::vector<Rule> rules() const;
  // `n` of them at even distances from one end to the other.
  std::vector<Rule> examples(std::size_t n, Rng& rng) const;

 private:
  struct Range {
    std::vector<double> values;  // one of these; empty: a range
    double low = 0;
    double high = 0;
    std::int64_t free = 0;  // whole numbers below this
    double draw(Rng& rng) const;
  };
  static Range parse_range(const Mutator& mutator, const OptionInfo& info, std::string_view text);

  const Mutator* mutator_;
  std::vector<Range> ranges_;
};

// What is drawn first: every family by its weight, then a rule of it, all rules alike.
struct Family {
  const Mutator* mutator;
  double weight = 1;
  std::vector<RulePattern> patterns;
  std::vector<Rule> listed;  // all its rules, if they are few enough to list

  Rule draw(Rng& rng) const;
  // At most `n` rules that show its breadth, from one end to the other; what is random comes from `rng`.
  std::vector<Rule> examples(std::size_t n, Rng& rng) const;
};

class MutatorSet {
 public:
  MutatorSet(const std::string& spec, const MutationContext& context);

  const std::string& spec() const { return spec_; }
  const std::vector<Family>& families() const { return families_; }
  const Mutator& mutator(const Rule& rule) const;
  // SHA-256 of what its mutators took from files; empty: nothing.
  std::string files_sha256() const;

  // False, and nothing drawn, if every family is affine and affine ones are not wanted.
  bool draw(Rng& rng, bool affine_allowed, Rule& rule) const;

  std::string text(const Rule& rule) const { return mutator(rule).text(rule); }
  // Any registered mutator's rule, in the set or not.
  Rule parse(const std::string& text) const;
  at::Tensor apply(const Rule& rule, const at::Tensor& input) const { return mutator(rule).apply(rule, input); }

 private:
  void add(Spec spec);
  void add_family(const std::string& name, const std::vector<std::string>& patterns, double weight);

  std::string spec_;
  SampleType type_;                                 // of the inputs; without a shape: any
  std::vector<std::unique_ptr<Mutator>> mutators_;  // every registered one
  std::vector<Family> families_;
  std::vector<double> cumulative_;        // of weights
  std::vector<double> cumulative_pixel_;  // likewise, affine families counting nothing
};

struct MutationCatalogue {
  struct Entry {
    std::string mutator;
    std::vector<std::string> patterns;
  };
  std::string name;
  std::string help;
  std::vector<Entry> entries;
};
// What is drawn from where nothing is said: nsgen of images, audio of sounds.
const char* usual_catalogue(SampleKind kind);
// For whoever has a catalogue of its own as a default: that, or the usual one of sounds.
std::string catalogue_for(const std::string& set, SampleKind kind);
// nsgen, deephunter, nss, style; of sounds audio. `all` stands for every mutator that can be used, with its usual
// parameters.
const std::vector<MutationCatalogue>& mutation_catalogues();

// What is drawn of a mutator that is named without parameters: its patterns in the first catalogue that has it.
const std::vector<std::string>& usual_patterns(const std::string& mutator);

// Every rule of a catalogue as text; usage error if they cannot be listed.
std::vector<std::string> catalogue_rules(const std::string& name);

}  // namespace galvani
