// Makes mutants of many parents at once, as the campaign wants them: valid, with their lineage kept.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "galvani/base/rng.h"
#include "galvani/mutate/catalogue.h"

namespace galvani {

// How far a mutant may be from its reference: of images as NSGen 5.2 says, of sounds by how loud the change is.
struct Validity {
  double alpha = 0.2;  // fewer changed pixels than this share of the reference's non-zero ones: any change will do
  double beta = 0.4;   // else no value may change by more than this share of 255
  double snr = 5;      // of sounds: the reference is louder than the change by so many dB at least
};

// A pixel is a place: it is changed if any of its channels is, non-zero if any is.
struct Change {
  std::int64_t pixels = 0;  // changed ones
  int largest = 0;          // |difference| of any channel
};
Change measure_change(const ImageShape& shape, const std::uint8_t* reference, const std::uint8_t* mutant);
// The same of tensors, images or sounds; of a sound a pixel is a moment.
Change measure_change(const at::Tensor& reference, const at::Tensor& mutant);
std::int64_t count_non_zero(const ImageShape& shape, const std::uint8_t* image);
bool is_valid(const Validity& validity, const Change& change, std::int64_t non_zero);
// Whether an affine step leaves enough to be classified (docs/mutators.md): `after` is what the rule made of `before`,
// samples of the type. A move by the whole width leaves nothing.
bool leaves_enough(const Mutator& mutator, const Rule& rule, const SampleType& type, const void* before,
                   const void* after);

struct Parent {
  at::Tensor image;          // [C, H, W] uint8, or a sound [channels, length] int16
  at::Tensor reference;      // likewise: the seed, with the lineage's affine step if it had one
  bool affine_used = false;  // the lineage had it
  Rng rng{0};                // a stream of this mutation's own
};

struct Mutant {
  Rule rule;
  bool valid = false;  // false: dropped after the last try; the rule is the last one tried
  bool affine_used = false;
  int tries = 0;  // rules applied; 0: there was none to draw
};

struct Mutants {
  at::Tensor images;      // [N, ...] of the parents' type; the parent's where there is no valid mutant
  at::Tensor references;  // likewise: what the mutants' own children are held against
  std::vector<Mutant> each;

  std::int64_t valid() const;
};

class MutationEngine {
 public:
  struct Options {
    Validity validity;
    int max_tries = 50;
    bool exempt_style = false;  // mutators of the style group are not held to the bounds
  };
  // `context.type` is that of every parent.
  MutationEngine(const std::string& mutators, const MutationContext& context, const Options& options);
  MutationEngine(const std::string& mutators, const MutationContext& context)
      : MutationEngine(mutators, context, Options()) {}

  // Row i is the mutant of parent i. Uses all workers; the result is a function of the parents alone.
  Mutants mutate(const std::vector<Parent>& parents) const;

  // What a lineage makes of its seed, step by step: image, reference and whether the affine step was used.
  Parent replay(const at::Tensor& seed, const std::vector<Rule>& rules) const;
  // Whether an image is near enough to its reference. Repetitions are.
  bool valid(const at::Tensor& reference, const at::Tensor& image) const;

  const MutatorSet& set() const { return set_; }
  const SampleType& type() const { return type_; }

 private:
  Mutant mutate_one(const Parent& parent, std::uint8_t* image, std::uint8_t* reference) const;
  // `non_zero` of an image reference is counted where it is negative.
  bool near(const void* reference, const void* mutant, std::int64_t& non_zero) const;
  void check(const at::Tensor& input, std::size_t index, const char* what) const;

  MutatorSet set_;
  SampleType type_;
  ImageShape image_;  // where the type is one of images
  Options options_;
};

}  // namespace galvani
