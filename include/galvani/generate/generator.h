// Where a campaign's candidates come from: changes by rules, noise, and later attacks, swarms and networks.
//
// A generator is asked for candidates of some picked parents, in one round or several; a later round sees what came of
// the one before. What it gives is checked, brought to the grid of the file format and counted once, in the public
// calls; an author writes the private `run...` ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "galvani/base/registry.h"
#include "galvani/base/rng.h"
#include "galvani/data/sample.h"
#include "galvani/model/network.h"

namespace galvani {

// What a generator is made for. Inputs are as files hold them: uint8 images [C, H, W], or int16 sounds.
struct GeneratorContext {
  at::Tensor seeds;                           // [N, ...]: what a campaign starts from
  at::Tensor style_images;                    // [N, C, H, W] uint8 of any size; undefined: the seeds
  Network* network = nullptr;                 // under test; null where lineages are only followed
  std::int64_t rate = 0;                      // of sounds, samples a second
  std::vector<std::string> class_names = {};  // of the labels of parents; empty: their numbers
};

struct PickedParent {
  at::Tensor input;
  at::Tensor seed;   // where its lineage starts
  std::string memo;  // what Generator::inherit makes of its lineage
  std::int64_t label = 0;
  std::int64_t iteration = 0;
  Rng base{0};                // of the campaign
  at::Tensor reference = {};  // [outputs] of a task by reference; else undefined

  // The random numbers of one of its candidates.
  Rng stream(std::int64_t slot) const {
    return base.derive({static_cast<std::uint64_t>(iteration), static_cast<std::uint64_t>(slot)});
  }
};

// How much is wanted of a batch of picks.
struct PickOrder {
  std::int64_t energy = 64;   // candidates a parent
  bool stop_at_kept = false;  // one of every parent at a time, and no more of a parent once one is kept
};

struct Candidate {
  std::size_t parent = 0;  // its place among the picked
  std::int64_t slot = 0;   // its number among those of its parent, from 0
  bool valid = false;      // only valid ones are shown to the network
  int kind = -1;           // its place in Generator::kinds(); -1: there was nothing to try
  bool repeatable = true;  // its provenance alone can make it again
};

struct Candidates {
  at::Tensor inputs;  // [N, ...] of the parents' type; anything where a candidate is not valid
  std::vector<Candidate> each;
};

// What came of candidates that were shown to the network, in their order.
struct Outcome {
  std::vector<std::int64_t> rows;  // of the Candidates
  at::Tensor logits;               // [rows, classes] float
  at::Tensor predicted;            // [rows] int64
  std::vector<char> kept;
};

class Generator;

// The work on one batch of picks.
class Proposal {
 public:
  Proposal(const Generator& generator, std::vector<PickedParent> parents, const PickOrder& order);
  virtual ~Proposal() = default;
  Proposal(const Proposal&) = delete;
  Proposal& operator=(const Proposal&) = delete;

  const std::vector<PickedParent>& parents() const { return parents_; }

  // The next ones, at most `most`, parent by parent; none: it is done. REQUIRES that the outcome of the call before was
  // told. How many are asked for at a time changes nothing.
  Candidates next(std::int64_t most);
  void learn(const Outcome& outcome);

  // Of a row of the last call, from any thread. The provenance says how it was made of its parent, such as
  // "rotation:angle=-12"; figures are the generator's own, by name.
  std::string provenance(std::size_t row) const { return run_provenance(row); }
  std::vector<std::pair<std::string, double>> figures(std::size_t row) const { return run_figures(row); }

 protected:
  const PickOrder& order() const { return order_; }
  // For generators whose candidates do not depend on outcomes: the next (parent, slot) pairs that are due.
  std::vector<Candidate> due(std::int64_t most);
  // Nothing more is wanted of a parent.
  bool closed(std::size_t parent) const { return closed_[parent] != 0; }
  const Generator& generator() const { return generator_; }

