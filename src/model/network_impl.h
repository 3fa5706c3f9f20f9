// The inside of Network, for the files that implement it and for training.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "galvani/model/network.h"
#include "model/executor.h"

namespace galvani {

struct Network::Impl {
  NetworkInfo info;
  ModelCard card;
  torch::jit::Module module;  // as loaded; its parameters are shared with the executor
  std::unique_ptr<Executor> executor;
  std::vector<Tap> taps;
  Execution execution;
  std::int64_t wanted_micro_batch = 0;  // 0: any
  bool may_fuse = true;
  std::map<std::string, std::string> initializer_of;  // module attribute → ONNX initialiser
  std::vector<std::string> trainable;                 // paths of the parameters that training changes, in module order
  std::string original;                               // the ONNX file, to write new weights into
  std::filesystem::path folder;

  // Runs zeros through every tap to learn shapes, classes and whether the batch size is free.
  void probe(const std::vector<std::int64_t>& data_shape);
  at::Tensor prepare(const at::Tensor& images, const Execution& form) const;
  // Makes a graph of single images take any number, if every tap then has the values it has for single ones.
  bool free_batch();
};

// Repeatable values of all sizes, [size, ...shape] uint8.
at::Tensor probe_images(std::int64_t size, const std::vector<std::int64_t>& shape);

// The fastest execution of the network on this machine, from the record in the cache folder or measured now.
Execution tuned_execution(Network::Impl& impl);

}  // namespace galvani
