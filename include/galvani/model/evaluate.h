// What a network says about data, and how often it is right.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "galvani/data/dataset.h"
#include "galvani/model/network.h"

namespace galvani {

struct Predictions {
  at::Tensor labels;         // [N] int64
  at::Tensor logits;         // [N, classes] float
  at::Tensor probabilities;  // [N, classes] float, softmax of the logits
  std::int64_t reexamined;   // verdicts that hung on the last bits and were decided in canonical form
};

// The predicted classes. Where the two best scores are closer than 1e-4 relative, the input is run alone and that
// verdict counts, so that a label never depends on what else was in the batch.
Predictions predict(Network& network, const at::Tensor& images);

// Replaces the scores of inputs whose two best are closer than that by those in canonical form; how many there were.
std::int64_t settle_close_calls(Network& network, const at::Tensor& images, at::Tensor& logits);

// The same over data of any size, in chunks, with a progress bar; Ctrl-C is honoured between chunks.
Predictions predict_all(Network& network, const Dataset& data, const std::string& title);

struct Evaluation {
  std::int64_t images = 0;
  std::int64_t correct = 0;
  double accuracy = 0;
  at::Tensor confusion;  // [classes, classes] int64: row true, column predicted
  std::int64_t reexamined = 0;
};

// Refuses data with labels the network cannot give.
Evaluation evaluate(Network& network, const Dataset& data);
Evaluation score(const Network& network, const Dataset& data, const Predictions& predictions);

// A sentence to warn with if the accuracy is far below what the card says, or near chance; the first suspect is the
// preprocessing.
std::optional<std::string> suspicious(const Network& network, const Evaluation& evaluation);

}  // namespace galvani
