// What a network whose task is one by reference (galvani/model/task.h) says of data, and how near that is to what is
// right.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "galvani/data/view.h"
#include "galvani/model/network.h"

namespace galvani {

// The answers as people read them: numbers, or of labels probabilities. [N, outputs] float.
at::Tensor shown_answers(const NetworkInfo& info, const at::Tensor& answers);

// Chunk by chunk in order, with a progress bar. `first` is the index of the chunk's first input.
void answer_stream(Network& network, const DataView& data, const std::string& title,
                   const std::function<void(const at::Tensor& answers, std::int64_t first)>& sink);

// "steering 0.25", or "eye, hair (2 of 40 labels)"; `names` are of the outputs, or empty.
std::string answer_text(const Question& question, const std::vector<std::string>& names, const at::Tensor& row);

struct AnswerEvaluation {
  // Of one output.
  struct Output {
    double mean_error = 0;  // regression: mean of |answer - right|
    double root_mean_square = 0;
    double explained = 0;                                         // share of the variance (R²); 0 where there is none
    std::int64_t right = 0, positive = 0, found = 0, alarms = 0;  // multi-label: as it should, yes, yes and said, said
    double f1() const;
  };
  std::int64_t inputs = 0;
  std::vector<Output> outputs;
  std::int64_t exact = 0;         // multi-label: all labels right
  std::int64_t within = 0;        // regression: within the tolerance
  std::int64_t not_a_number = 0;  // inputs with an answer that is none; they count as wrong and in nothing else
  double spread = 0;              // regression: from 5 to 95 of 100 of what is right, the largest of all outputs
};

class AnswerScoring {
 public:
  // Keeps a reference. REQUIRES references [N, outputs].
  AnswerScoring(const Question& question, at::Tensor references);
  void add(const at::Tensor& answers, std::int64_t first);
  AnswerEvaluation result() const;

 private:
  const Question& question_;
  at::Tensor references_;
  at::Tensor answers_;
};

// From 5 to 95 of 100 of each column's values; the largest of all columns. 0: there are none.
double spread_of(const at::Tensor& rows);

}  // namespace galvani