 private:
  // Inputs of the parents' type, or float ones in its unit, which are rounded and clipped.
  virtual Candidates run(std::int64_t most) = 0;
  virtual void run_learn(const Outcome&) {}
  virtual std::string run_provenance(std::size_t row) const = 0;
  virtual std::vector<std::pair<std::string, double>> run_figures(std::size_t) const { return {}; }

  const Generator& generator_;
  std::vector<PickedParent> parents_;
  PickOrder order_;
  std::vector<char> closed_;
  std::vector<Candidate> last_;  // given by the last call
  std::size_t parent_ = 0;       // of the next one that is due
  std::int64_t slot_ = 0;
};

// A generator does not change while it is used, so that lineages can be followed from any thread.
class Generator {
 public:
  virtual ~Generator() = default;

  const std::string& id() const { return id_; }      // "mutate"
  const std::string& spec() const { return spec_; }  // every option resolved

  std::unique_ptr<Proposal> begin(std::vector<PickedParent> parents, const PickOrder& order) const;

  // What yields are counted by: names of mutators, for example. A provenance begins with its kind.
  virtual std::vector<std::string> kinds() const { return {id()}; }
  // What its candidates depend on in files, as one SHA-256; empty: nothing.
  virtual std::string files_sha256() const { return ""; }
  // SHA-256 of what it makes of an input here, to notice a machine that computes otherwise; empty: nothing to notice.
  virtual std::string probe(const at::Tensor& seed) const;

  // --- lineages

  // What is to be known of a lineage to go on with it, after one more step; "" of a seed.
  virtual std::string inherit(const std::string& memo, const std::string& provenance) const { return ""; }
  // The candidate once more. Usage error if the provenance is none of ours, or cannot make it again.
  at::Tensor make(const std::string& provenance, const at::Tensor& parent, const at::Tensor& seed) const;
  // What candidates of a lineage are held against.
  virtual at::Tensor reference(const at::Tensor& seed, const std::string& memo) const { return seed; }
  // Whether an input is near enough to it.
  virtual bool valid(const at::Tensor& reference, const at::Tensor& input) const { return true; }
  // The same step at parts of its strength, the weakest first; empty: it has no strength to speak of.
  virtual std::vector<std::string> weaker(const std::string& provenance) const { return {}; }

  // Forward passes of inputs it has run itself.
  std::int64_t passes() const { return passes_; }

 protected:
  void count_passes(std::int64_t inputs) const { passes_ += inputs; }

 private:
  friend std::unique_ptr<Generator> make_generator(const Spec& spec, const GeneratorContext& context);
  virtual std::unique_ptr<Proposal> run_begin(std::vector<PickedParent> parents, const PickOrder& order) const = 0;
  virtual at::Tensor run_make(const std::string& provenance, const at::Tensor& parent,
                              const at::Tensor& seed) const = 0;

  std::string id_;
  std::string spec_;
  at::Tensor example_;  // a seed: what every input looks like
  mutable std::atomic<std::int64_t> passes_{0};
};

using GeneratorRegistry = Registry<std::unique_ptr<Generator>, const GeneratorContext&>;
// A program may add its own.
GeneratorRegistry& generators();
// Every option resolved, those a preset sets included (`mutate:validity=nlc-code`). What is usual may depend on the
// kind of the inputs.
std::string resolved_generator(const Spec& spec, SampleKind kind = SampleKind::image);
// How many candidates of a parent one search takes; 0: it does not search, so that any number makes sense.
std::int64_t usual_energy(const std::string& spec);
std::unique_ptr<Generator> make_generator(const Spec& spec, const GeneratorContext& context);

// Without the options that are at their defaults: "mutate", "mutate:set=style".
std::string short_generator(const std::string& spec);

// "rotation" of "rotation:angle=-12".
std::string kind_of(const std::string& provenance);

// A lineage followed from its seed.
struct Followed {
  at::Tensor input;
  std::string memo;
};
Followed follow(const Generator& generator, const at::Tensor& seed, const std::vector<std::string>& provenances);

}  // namespace galvani
