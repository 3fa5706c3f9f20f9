// The inside of Trainer, for steps and for the loop around them.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "galvani/model/train.h"
#include "galvani/model/trainer.h"
#include "model/train/training_graph.h"

namespace galvani {

struct Trainer::Impl {
  struct Group {
    std::string optimizer_name;
    std::unique_ptr<Optimizer> optimizer;
    std::vector<at::Tensor> parameters;
  };

  explicit Impl(const Options& own) : options(own), rng(Rng(own.seed).derive("train")) {}
  Group make_group(const ParameterGroup& wanted) const;

  Options options;
  Rng rng;
  std::vector<Network*> networks;
  std::vector<std::unique_ptr<TrainingGraph>> graphs;  // of the networks
  std::vector<Group> groups;
  TrainState state;
  std::chrono::steady_clock::time_point epoch_began = std::chrono::steady_clock::now();
};

}  // namespace galvani
