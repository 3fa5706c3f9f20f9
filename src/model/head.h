// The head of a classifier: what its file makes of the scores, and how the scores are got back. Probabilities that are
// taken for scores would go through a softmax once more: confidences would be wrong, gradients nearly nothing.
#pragma once

#include <string>

#include "galvani/model/network.h"

namespace torch::jit {
struct Graph;
}

namespace galvani {

// What was found at the end of a graph.
struct HeadMatch {
  Head head = Head::logits;
  bool plain = true;  // nothing but the head itself: its input are the scores. Otherwise that has yet to be tried
};

// Makes the scores before a final softmax, log-softmax or sigmoid the graph's only output; also where reshaping,
// clipping or a change of type follows, and where a softmax is written as exp(x) / sum(exp(x)). Of a tuple of results
// `result` counts.
HeadMatch keep_only_logits(torch::jit::Graph& graph, std::size_t result, const std::string& label);

// Makes one result the only output, as it is.
void keep_only_output(torch::jit::Graph& graph, std::size_t result, const std::string& label);

// Makes scores of the probabilities that the graph gives: the logarithm where they are a distribution, the log-odds
// where each is of its own (sigmoids). REQUIRES one output.
void append_logits(torch::jit::Graph& graph, Head head);

// Makes scores of two classes, 0 and what it is above `threshold` (a score, too), of the single score that the graph
// gives. REQUIRES one output.
void append_binary(torch::jit::Graph& graph, double threshold);

// What values [N, classes] float look like, if no graph tells: rows between 0 and 1 that sum to 1 are a softmax's;
// those between 0 and 1, some of them near 1, sigmoids'; anything else scores. A single value a row is no distribution.
Head head_of_values(const at::Tensor& values);

}  // namespace galvani
