// What a network is asked of an input, and when its answer is a fault: the one place that knows. A task whose answers
// are no classes is made a question of two classes, "as the reference says" or not, so that attacks, guides and
// campaigns need not know it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace galvani {

enum class Task {
  classes,      // one of several classes: scores, of which the largest counts
  binary,       // yes or no: one score or probability, or two
  multi_label,  // labels independent of each other: a score each
  regression,   // one or more numbers
};
const char* to_string(Task task);  // "classes", "binary", "multi-label", "regression"
// None: there is no such task.
std::optional<Task> task_of(std::string_view name);

struct Question {
  // The two verdicts of a task by reference.
  static constexpr std::int64_t kHolds = 0;
  static constexpr std::int64_t kBroken = 1;

  Task task = Task::classes;
  std::int64_t outputs = 0;  // numbers that the graph gives for an input
  double threshold = 0.5;    // binary, multi-label: a probability above it is a yes
  double tolerance = 0;      // regression: what an answer may deviate from its reference; 0: not settled

  // What is right is no class but an answer, the reference, which every input has of its own.
  bool by_reference() const { return task == Task::multi_label || task == Task::regression; }

  // REQUIRES by_reference() from here on. answers [B, outputs] float: of multi-label the scores before the sigmoid.
  // references [B, outputs] float: numbers, or 0 and 1.

  // [B, 2]: scores of kHolds and kBroken. The larger the second, the farther the answer has got; differentiable, with
  // a slope also where an answer is its reference.
  at::Tensor scores(const at::Tensor& answers, const at::Tensor& references) const;
  // What inputs would be held against if nobody but the network says what is right: [B, outputs].
  at::Tensor references_of(const at::Tensor& answers) const;
  // Regression: the largest deviation; multi-label: how many labels differ. [B] float.
  at::Tensor deviations(const at::Tensor& answers, const at::Tensor& references) const;
  // Of kHolds and kBroken, for people.
  std::vector<std::string> verdict_names() const;
};

// Log-odds of a probability between 0 and 1.
double log_odds(double probability);

}  // namespace galvani
