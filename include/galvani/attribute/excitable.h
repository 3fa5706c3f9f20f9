// Excitable neurons (DeepSensor, definition 3): those that answer for most of what a change of an input does to the
// loss.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/attribute/shapley.h"
#include "galvani/model/network.h"
#include "galvani/trace/trace.h"

namespace galvani {

// Neurons as players. What a coalition is worth is the loss of the network on a changed input less that on the input it
// was made of, all other neurons being set to zero (DeepSensor, equation 3): one game an input.
class LossGame : public Game {
 public:
  // inputs [N, ...] as Network::run takes them, labels [N] int64. `originals` likewise, or undefined: then a coalition
  // is worth the loss on the input alone. Values are linear in games, so those of a change are those of the changed
  // input less those of the original. Of taps that are switched off at one place, such as a layer and its activation
  // function, the first counts.
  LossGame(Network& network, const std::vector<int>& taps, at::Tensor inputs, at::Tensor originals, at::Tensor labels);

  std::int64_t size() const override { return inputs_.size(0); }
  std::int64_t players() const override { return layout_.neurons; }
  at::Tensor worth(const at::Tensor& games, const at::Tensor& masks) override;
  Diagonal along(const at::Tensor& games, const at::Tensor& degrees, const at::Tensor& weights) override;

  // Which neuron is which player.
  const TraceLayout& layout() const { return layout_; }
  // Passes of the network for one coalition.
  std::int64_t passes_each() const { return originals_.defined() ? 2 : 1; }

 private:
  at::Tensor losses(const at::Tensor& inputs, const at::Tensor& games, const at::Tensor& masks) const;
  Diagonal loss_along(const at::Tensor& inputs, const at::Tensor& games, const at::Tensor& degrees,
                      const at::Tensor& weights) const;

  Network& network_;
  std::vector<int> taps_;
  at::Tensor inputs_;
  at::Tensor originals_;
  at::Tensor labels_;
  TraceLayout layout_;
};

// When a neuron counts as excitable.
struct ExcitementThreshold {
  double lambda = 0.01;
  bool relative = false;  // to the largest value of the input, whatever its sign
};
// values [N, neurons] double → [N, neurons] bool. A value that is not a number is below every threshold.
at::Tensor excitable(const at::Tensor& values, const ExcitementThreshold& threshold);

// The `count` largest of values [N, neurons], equal ones by their number: [N, count] int64.
at::Tensor largest(const at::Tensor& values, std::int64_t count);
// How many of the first's neurons are among the second's: [N] int64 of two [N, count].
at::Tensor shared_neurons(const at::Tensor& a, const at::Tensor& b);

// "conv2" neuron 3.
struct NeuronPlace {
  std::string tap;
  std::int64_t neuron;
};
NeuronPlace place_of(const TraceLayout& layout, std::int64_t neuron);

// Changed inputs beside what they were made of.
struct ChangedInputs {
  std::string name;      // of what changed them
  at::Tensor inputs;     // [N, ...]
  at::Tensor originals;  // likewise
  at::Tensor labels;     // [N] int64
  // For every input what it was made of: a number that two groups have in common where they changed the same one.
  std::vector<std::int64_t> of;
};

struct ExciteOptions {
  std::string by = "path";  // an estimator
  std::vector<int> taps;
  ExcitementThreshold threshold;
  std::int64_t top = 10;
  std::uint64_t seed = 0;
};

// What a group of changed inputs excites.
struct Excitement {
  std::string name;
  std::vector<std::int64_t> of;  // what the inputs were made of; those whose values are not finite are left out
  std::int64_t not_finite = 0;
  ShapleyValues values;
  at::Tensor excitable;  // [N, neurons] bool
  at::Tensor mean;       // [neurons] double, of the values
  at::Tensor top;        // [N, top] int64: the most excited neurons of each input
  at::Tensor top_mean;   // [top] int64: by the mean
  double share() const;  // of the neurons that are excitable, on average
};
// Error(bad_input) if no input of a group has finite values.
Excitement excite(Network& network, const ChangedInputs& group, const ExciteOptions& options);

// How many of their most excited neurons two groups have in common.
struct SharedExcitement {
  std::int64_t of_means = 0;
  double each = 0;         // on average over pairs of inputs that were made of the same one
  std::int64_t pairs = 0;  // 0: there are none
  double by_chance = 0;    // of so many neurons drawn at random
};
SharedExcitement shared(const Excitement& a, const Excitement& b);

// A strip for each tap, a cell for each neuron, coloured by value: red above zero, blue below.
struct NeuronStrip {
  std::string title;
  at::Tensor values;  // [neurons] double
};
std::string strips_svg(const std::string& title, const TraceLayout& layout, const std::vector<NeuronStrip>& strips);

}  // namespace galvani
