// Finding out what a network is asked: from its outputs, from its card, from the labels of data.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/text.h"
#include "model/network_impl.h"

namespace galvani {
namespace {

// A flattened map of fewer scores may be a classifier's.
constexpr std::int64_t kLeastMap = 1000;
constexpr double kUnitLength = 1e-3;

std::string shape_text(at::IntArrayRef shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

// What was stated, or what one number or several are taken for.
Task task_for(const NetworkInfo& info, const ModelCard& card, std::int64_t outputs) {
  if (auto stated = task_of(card.task)) return *stated;
  if (outputs > 1) return Task::classes;
  return info.head == Head::sigmoid ? Task::binary : Task::regression;
}

void check_task(const NetworkInfo& info, Task task, std::int64_t outputs) {
  if (task == Task::classes && outputs == 1)
    bad_input("{}: has one output, so there are no classes to tell apart: its task is binary or regression", info.path);
  if (task == Task::binary && outputs > 2)
    bad_input("{}: has {} outputs; a network whose task is binary has one or two", info.path, outputs);
  bool of_all = info.head == Head::softmax || info.head == Head::log_softmax;
  if (task == Task::multi_label && of_all)
    bad_input(
        "{}: ends in a {} over its {} outputs, so that only one can be likely at a time; its task is not multi-label",
        info.path, to_string(info.head), outputs);
}

}  // namespace

bool Network::Impl::settle_task(const std::vector<at::Tensor>& values, std::int64_t batch) {
  std::int64_t outputs = numbers_of_a_row(values[0], batch);
  if (outputs == 0) {
    task_settled = true;
    info.classes = 0;
    if (!any_output) refuse_output(values[0], batch);
    return false;
  }
  Question& question = info.question;
  Task task = task_for(info, card, outputs);
  check_task(info, task, outputs);
  if (!any_output && card.task.empty()) {
    refuse_maps(values, outputs);
    refuse_embedding(as_rows(values[0]), batch);
  }
  question.task = task;
  question.outputs = outputs;
  question.threshold = card.threshold.value_or(0.5);
  question.tolerance = card.tolerance.value_or(0);
  task_settled = true;
  info.classes = task == Task::classes ? outputs : 2;
  if (task != Task::binary || outputs == 2) return false;
  executor->make_binary(log_odds(question.threshold));
  return true;
}

void Network::Impl::refuse_output(const at::Tensor& output, std::int64_t batch) const {
  std::string name = result < output_names.size() ? fmt::format(" '{}'", printable(output_names[result])) : "";
  bool of_inputs = output.dim() > 0 && output.size(0) == batch;
  const char* more = output_names.size() > 1 ? " (--model-output chooses another output)" : "";
  if (!output.is_floating_point())
    bad_input("{}: its output{} holds {} numbers, such as classes already chosen, not scores{}", info.path, name,
              c10::toString(output.scalar_type()), more);
  if (of_inputs && output.dim() == 4)
    bad_input("{}: its output{} is a map of {} for each of {} places, as of segmentation, which is not supported yet{}",
              info.path, name, counted(output.size(1), "score"), shape_text(output.sizes().slice(2)), more);
  if (of_inputs && output.dim() == 3)
    bad_input(
        "{}: its output{} is a list of {} rows of {}, as of an object detector or of a text, which is not supported "
        "yet{}",
        info.path, name, output.size(1), counted(output.size(2), "number"), more);
  bad_input(
      "{}: its output{} has the shape {} for {}, not as many numbers for each; detectors give such lists, which are "
      "not supported yet{}",
      info.path, name, shape_text(output.sizes()), counted(batch, "input"), more);
}

void Network::Impl::refuse_maps(const std::vector<at::Tensor>& values, std::int64_t outputs) const {
  if (outputs < kLeastMap) return;
  for (std::size_t tap : executor->taps_behind_output()) {
    const at::Tensor& map = values[tap + 1];
    if (map.dim() != 4 || map.size(2) * map.size(3) < 2) continue;
    bad_input(
        "{}: its {} are a map of {} for each of {} places, made into a row, as of an object detector or of "
        "segmentation, which is not supported yet (--task classes says otherwise)",
        info.path, counted(outputs, "output"), counted(map.size(1), "number"), shape_text(map.sizes().slice(2)));
  }
}

void Network::Impl::refuse_embedding(const at::Tensor& values, std::int64_t batch) const {
  // An image without content may have no direction.
  auto unit = [](const at::Tensor& all) {
    at::Tensor rows = all.index_select(0, at::isfinite(all).all(1).nonzero().flatten());
    if (rows.size(0) == 0 || rows.size(1) < 2) return false;
    at::Tensor off = (rows.square().sum(1).sqrt() - 1).abs();
    return (off < kUnitLength).all().item<bool>() && rows.min().item<double>() < 0;
  };
  if (info.head != Head::logits || !unit(values) || !unit(outputs_for_unlike(batch, /*probabilities=*/false))) return;
  bad_input(
      "{}: its {} outputs are a vector of length 1 for every input, as of an embedding, which is not supported yet "
      "(--task classes says otherwise)",
      info.path, values.size(1));
}

void check_task(const Network& network, bool any_task) {
  const NetworkInfo& info = network.info();
  if (info.question.by_reference() && !any_task) bad_input("{}: {}", info.path, no_references(info));
}

void Network::ask(Task task) {
  NetworkInfo& info = impl_->info;
  check_task(info, task, info.question.outputs);
  if (task == Task::regression && info.head != Head::logits)
    bad_input("{}: ends in a {}, so its outputs are not taken for numbers (--task regression says otherwise)",
              info.path, to_string(info.head));
  info.question.task = task;
  info.classes = 2;
  check_task(*this, impl_->any_task);
}

void Network::set_tolerance(double tolerance) {
  impl_->info.question.tolerance = tolerance;
}

}  // namespace galvani
