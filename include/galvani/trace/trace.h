// What a network's neurons said about a batch of inputs: one matrix, one block of columns per tap.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "galvani/data/view.h"
#include "galvani/model/network.h"

namespace galvani {

// The columns of one tap.
struct TraceBlock {
  std::string tap;
  std::int64_t first;
  std::int64_t count;
};

// Where which neuron stands. Everything that reads traces is made for one layout.
struct TraceLayout {
  std::vector<TraceBlock> blocks;
  std::int64_t neurons = 0;
  std::int64_t classes = 0;
  std::string model;  // Network::identity()
  std::vector<std::optional<LinearLayer>>
      layers;  // one per block if criteria look into layers; not part of signature()

  void add(const std::string& tap, std::int64_t count);
  const TraceBlock& block(std::string_view tap) const;  // usage error if there is none
  // What two layouts must share for one to read the other's files.
  std::string signature() const;
};

// A layer's own input, for criteria that ask what one of its features alone would have done. Undefined for a block
// whose layer is not known (LinearLayer).
struct LayerTrace {
  at::Tensor features;  // [N, features] float: channel means, or the features of a dense layer
  at::Tensor windows;   // [N, features, height x width of the kernel]: the mean of what each weight was multiplied with
};

struct Traces {
  at::Tensor values;     // [N, neurons] float, contiguous
  at::Tensor predicted;  // [N] int64
  at::Tensor logits;     // [N, classes] float
  at::Tensor relevance;  // [N, neurons] float: gradient x activation of the predicted score; undefined if not asked
  std::vector<LayerTrace> layers;  // one per block; empty if not asked
  std::vector<char> usable;        // [N]: every value is finite, and so is the verdict (not kNotANumber)

  std::int64_t size() const { return values.size(0); }
  const float* row(std::int64_t i) const { return values.data_ptr<float>() + i * values.size(1); }
};

// Fills in what follows from the values: which rows are usable. `predicted` and `logits` may be undefined for criteria
// that do not look at classes.
Traces make_traces(at::Tensor values, at::Tensor predicted = {}, at::Tensor logits = {});
// Finds the usable rows again, after something was added or a verdict was changed.
void mark_usable(Traces& traces);
// Some of the rows, in the order given.
Traces rows_of(const Traces& traces, const std::vector<std::int64_t>& rows);

enum class NeuronUnit {
  channel,  // a channel of a convolution is a neuron: its mean over space
  unit,     // every scalar is
};

// What a criterion reads besides values and predictions.
struct TraceNeeds {
  bool relevance = false;
  bool layers = false;
  TraceNeeds operator|(const TraceNeeds& other) const { return {relevance || other.relevance, layers || other.layers}; }
};

// Runs a network and hands out traces.
class Tracer {
 public:
  Tracer(Network& network, std::vector<int> taps, NeuronUnit unit, TraceNeeds needs = {});

  const TraceLayout& layout() const { return layout_; }
  Network& network() const { return network_; }
  const std::vector<int>& taps() const { return taps_; }
  NeuronUnit unit() const { return unit_; }
  void need(const TraceNeeds& needs) { needs_ = needs_ | needs; }

  // images as Network::run takes them. Usage error if the network's weights changed since the tracer was made.
  Traces trace(const at::Tensor& images) const;

  // Over data of any size, chunk by chunk in order, with a progress bar; memory stays bounded. What is in which
  // micro-batch depends on the data alone. `first` is the index of the chunk's first input.
  void stream(const DataView& data, const std::string& title,
              const std::function<void(const Traces& traces, std::int64_t first)>& sink) const;

 private:
  std::int64_t chunk() const;
  at::Tensor relevance(const at::Tensor& images) const;
  bool by_reference() const;

  Network& network_;
  std::uint64_t version_;
  std::vector<int> taps_;
  NeuronUnit unit_;
  TraceNeeds needs_;
  TraceLayout layout_;
};

}  // namespace galvani
