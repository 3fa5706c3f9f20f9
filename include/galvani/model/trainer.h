// Gradient descent over one network or several, on any loss: same seed, same weights, whatever the number of threads,
// interrupted or not. Training a classifier (train.h) is one user of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "galvani/base/rng.h"
#include "galvani/model/network.h"

namespace galvani {

// Trainable parameters that one optimizer changes.
struct ParameterGroup {
  struct Member {
    std::size_t network;           // index among the trainer's
    std::string parameters = "*";  // names and globs separated by commas; a layer's name stands for all it has
    std::string frozen = {};       // likewise: what stays as it is all the same, running statistics included
  };
  std::string name;  // "generators"
  std::vector<Member> members;
  std::string optimizer = "sgd";  // a spec of optimizers()
};

// A micro-batch of a step, as a loss sees it.
class Slot {
 public:
  std::int64_t index() const { return index_; }                    // among the slots of the step
  const std::vector<std::int64_t>& rows() const { return rows_; }  // its share of the step's rows
  std::int64_t batch() const { return batch_; }                    // rows in all slots together
  // The step's random stream, the same in every slot: what concerns a row is drawn from a stream derived by that row.
  const Rng& stream() const { return stream_; }

  // What the network gives in training mode, recorded for autograd: the logits of a classifier, every output of a
  // network loaded for any. `input` [n, ...] float, preprocessed.
  std::vector<at::Tensor> forward(std::size_t network, const at::Tensor& input);

  // The gradient of a number made of the network's first output, with respect to the input. Running statistics stay.
  at::Tensor input_gradient(std::size_t network, const at::Tensor& input,
                            const std::function<at::Tensor(const at::Tensor& logits)>& number);

 private:
  friend class Trainer;
  Rng next_stream();  // of a call
  Slot(class Trainer& trainer, std::int64_t index, std::vector<std::int64_t> rows, std::int64_t batch,
       const Rng& stream)
      : trainer_(trainer), index_(index), rows_(std::move(rows)), batch_(batch), stream_(stream) {}
  class Trainer& trainer_;
  std::int64_t index_;
  std::vector<std::int64_t> rows_;
  std::int64_t batch_;
  Rng stream_;
  std::uint64_t calls_ = 0;
};

struct SlotLoss {
  at::Tensor loss;              // a number. The step descends the slots' sum: for a mean over rows divide by batch()
  std::vector<double> figures;  // added up over the slots, in their order
};
// Called for the slots of a step from several threads at once, with gradients recorded.
using Loss = std::function<SlotLoss(Slot&)>;

// All of [0, n), in an order of its own every epoch, `batch` at a time.
class ShuffledRows {
 public:
  ShuffledRows(std::int64_t n, std::int64_t batch, const Rng& rng);
  std::int64_t steps() const { return (n_ + batch_ - 1) / batch_; }
  std::vector<std::int64_t> rows(std::int64_t epoch, std::int64_t step);

 private:
  std::int64_t n_;
  std::int64_t batch_;
  Rng rng_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> order_;
};

// Rows of two parts, [0, first) and [first, first + second), in every batch in the same proportion: `share` of it are
// of the second. An epoch shows each of the second once, and of the first as many as that takes, all of them equally
// often.
class MixedRows {
 public:
  MixedRows(std::int64_t first, std::int64_t second, double share, std::int64_t batch, const Rng& rng);
  std::int64_t size() const { return size_; }  // rows of an epoch
  std::int64_t steps() const { return (size_ + batch_ - 1) / batch_; }
  std::vector<std::int64_t> rows(std::int64_t epoch, std::int64_t step);

 private:
  std::int64_t first_;
  std::int64_t second_;
  std::int64_t size_;
  std::int64_t batch_;
  ShuffledRows firsts_;  // its epochs are passes over the first part
  ShuffledRows seconds_;
};

// Where a training stands; saved in its checkpoint.
struct TrainState {
  std::int64_t epoch = 0;             // epochs completed
  std::int64_t step = 0;              // steps completed of the next one
  std::vector<std::int64_t> updates;  // of each group
  std::vector<double> sums;           // of the steps' figures since the epoch began
  std::string stopped;                // why it ended before its last epoch; empty: it did not
  std::vector<double> numbers;        // the user's own
  std::vector<at::Tensor> kept;       // the user's own
};

// A training from its first step to its last.
struct TrainLoop {
  std::int64_t epochs = 1;
  std::int64_t rows = 0;    // of an epoch
  std::int64_t batch = 64;  // rows of a step; the last one of an epoch may have fewer
  std::string unit = "images";
  std::filesystem::path checkpoint;  // empty: none. Stays when training ends
  std::string settings;              // what must be the same to go on from it, one "key = value" a line
  // One step: calls Trainer::step, once or for each of its phases, and returns its figures. REQUIRED.
  std::function<std::vector<double>()> step;
  std::function<bool()> enough;       // asked before each step: the epoch ends here
  std::function<void()> epoch_ended;  // TrainState::stopped may be set here
  std::function<void()> resumed;      // the state is that of a checkpoint
  std::function<std::string()> note;  // for the progress bar

  std::int64_t steps() const { return (rows + batch - 1) / batch; }
};

class Trainer {
 public:
  struct Options {
    std::int64_t batch = 64;        // most rows of a step
    std::int64_t micro_batch = 32;  // rows of a slot; batch norm's statistics are over this many
    std::uint64_t seed = 0;
    bool batch_statistics = true;  // false: batch norm works with the running ones and leaves them as they are
  };
  // The networks are in training mode until the trainer ends; Network::run and apply evaluate them meanwhile, with the
  // weights of the moment. Usage error if a group names no parameter.
  Trainer(const std::vector<Network*>& networks, const std::vector<ParameterGroup>& groups, const Options& options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  struct Step {
    std::vector<std::int64_t> rows;   // cut into slots
    std::vector<std::size_t> groups;  // whose parameters are changed
    double rate = 1;                  // factor on their learning rates
    std::uint64_t phase = 0;          // of several with the same rows: each draws from a stream of its own
  };
  // One update: the gradients of all slots, summed in their order; running statistics become the mean of the slots'.
  // Returns the figures. Usage error if the loss is not finite; then nothing is changed.
  std::vector<double> step(const Step& step, const Loss& loss);

  // Runs the loop to its end, from its checkpoint if there is one of the same settings (of others: usage error that
  // names the difference). Ctrl-C saves the checkpoint and throws Error(interrupted). Returns whether it resumed.
  bool run(const TrainLoop& loop);

  TrainState& state();
  const TrainState& state() const;
  const Rng& rng() const;  // Rng(seed).derive("train"): for the order of rows
  double seconds() const;  // since the epoch began or was resumed
  double base_rate(std::size_t group) const;

  // Parameters and running statistics of all networks, live.
  std::vector<at::Tensor> weights() const;
  // Copies such a list back.
  void set_weights(const std::vector<at::Tensor>& values);

 private:
  friend class Slot;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace galvani
