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
  // input less those of the original.
  LossGame(Network& network, std::vector<int> taps, at::Tensor inputs, at::Tensor originals, at::Tensor labels);

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

// A strip for each tap, a cell for each neuron, coloured by value: red above zero, blue below.
struct NeuronStrip {
  std::string title;
  at::Tensor values;  // [neurons] double
};
std::string strips_svg(const std::string& title, const TraceLayout& layout, const std::vector<NeuronStrip>& strips);

}  // namespace galvani
