// The network in training mode: one replica per slot of a batch, all sharing the parameters.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "galvani/base/rng.h"
#include "model/network_impl.h"

namespace galvani {

class TrainingGraph {
 public:
  // While it lives, the network's parameters require gradients.
  // Without batch statistics, batch norm works with the running ones and leaves them as they are.
  TrainingGraph(Network::Impl& impl, std::int64_t slots, bool batch_statistics);
  ~TrainingGraph();
  TrainingGraph(const TrainingGraph&) = delete;
  TrainingGraph& operator=(const TrainingGraph&) = delete;

  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const std::vector<std::string>& parameter_names() const { return names_; }  // as Network::parameters has them
  // Running statistics: floating-point tensors of the module that are not parameters.
  const std::vector<at::Tensor>& statistics() const { return statistics_; }

  // Of a preprocessed input, recorded for autograd: the logits, or all outputs of a network loaded for any. Slots may
  // run at the same time. Dropout draws from `rng`.
  std::vector<at::Tensor> forward(std::int64_t slot, const at::Tensor& input, const Rng& rng);

  // Before a step the slots' statistics are the network's; after it, the network's are the mean of the slots'. Of a
  // network that no slot ran they stay, to the bit.
  void spread_statistics();
  void merge_statistics(std::int64_t slots);
  // From now on the network's own stay as they are, of those whose names, as Network::parameters has them, are chosen.
  void freeze_statistics(const std::function<bool(const std::string& name)>& chosen);
  // A slot's own, to undo what a pass did to them.
  std::vector<at::Tensor> copy_of_statistics(std::int64_t slot) const;
  void restore_statistics(std::int64_t slot, const std::vector<at::Tensor>& values);

 private:
  Network::Impl& impl_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> statistics_;
  std::vector<std::string> statistic_names_;
  std::vector<char> frozen_;  // of the statistics
  std::vector<torch::jit::Module> replicas_;
  std::vector<std::vector<at::Tensor>> replica_statistics_;  // [slot][statistic]
  std::atomic<bool> ran_{false};                             // since the statistics were spread
  torch::jit::Code code_;
};

}  // namespace galvani
