// What a network says about data, and how often it is right.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "galvani/data/view.h"
#include "galvani/model/network.h"

namespace galvani {

// The verdict on an input whose scores are not all finite: it is no class, so it is never right.
inline constexpr std::int64_t kNotANumber = -1;
inline constexpr const char* kNotANumberName = "not a number";

// What each row of scores says, [N, classes] float: the class of its largest, or kNotANumber. [N] int64.
at::Tensor verdicts(const at::Tensor& logits);
// How probable each verdict is, 0 for kNotANumber: [N] float.
at::Tensor confidences(const at::Tensor& probabilities, const at::Tensor& verdicts);
// A verdict's name: the model's for the class, else the data's.
std::string verdict_name(const Network& network, const Labelled& data, std::int64_t verdict);

// Error(bad_input) if there is a label that the network cannot give. Unknown labels are none.
void check_labels(const Network& network, const Labelled& data);

struct Predictions {
  at::Tensor labels;         // [N] int64: the verdicts
  at::Tensor logits;         // [N, classes] float
  at::Tensor probabilities;  // [N, classes] float: the softmax of the logits, or of sigmoids each for itself
  at::Tensor confidence;     // [N] float
  std::int64_t reexamined;   // verdicts that hung on the last bits and were decided in canonical form
};

// The predicted classes. Where the two best scores are closer than 1e-4 relative, the input is run alone and that
// verdict counts, so that a label never depends on what else was in the batch.
Predictions predict(Network& network, const at::Tensor& images);

// The same where every input is held against its reference, [N, outputs] (Question).
Predictions predict(Network& network, const at::Tensor& images, const at::Tensor& references);

// Replaces the scores of inputs whose two best are closer than that by those in canonical form; how many there were.
// `references` are those of the images, of a task that has such.
std::int64_t settle_close_calls(Network& network, const at::Tensor& images, at::Tensor& logits,
                                const at::Tensor& references = {});

// The same over data of any size, chunk by chunk in order, with a progress bar; memory stays bounded, and Ctrl-C is
// honoured between chunks. `first` is the index of the chunk's first input.
void predict_stream(Network& network, const DataView& data, const std::string& title,
                    const std::function<void(const Predictions& predictions, std::int64_t first)>& sink);

struct Evaluation {
  std::int64_t images = 0;
  std::int64_t correct = 0;
  double accuracy = 0;
  at::Tensor confusion;  // [classes, classes] int64: row true, column predicted
  at::Tensor held_out;   // [classes, classes] int64: of half of the inputs (label_fit.h); undefined: too many classes
  at::Tensor not_a_number;               // [classes] int64: inputs of each class that have no predicted one
  std::vector<std::string> class_names;  // the data's; may be empty
  std::int64_t reexamined = 0;
};

// Compares predictions with labels, chunk by chunk.
class Scoring {
 public:
  // Refuses data without a label each, and with labels the network cannot give.
  Scoring(const Network& network, const Labelled& data);
  void add(const Predictions& predictions, std::int64_t first);
  Evaluation result() const;

 private:
  at::Tensor labels_;
  std::int64_t classes_;
  at::Tensor counts_;  // [1 or 2, classes, 1 + classes]: of each half: row true, column kNotANumber or predicted
  std::vector<std::string> class_names_;
  std::int64_t reexamined_ = 0;
};

Evaluation evaluate(Network& network, const DataView& data);
// Of at most so many inputs, spread over the data.
Evaluation evaluate_some(Network& network, const DataView& data, std::int64_t most);

// Wilson's interval of a share, 95%.
struct ShareInterval {
  double low, high;
};
ShareInterval wilson_interval(std::int64_t correct, std::int64_t images);

// Whether so many images leave room for chance to have given this accuracy, or little more than chance.
bool near_chance(double accuracy, double chance, std::int64_t images);

// A sentence to warn with if other classes than the labels' would be right far more often (label_fit.h); or if the
// accuracy is far below what the card says, near chance, or low while the preprocessing is only assumed: that is the
// first suspect, and the sentence ends with the command that looks into it. `data` is the spec of what was evaluated.
std::optional<std::string> suspicious(const Network& network, const Evaluation& evaluation, const std::string& data);

}  // namespace galvani
