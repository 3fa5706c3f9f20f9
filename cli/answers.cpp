#include "answers.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "verb.h"

namespace galvani::cli {
namespace {

std::vector<std::string> output_names(const Network& network) {
  std::vector<std::string> names = network.card().class_names;
  for (auto i = static_cast<std::int64_t>(names.size()); i < network.info().question.outputs; ++i)
    names.push_back(std::to_string(i));
  return names;
}

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

bool numbers(const Network& network) {
  return network.info().question.task == Task::regression;
}

// Means over outputs.
template <class Of>
double mean_of(const AnswerEvaluation& evaluation, Of of) {
  double sum = 0;
  for (const AnswerEvaluation::Output& output : evaluation.outputs) sum += of(output);
  return evaluation.outputs.empty() ? 0 : sum / static_cast<double>(evaluation.outputs.size());
}

double label_accuracy(const AnswerEvaluation& evaluation) {
  return mean_of(evaluation, [&](const auto& output) { return share(output.right, evaluation.inputs); });
}

}  // namespace

std::string task_text(const NetworkInfo& info) {
  const Question& question = info.question;
  std::string text = to_string(question.task);
  if (question.task == Task::binary) return text + fmt::format(", yes above {:.4g}", question.threshold);
  if (question.task == Task::multi_label)
    return text + fmt::format(", {}, yes above {:.4g}", counted(question.outputs, "label"), question.threshold);
  if (question.task == Task::regression)
    return text + fmt::format(" of {}{}", counted(question.outputs, "number"),
                              question.tolerance > 0 ? fmt::format(", tolerance {:.4g}", question.tolerance) : "");
  return text;
}

AnswerRows::AnswerRows(const Network& network, const DataView& data, Put put)
    : names_(output_names(network)), info_(network.info()), data_(data), put_(std::move(put)) {}

void AnswerRows::add(const at::Tensor& answers, std::int64_t first) const {
  at::Tensor shown = shown_answers(info_, answers);
  auto value = shown.accessor<float, 2>();
  if (first == 0) {
    std::string titles = data_.files.empty() ? "index" : "file";
    for (const std::string& name : names_) titles += "," + csv_name("answer " + name);
    if (data_.answers.defined()) {
      for (const std::string& name : names_) titles += "," + csv_name("right " + name);
    }
    put_(titles + "\n");
  }
  for (std::int64_t i = 0; i < shown.size(0); ++i) {
    std::string row = data_.files.empty() ? std::to_string(first + i) : csv_name(data_.file(first + i));
    for (std::int64_t k = 0; k < shown.size(1); ++k) row += fmt::format(",{:.7g}", value[i][k]);
    for (std::int64_t k = 0; data_.answers.defined() && k < shown.size(1); ++k)
      row += fmt::format(",{:.7g}", data_.answers[first + i][k].item<float>());
    put_(row + "\n");
  }
}

Json answers_json(const Network& network, const AnswerEvaluation& evaluation) {
  std::vector<std::string> names = output_names(network);
  Json j;
  for (const auto& [name, value] : answer_figures(network, evaluation)) j[name] = value;
  j["outputs"] = Json::array();
  for (std::size_t k = 0; k < evaluation.outputs.size(); ++k) {
    const AnswerEvaluation::Output& output = evaluation.outputs[k];
    if (numbers(network))
      j["outputs"].push_back({{"name", names[k]},
                              {"mean_error", output.mean_error},
                              {"root_mean_square", output.root_mean_square},
                              {"explained", output.explained}});
    else
      j["outputs"].push_back({{"name", names[k]},
                              {"accuracy", share(output.right, evaluation.inputs)},
                              {"positive", output.positive},
                              {"predicted", output.alarms},
                              {"found", output.found},
                              {"f1", output.f1()}});
  }
  return j;
}

void print_answers(const Network& network, const Labelled& data, const AnswerEvaluation& evaluation) {
  std::vector<std::string> names = output_names(network);
  say("\n{} on {} ({})\n", answers_headline(network, evaluation), data.name, counted(evaluation.inputs, "input"));
  auto percent = [](double value) { return fmt::format("{:.1f}%", value * 100); };
  Table table(numbers(network)
                  ? std::vector<std::string>{"output", ">mean error", ">root mean square", ">R²"}
                  : std::vector<std::string>{"label", ">accuracy", ">inputs", ">recall", ">precision", ">F1"});
  for (std::size_t k = 0; k < evaluation.outputs.size(); ++k) {
    const AnswerEvaluation::Output& output = evaluation.outputs[k];
    std::string name = printable(names[k], 40);
    if (numbers(network)) {
      table.add({name, fmt::format("{:.4g}", output.mean_error), fmt::format("{:.4g}", output.root_mean_square),
                 fmt::format("{:.4f}", output.explained)});
    } else {
      table.add({name, percent(share(output.right, evaluation.inputs)), std::to_string(output.positive),
                 output.positive > 0 ? percent(share(output.found, output.positive)) : "-",
                 output.alarms > 0 ? percent(share(output.found, output.alarms)) : "-",
                 fmt::format("{:.3f}", output.f1())});
    }
  }
  say("\n{}", table.str());
}

std::string answers_headline(const Network& network, const AnswerEvaluation& evaluation) {
  if (!numbers(network))
    return fmt::format("all labels right {:.2f}%, label by label {:.2f}%",
                       100 * share(evaluation.exact, evaluation.inputs), 100 * label_accuracy(evaluation));
  std::string text =
      fmt::format("mean error {:.4g}", mean_of(evaluation, [](const auto& output) { return output.mean_error; }));
  if (evaluation.spread > 0) text += fmt::format(" (what is right spreads over {:.4g})", evaluation.spread);
  if (network.info().question.tolerance > 0)
    text += fmt::format(", within {:.4g} for {:.2f}%", network.info().question.tolerance,
                        100 * share(evaluation.within, evaluation.inputs));
  return text;
}

std::vector<std::string> known_answer_figures(const Question& question) {
  if (question.task == Task::multi_label) return {"images", "not-a-number", "all-right", "accuracy", "f1"};
  std::vector<std::string> names = {"images", "not-a-number", "mean-error", "root-mean-square", "explained"};
  if (question.tolerance > 0) names.emplace_back("within");
  return names;
}

Figures answer_figures(const Network& network, const AnswerEvaluation& evaluation) {
  Figures figures = {{"images", static_cast<double>(evaluation.inputs)},
                     {"not-a-number", static_cast<double>(evaluation.not_a_number)}};
  if (!numbers(network)) {
    figures.emplace_back("all-right", share(evaluation.exact, evaluation.inputs));
    figures.emplace_back("accuracy", label_accuracy(evaluation));
    figures.emplace_back("f1", mean_of(evaluation, [](const auto& output) { return output.f1(); }));
    return figures;
  }
  figures.emplace_back("mean-error", mean_of(evaluation, [](const auto& output) { return output.mean_error; }));
  figures.emplace_back("root-mean-square",
                       mean_of(evaluation, [](const auto& output) { return output.root_mean_square; }));
  figures.emplace_back("explained", mean_of(evaluation, [](const auto& output) { return output.explained; }));
  if (network.info().question.tolerance > 0)
    figures.emplace_back("within", share(evaluation.within, evaluation.inputs));
  return figures;
}

}  // namespace galvani::cli
