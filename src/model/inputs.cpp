#include "galvani/model/inputs.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/log.h"
#include "galvani/base/text.h"

namespace galvani {

InputNeeds input_needs(const Network& network) {
  const ModelCard& card = network.card();
  const NetworkInfo& info = network.info();
  // The two verdicts of a task by reference are no classes that data could have.
  bool classes = !info.question.by_reference();
  return {info.input,
          card.intake,
          info.path,
          classes ? card.class_names : std::vector<std::string>(),
          classes ? info.classes : 0,
          card.rate,
          card.label_shift};
}

DataView open_data_for(const Network& network, const std::string& spec, const std::string& default_split) {
  return OpenedData(spec, default_split).view(input_needs(network));
}

std::string preprocessing_text(const Preprocess& p, SampleKind kind) {
  if (kind == SampleKind::image) return p.str();
  // Samples are as far below 0 as above it.
  std::string text = fmt::format("samples {}..{}", p.low - (p.high - p.low), p.high);
  if (!p.mean.empty()) text += fmt::format(", mean {}", fmt::join(p.mean, " "));
  if (!p.deviation.empty()) text += fmt::format(", std {}", fmt::join(p.deviation, " "));
  return text + (p.channels_last ? ", channels last" : "");
}

std::string preprocessing_text(const Network& network) {
  return preprocessing_text(network.card().preprocess, SampleType::of(network.info().input, 0).kind);
}

void settle_head(Network& network, const DataView& data) {
  constexpr std::int64_t kFirst = 64;
  if (!network.head_settled()) network.settle_head(data.fetch(0, std::min(kFirst, data.size())));
}

namespace {

bool zeros_and_ones(const at::Tensor& rows) {
  return (rows.eq(0).logical_or(rows.eq(1))).all().item<bool>();
}

std::string numbers_text(const at::Tensor& answers) {
  return counted(answers.size(1), "number");
}

// Of a network that tells classes apart.
void settle_classes(Network& network, Labelled& data) {
  const NetworkInfo& info = network.info();
  std::int64_t columns = data.answers.size(1);
  bool one = info.question.task == Task::binary && columns == 1;
  bool open = network.card().task.empty() && info.question.task == Task::classes;
  if (open && columns == info.classes && info.head == Head::logits && !zeros_and_ones(data.answers)) {
    network.ask(Task::regression);
    log::info("{}: rows of {} are numbers, so it is asked for numbers (--task regression)", info.path, data.name);
    return;
  }
  if ((columns != info.classes && !one) || !zeros_and_ones(data.answers))
    bad_input("{}: has {} for each input, but {} tells {} apart (--task regression asks it for numbers)", data.name,
              numbers_text(data.answers), info.path, counted(info.classes, "class", "classes"));
  bool single = one || data.answers.sum(1).eq(1).all().item<bool>();
  if (single) {
    data.labels = one ? data.answers.select(1, 0).to(at::kLong) : data.answers.argmax(1);
    data.answers.reset();
    return;
  }
  if (!open) bad_input("{}: has rows with several labels, but {} is asked for one class", data.name, info.path);
  network.ask(Task::multi_label);
  log::info("{}: rows of {} have several labels, so it is asked for labels (--task multi-label)", info.path, data.name);
}

}  // namespace

void settle_task(Network& network, Labelled& data) {
  const NetworkInfo& info = network.info();
  const Question& question = info.question;
  if (!question.by_reference()) {
    if (data.answers.defined()) settle_classes(network, data);
    if (!question.by_reference()) return;
  }
  bool classes = !data.answers.defined() && data.labelled();
  if (classes && question.task == Task::multi_label && data.classes() <= question.outputs)
    data.answers = at::one_hot(data.labels, question.outputs).to(at::kFloat);
  if (classes && question.task == Task::regression && question.outputs == 1) {
    if (network.card().task.empty())
      bad_input(
          "{}: has classes as labels, but {} gives one number: --task binary if that is a score of yes, --task "
          "regression if it is to be the label",
          data.name, info.path);
    data.answers = data.labels.to(at::kFloat).unsqueeze(1);
  }
  if (!data.answers.defined()) return;
  if (data.answers.size(1) != question.outputs)
    bad_input("{}: has {} for each input, but {} gives {}", data.name, numbers_text(data.answers), info.path,
              question.outputs);
  if (question.task == Task::multi_label && !zeros_and_ones(data.answers))
    bad_input("{}: has other numbers than 0 and 1, but {} is asked for labels", data.name, info.path);
}

at::Tensor stated_references(const Network& network, const Labelled& data) {
  return network.info().question.by_reference() ? data.answers : at::Tensor();
}

}  // namespace galvani
