#include "galvani/model/task.h"

#include <ATen/ATen.h>

#include <cmath>

namespace galvani {
namespace {

constexpr Task kTasks[] = {Task::classes, Task::binary, Task::multi_label, Task::regression};

}  // namespace

const char* to_string(Task task) {
  switch (task) {
    case Task::classes:
      return "classes";
    case Task::binary:
      return "binary";
    case Task::multi_label:
      return "multi-label";
    case Task::regression:
      return "regression";
  }
  return "";
}

std::optional<Task> task_of(std::string_view name) {
  for (Task task : kTasks) {
    if (name == to_string(task)) return task;
  }
  return std::nullopt;
}

double log_odds(double probability) {
  return std::log(probability / (1 - probability));
}

at::Tensor Question::scores(const at::Tensor& answers, const at::Tensor& references) const {
  at::Tensor farthest;
  if (task == Task::regression) {
    // |x| has no slope at zero, where every search begins.
    at::Tensor deviation = answers - references;
    farthest = at::where(deviation.ge(0), deviation, -deviation).amax(1) / tolerance - 1;
  } else {
    farthest = ((1 - 2 * references) * (answers - log_odds(threshold))).amax(1);
  }
  return at::stack({at::zeros_like(farthest), farthest}, 1);
}

at::Tensor Question::references_of(const at::Tensor& answers) const {
  return task == Task::regression ? answers : answers.gt(log_odds(threshold)).to(at::kFloat);
}

at::Tensor Question::deviations(const at::Tensor& answers, const at::Tensor& references) const {
  if (task == Task::regression) return (answers - references).abs().amax(1);
  return references_of(answers).ne(references).to(at::kFloat).sum(1);
}

std::vector<std::string> Question::verdict_names() const {
  if (task == Task::regression) return {"within tolerance", "deviates"};
  return {"same labels", "other labels"};
}

}  // namespace galvani
