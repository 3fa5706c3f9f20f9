// A selector says which unlabelled inputs of a pool are worth a label: it gives every input a score, or all of them an
// order. What it reads it asks for, so that selectors of one run share the passes through the network.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "galvani/base/registry.h"
#include "galvani/data/sample.h"
#include "galvani/model/network.h"
#include "galvani/trace/deep_features.h"
#include "galvani/trace/trace.h"

namespace galvani {

struct SelectorNeeds {
  std::vector<FeatureNeed> features;
  bool traces = false;     // neurons of the default taps, as coverage criteria read them
  bool relevance = false;  // with their relevance
  bool training = false;   // training data are seen before the pool
  bool originals = false;  // what each input was made of
  double sample = 0;       // this share of the pool, drawn at random, is seen before all of it
  std::string mutators;    // of fresh mutants of every input; empty: none
  std::int64_t mutants = 0;
  std::string sample_mutators;  // of one mutant of every input of the sample, in place of those
};

// What the network made of some inputs.
struct Seen {
  at::Tensor logits;                 // [n, classes] float
  at::Tensor probabilities;          // [n, classes] float
  at::Tensor predicted;              // [n] int64: verdicts
  std::vector<at::Tensor> features;  // [n, width] float, one for each feature that was asked for
  Traces traces;                     // if asked for

  std::int64_t size() const { return predicted.size(0); }
};

struct TrainingPart {
  at::Tensor inputs;  // [n, ...shape]
  at::Tensor labels;  // [n] int64
  Seen seen;
};

struct PoolPart {
  std::vector<std::int64_t> rows;  // of the pool, ascending; of a whole pass: one after the other
  at::Tensor inputs;               // [n, ...shape]
  Seen seen;
  Seen original;              // if asked for
  std::vector<Seen> mutants;  // as many as were asked for
};

struct Ranking {
  std::vector<std::int64_t> order;  // all of the pool, the most worthwhile first
  std::vector<double> scores;       // of each input, in the order of the pool; NaN: it could not be scored
};

// Inputs that are looked at again because they are among the best.
struct Shortlist {
  std::vector<std::int64_t> rows;  // the best first
  std::vector<double> scores;      // theirs
  at::Tensor features;             // [n, width] float
};

class Selector {
 public:
  virtual ~Selector() = default;

  const std::string& id() const { return id_; }      // "nss"
  const std::string& spec() const { return spec_; }  // every option resolved
  virtual SelectorNeeds needs() const { return {}; }
  virtual bool random() const { return false; }  // its result depends on the seed (beyond ties)
  // What a user should know, such as what stood in for something that the model does not have.
  virtual std::vector<std::string> notes() const { return {}; }

  // In this order: training data piece by piece, the sample, then the whole pool.
  void train(const TrainingPart& part);
  void finish_training() { run_finish_training(); }
  void sample(const PoolPart& part);
  void finish_sample() { run_finish_sample(); }
  void add(const PoolPart& part);

  // Equal scores are in an order drawn by the seed: that of the pool may be one of classes. Inputs whose output is not
  // a number come first, for they are wrong whatever their label; those that cannot be scored come last.
  Ranking rank(std::uint64_t seed);

  // Of how many of the best the features are wanted again before `budget` of them are picked; 0: the ranking says it.
  virtual std::int64_t reach(std::int64_t budget) const { return 0; }
  virtual FeatureNeed refined_by() const { return {}; }
  // `budget` of the candidates, in order of preference. REQUIRES budget <= candidates.
  std::vector<std::int64_t> refine(const Shortlist& candidates, std::int64_t budget) const;

 private:
  friend std::unique_ptr<Selector> make_selector(const Spec& spec, const struct SelectContext& context);

  virtual void run_train(const TrainingPart&) {}
  virtual void run_finish_training() {}
  virtual void run_sample(const PoolPart&) {}
  virtual void run_finish_sample() {}
  // scores: one for each row of the part, NaN to begin with.
  virtual void run(const PoolPart& part, double* scores) = 0;
  // For selectors that order rather than score: all rows of the pool, the best first; scores may be changed. Empty: by
  // score.
  virtual std::vector<std::int64_t> run_order(std::vector<double>& scores) { return {}; }
  // Indices into the candidates.
  virtual std::vector<std::int64_t> run_refine(const Shortlist&, std::int64_t) const { return {}; }
  virtual bool looks_at_output() const { return true; }

  std::string id_;
  std::string spec_;
  std::vector<double> scores_;
  std::vector<std::int64_t> not_a_number_;
};

// What a selector is made for.
struct SelectContext {
  Network& network;
  SampleType type;        // of the pool
  std::int64_t pool = 0;  // its size
  std::uint64_t seed = 0;
  bool training = false;  // training data are given
  bool originals = false;
};

using SelectorRegistry = Registry<std::unique_ptr<Selector>, const SelectContext&>;
// A program may add its own.
SelectorRegistry& selectors();
// Usage error if it needs what is not given.
std::unique_ptr<Selector> make_selector(const Spec& spec, const SelectContext& context);

}  // namespace galvani
