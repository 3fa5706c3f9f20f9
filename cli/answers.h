// What `predict` and `inspect` say of networks whose answers are no classes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "galvani/base/gate.h"
#include "galvani/base/json.h"
#include "galvani/model/answers.h"

namespace galvani::cli {

// "regression of 2 numbers, tolerance 0.1", "binary, threshold 0.5", "classes", ...
std::string task_text(const NetworkInfo& info);

// One row per input: its file or index, what is right (where known), what the network answers.
class AnswerRows {
 public:
  using Put = std::function<void(std::string_view)>;
  AnswerRows(const Network& network, const DataView& data, Put put);
  // With the first rows comes the line of titles.
  void add(const at::Tensor& answers, std::int64_t first) const;

 private:
  std::vector<std::string> names_;
  const NetworkInfo& info_;
  const DataView& data_;
  Put put_;
};

Json answers_json(const Network& network, const AnswerEvaluation& evaluation);
void print_answers(const Network& network, const Labelled& data, const AnswerEvaluation& evaluation);
// "mean error 0.031" or "all labels right 91.20%".
std::string answers_headline(const Network& network, const AnswerEvaluation& evaluation);
Figures answer_figures(const Network& network, const AnswerEvaluation& evaluation);
// Names of those figures.
std::vector<std::string> known_answer_figures(const Question& question);

}  // namespace galvani::cli
