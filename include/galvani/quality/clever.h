// CLEVER (Weng et al. 2018): an estimate of how far an input is from the nearest one with another verdict, from the
// largest slopes that are found around it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/base/gate.h"
#include "galvani/base/json.h"
#include "galvani/base/options.h"
#include "galvani/base/rng.h"
#include "galvani/quality/statistics.h"
#include "galvani/quality/tests.h"
#include "galvani/quality/weibull.h"

namespace galvani {

enum class CleverNorm { l1, l2, linf };

struct CleverSettings {
  std::int64_t batches = 100;  // N_b; the authors take 500
  std::int64_t samples = 100;  // of a batch, N_s; the authors take 1024
  CleverNorm norm = CleverNorm::l2;
  double radius = 5;  // of the ball, full scale being 1
  // Classes that score best besides the verdict; 0: all. Every one costs a backward pass of every sample.
  std::int64_t targets = 9;
  bool clip = true;  // samples stay what a file can hold
};

struct CleverTarget {
  std::int64_t target = 0;  // a class
  double margin = 0;        // by how much the verdict's score is above its own
  double largest = 0;       // slope that was seen
  ExtremeFit fit;
  double score = 0;  // margin / fit.bound, at most the radius
};

struct CleverScore {
  std::int64_t verdict = 0;
  std::vector<CleverTarget> targets;  // by class
  double score() const;               // the smallest
  const CleverTarget& nearest() const;
};

// `input` [...shape] of bytes or 16-bit numbers. Every sample is drawn from a stream of its own, so the result follows
// from `rng` and not from threads. Error(bad_input) if the network has no gradients.
CleverScore clever(Network& network, const at::Tensor& input, const CleverSettings& settings, const Rng& rng);

// The scores of several inputs, and of what was made of them.
struct CleverInput {
  std::int64_t row = 0;  // in the data, or the group of the tests
  std::int64_t label = 0;
  CleverScore score;
  // The smallest change of a test that was made of it and that the model gets wrong; not a number: there is none.
  double smallest_found = 0;
};
struct CleverResult {
  std::vector<CleverInput> inputs;
  std::int64_t passed_over = 0;  // the model gets them wrong as they are
  Interval interval;             // of the mean
  double seconds = 0;

  double mean() const;
  double least() const;
  double median() const;
  std::int64_t rejected() const;   // targets, of all inputs, whose maxima no distribution fits
  std::int64_t compared() const;   // inputs with a smallest change found
  std::int64_t exceeding() const;  // of those, how many have a score above it
};

// Of at most `most` inputs that the model gets right, drawn at random; unlabelled ones count as right. With a progress
// bar; Ctrl-C is honoured.
CleverResult measure_clever(Network& network, const DataView& data, std::int64_t most, const CleverSettings& settings,
                            std::uint64_t seed);
// Of originals, compared with the tests that were made of them.
CleverResult measure_clever(Network& network, const TestSet& tests, std::int64_t most, const CleverSettings& settings,
                            std::uint64_t seed);

Figures figures_of(const CleverResult& result);
Json as_json(const CleverResult& result);

}  // namespace galvani
