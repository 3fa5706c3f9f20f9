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
  bool any_output = false;
  bool any_task = false;
  std::vector<std::string> output_names;  // of the file; empty: it has none
  std::size_t result = 0;                 // which output counts
  std::int64_t wanted_micro_batch = 0;    // 0: any
  bool may_fuse = true;
  std::map<std::string, std::string> initializer_of;  // module attribute → ONNX initialiser
  std::vector<std::string> trainable;                 // paths of the parameters that training changes, in module order
  std::map<std::string, at::ScalarType> narrow;       // attributes that are float16 in the file and float32 here
  std::string original;                               // the ONNX file, to write new weights into
  std::filesystem::path folder;
  std::string loaded_weights;         // hash of the weights as loaded, once they may have changed
  std::uint64_t weights_version = 0;  // how often they may have

  bool takes_bytes() const { return info.number == "uint8"; }
  // The evaluation graph of the module as it is now.
  FrozenModule freeze();

  // Whoever changes weights calls this first, and again when anything made from them (a packed copy) is out of date.
  void weights_change();
  std::string weights_hash() const;

  // Finds out what the outputs are; whether the graph is another now, so that what was run has to be run again. `input`
  // as the graph takes it, `logits` what it gave for that.
  bool settle_head(const at::Tensor& input, const at::Tensor& logits);
  void make_logits(Head head);
  // One line about images whose values the graph takes in another form.
  void tell_reading() const;
  // Of images and what is none, in batches of that size. `probabilities`: only as far as outputs may be some.
  at::Tensor outputs_for_unlike(std::int64_t batch, bool probabilities) const;
  // Finds out what the network is asked; whether the graph is another now. `values` is what the plan gave for the probe
  // images: the output first, then every tap.
  bool settle_task(const std::vector<at::Tensor>& values, std::int64_t batch);
  // Outputs that are known by name, but are no answers yet: Error(bad_input) that names what they are.
  void refuse_output(const at::Tensor& output, std::int64_t batch) const;
  void refuse_maps(const std::vector<at::Tensor>& values, std::int64_t outputs) const;
  void refuse_embedding(const at::Tensor& values, std::int64_t batch) const;
  bool task_settled = false;
  bool head_settled = false;
  bool may_be_probabilities = false;  // outputs for noise lay between 0 and 1, but were not told to be any

  // Runs zeros through every tap to learn shapes, classes and whether the batch size is free.
  void probe(const std::vector<std::int64_t>& data_shape);
  std::vector<std::size_t>
      kept_outputs;  // which of the graph's outputs info.outputs describes: those with a row an input
  // Fills info.outputs from a run on these images.
  // `scores`, where defined, are the class scores of these images: a graph that gives nothing else is not run again.
  void describe_outputs(const at::Tensor& images, const at::Tensor& scores);
  // Error(environment) unless every process of a crew computes the same, each by itself: what is cut over them would
  // otherwise be a mixture, without a word. Collective, before the first pass. REQUIRES a crew.
  void check_crew(const Execution& form);
  bool crew_checked = false;
  // The input of the graph: preprocessed, in the form's layout.
  at::Tensor prepare(const at::Tensor& images, const Execution& form) const;
  // Makes a graph of single images take any number, if every tap then has the values it has for single ones.
  bool free_batch();
  // Whether `free` gives of all these inputs together what the executor gives of each alone.
  bool same_outputs(Executor& free, const at::Tensor& input, double tolerance) const;
};

// How many numbers a row of outputs for `batch` inputs holds; 0: they are no rows of numbers.
std::int64_t numbers_of_a_row(const at::Tensor& output, std::int64_t batch);
// [B], [B, K] or [B, K, 1, 1] → [B, K].
at::Tensor as_rows(const at::Tensor& output);

// rows [first, first + count) of `all`, followed by copies of the last one up to `size`.
at::Tensor padded_rows(const at::Tensor& all, std::int64_t first, std::int64_t count, std::int64_t size);

// Refuses inputs of other numbers or another shape than the network takes.
void check_inputs(const Network& network, const at::Tensor& inputs);

// Error(bad_input) for a task by reference where that is not expected.
void check_task(const Network& network, bool any_task);
// Why a network whose task is one by reference is refused, without its name.
std::string no_references(const NetworkInfo& info);

// Which micro-batch and layout a request is run in.
Execution execution_of(Network& network, bool alone);
// Repeatable values of all sizes, [size, ...shape] uint8.
at::Tensor probe_images(std::int64_t size, const std::vector<std::int64_t>& shape);

// The fastest execution of the network on this machine, from the record in the cache folder or measured now.
Execution tuned_execution(Network::Impl& impl);

}  // namespace galvani
