// Changes of 8-bit images and of 16-bit sounds. A mutator is a kind of change, a rule is one change with every
// parameter fixed.
//
// A rule has a text form, `rotation:angle=-12` or `noise:sigma=8,seed=123456`, that fully determines what it does: the
// text applied to the same input gives the same bytes. Lineage, replay and minimisation rest on that.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "galvani/base/registry.h"
#include "galvani/data/sample.h"

namespace galvani {

// Of an image [C, H, W] uint8: planes one after the other, red first.
struct ImageShape {
  int channels = 1;
  int height = 0;
  int width = 0;

  std::size_t plane() const { return static_cast<std::size_t>(height) * static_cast<std::size_t>(width); }
  std::size_t bytes() const { return static_cast<std::size_t>(channels) * plane(); }
  bool operator==(const ImageShape& other) const {
    return channels == other.channels && height == other.height && width == other.width;
  }
};

// Throws Error(usage) unless `image` is [C, H, W] uint8, C 1 or 3, not empty.
ImageShape shape_of(const at::Tensor& image);

// Of a sound [channels, length] int16 at a rate: channels one after the other.
struct SoundShape {
  std::size_t channels = 1;
  std::size_t length = 0;
  double rate = 0;  // samples a second
};

// What a mutator may need besides the input.
struct MutationContext {
  SampleType type;          // of the inputs that will be mutated
  at::Tensor style_images;  // [N, C, H, W] uint8 of any size, gray or RGB; undefined: there is no style source
};

struct Rule {
  static constexpr std::size_t kMaxParameters = 5;
  int mutator = -1;                             // position in mutators()
  std::array<double, kMaxParameters> values{};  // in the order of Mutator::parameters(); a choice is its position

  bool operator==(const Rule& other) const { return mutator == other.mutator && values == other.values; }
};

// The Revisiting study's two groups of DeepHunter's transformations; style belongs to neither.
enum class MutatorGroup { differentiable, non_differentiable, style };
const char* to_string(MutatorGroup group);

struct MutatorTraits {
  MutatorGroup group = MutatorGroup::style;
  bool affine = false;
  std::size_t shown = 1;                // so many leading parameters are always written in a rule's text
  SampleKind kind = SampleKind::image;  // of the inputs it changes
};

// Immutable once made, so that threads may share one.
class Mutator {
 public:
  explicit Mutator(MutatorTraits traits) : traits_(traits) {}
  virtual ~Mutator() = default;
  Mutator(const Mutator&) = delete;
  Mutator& operator=(const Mutator&) = delete;

  const std::string& name() const { return name_; }
  int index() const { return index_; }
  bool affine() const { return traits_.affine; }
  MutatorGroup group() const { return traits_.group; }
  SampleKind kind() const { return traits_.kind; }
  // What a rule fixes. Settings of the mutator itself, such as a model's path, are not among them.
  const OptionSchema& parameters() const { return parameters_; }
  // The sentence that says why it cannot be used as it is; empty: it can.
  virtual std::string missing() const { return ""; }
  // SHA-256 of what it took from files, such as a network; empty: nothing.
  virtual std::string files_sha256() const { return ""; }
  // How many values a parameter has that is drawn unless given (`seed`, `image`); 0 for the others.
  std::int64_t free_values(std::size_t parameter) const;

  std::string text(const Rule& rule) const;
  // Every value within its bounds, `seed` and `image` given; usage error otherwise.
  Rule parse(const Spec& spec) const;
  // Throws Error(usage) where values do not go together, such as a median over an even size.
  void check(const Rule& rule) const;

  // `in` and `out` hold type.bytes() bytes each and do not overlap. REQUIRES a rule of this mutator that passed check,
  // and a type of its kind.
  void apply(const Rule& rule, const SampleType& type, const void* in, void* out) const {
    change(rule.values.data(), type, in, out);
  }
  // [C, H, W] uint8, or [channels, length] int16 → a new one.
  at::Tensor apply(const Rule& rule, const at::Tensor& input) const;

 protected:
  virtual std::int64_t style_count() const { return 0; }

 private:
  virtual void change(const double* values, const SampleType& type, const void* in, void* out) const = 0;
  virtual std::string objection(const double*) const { return ""; }
  friend std::unique_ptr<Mutator> make_mutator(const Spec& spec, const MutationContext& context);

  MutatorTraits traits_;
  std::string name_;
  std::int64_t rate_ = 0;  // of the sounds that are changed
  int index_ = -1;
  OptionSchema parameters_;
  Spec settings_;  // those given that are no parameters: part of every rule's text
};

class ImageMutator : public Mutator {
 public:
  using Mutator::Mutator;

 private:
  void change(const double* values, const SampleType& type, const void* in, void* out) const final;
  virtual void run(const double* values, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const = 0;
};

class SoundMutator : public Mutator {
 public:
  // `affine`: the sound is as good as before, only placed, paced, tuned or loud otherwise.
  explicit SoundMutator(bool affine = false)
      : Mutator({MutatorGroup::non_differentiable, affine, 1, SampleKind::audio}) {}

 private:
  void change(const double* values, const SampleType& type, const void* in, void* out) const final;
  virtual void run(const double* values, const SoundShape& shape, const std::int16_t* in, std::int16_t* out) const = 0;
};

using MutatorRegistry = Registry<std::unique_ptr<Mutator>, const MutationContext&>;
const MutatorRegistry& mutators();

// Takes settings from `spec` and leaves parameters alone.
std::unique_ptr<Mutator> make_mutator(const Spec& spec, const MutationContext& context);
// A setting is a string without choices.
bool is_setting(const OptionInfo& info);

// A parameter's value as a rule holds it, and back.
double rule_value(const OptionInfo& info, const OptionValue& value);
std::string rule_value_text(const OptionInfo& info, double value);

}  // namespace galvani
