// How much of a score flows through each neuron: layer conductance (Dhamdhere, Sundararajan and Yan 2019), which is
// integrated gradients of a hidden layer (NSGen eq. 9-11).
//
// On the straight way from a baseline to the input, a neuron's conductance is the integral of the score's derivative by
// the neuron, times the neuron's own change. Over a layer that everything passes through, it adds up to the difference
// of the scores at both ends. All layers that are asked for come from the same passes, and a value of a layer exists
// for one micro-batch at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "galvani/base/options.h"
#include "galvani/model/network.h"

namespace galvani {

struct ConductanceOptions {
  enum class Rule {
    riemann,    // a step counts with the gradient at its end
    trapezoid,  // with the mean of the gradients at both ends
  };
  enum class Baseline {
    zero,   // what the network sees as zero: after preprocessing
    black,  // what files hold as zero
  };
  std::int64_t steps = 50;
  Rule rule = Rule::riemann;
  Baseline baseline = Baseline::zero;

  // `steps`, `rule` and `baseline`, for components that take them along with options of their own.
  static OptionSchema schema();
  static ConductanceOptions from(const Options& options);
};

struct Conductances {
  std::vector<at::Tensor> taps;  // of each tap [N, neurons] float: the mean over space or time; or [N, ...shape]
  at::Tensor difference;         // [N] float: the target's score of the input less that of the baseline
};

class Conductance {
 public:
  // `taps` are indices into Network::taps(). The network must outlive it.
  Conductance(Network& network, std::vector<int> taps, const ConductanceOptions& options = {});

  // images as Network::run takes them, [N, ...]; targets [N] int64: the class of each whose score is looked at.
  // Usage error if the network's weights changed since it was made.
  Conductances operator()(const at::Tensor& images, const at::Tensor& targets) { return run(images, targets, false); }
  // Every scalar of a tap by itself.
  Conductances full(const at::Tensor& images, const at::Tensor& targets) { return run(images, targets, true); }

  const std::vector<int>& taps() const { return taps_; }
  const ConductanceOptions& options() const { return options_; }
  const at::Tensor& baseline() const { return baseline_; }  // [1, ...] float, on the scale of files
  // Forward and backward, of one input each; the baseline's, which are few, do not count.
  std::int64_t passes() const { return passes_; }

 private:
  Conductances run(const at::Tensor& images, const at::Tensor& targets, bool full);
  void run_some(const at::Tensor& images, const at::Tensor& targets, bool full, Conductances& all, std::int64_t first);
  void learn_baseline(const at::Tensor& targets);

  Network& network_;
  std::vector<int> taps_;
  ConductanceOptions options_;
  std::uint64_t version_;
  at::Tensor baseline_;
  std::vector<at::Tensor> start_;                             // each tap's value at the baseline, [1, ...shape]
  at::Tensor start_scores_;                                   // [classes]
  std::map<std::int64_t, std::vector<at::Tensor>> gradient_;  // by class, at the baseline; of the trapezoid rule
  std::mutex mutex_;                                          // of the last three
  std::atomic<std::int64_t> passes_{0};
};

// `count` of the taps, evenly from the first to the last; all of them if there are no more.
std::vector<int> evenly_chosen(const std::vector<int>& taps, std::int64_t count);

}  // namespace galvani
