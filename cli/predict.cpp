#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string_view>

#include "answers.h"
#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/output_file.h"
#include "galvani/base/progress.h"
#include "galvani/base/runtime.h"
#include "galvani/base/text.h"
#include "galvani/model/answers.h"
#include "galvani/model/evaluate.h"
#include "gate_flags.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct PredictFlags {
  ModelFlags model;
  std::string data;
  std::string output;
  GateFlags gates;
};

using Put = std::function<void(std::string_view)>;

// Where rows go: the file that was named, else standard output.
class RowSink {
 public:
  explicit RowSink(const std::string& path) {
    if (!path.empty()) file_.emplace(path);
    // A bar among the rows would be read as one of them.
    if (!file_ && isatty(STDOUT_FILENO) != 0) Progress::set_enabled(false);
  }
  bool to_file() const { return file_.has_value(); }
  void write(std::string_view text) {
    check_interrupt();
    if (file_) {
      file_->write(text);
    } else {
      std::fwrite(text.data(), 1, text.size(), stdout);
    }
  }
  Put put() {
    return [this](std::string_view text) { write(text); };
  }
  void commit() {
    if (file_) file_->commit();
  }

 private:
  std::optional<OutputFile> file_;
};

// One row per input: its file, or its index where there are no files; true label (empty if unknown), predicted label
// and name, probability of every class (empty if the verdict is not a number).
class CsvRows {
 public:
  CsvRows(const Network& network, const DataView& data, Put put)
      : network_(network), data_(data), put_(std::move(put)) {}

  // With the first rows comes the line of titles: data that cannot be read at all give no output.
  void add(const Predictions& predictions, std::int64_t first) const {
    auto labels = predictions.labels.accessor<std::int64_t, 1>();
    auto truth = data_.labels.accessor<std::int64_t, 1>();
    auto p = predictions.probabilities.accessor<float, 2>();
    auto confidence = predictions.confidence.accessor<float, 1>();
    if (first == 0) {
      std::string titles = fmt::format("{},label,predicted,name,confidence", data_.files.empty() ? "index" : "file");
      for (std::int64_t c = 0; c < p.size(1); ++c) titles += fmt::format(",p{}", c);
      put_(titles + "\n");
    }
    for (std::int64_t i = 0; i < labels.size(0); ++i) {
      std::int64_t label = truth[first + i];
      std::string row = fmt::format("{},{},{},{},{:.6g}", place(first + i), label < 0 ? "" : std::to_string(label),
                                    labels[i], csv_name(verdict_name(network_, data_, labels[i])), confidence[i]);
      for (std::int64_t c = 0; c < p.size(1); ++c)
        row += labels[i] == kNotANumber ? "," : fmt::format(",{:.6g}", p[i][c]);
      put_(row + "\n");
    }
  }

 private:
  std::string place(std::int64_t row) const {
    return data_.files.empty() ? std::to_string(row) : csv_name(data_.file(row));
  }

  const Network& network_;
  const DataView& data_;
  Put put_;
};

// One object, with a line for every input. Totals stand before the lines, so what is in the lines is kept until all are
// known: four bytes a class and input.
class JsonRows {
 public:
  JsonRows(const Network& network, const DataView& data) : network_(network), data_(data) {
    std::uint64_t bytes = static_cast<std::uint64_t>(data.size()) * (4 * network.info().classes + 8);
    if (bytes > available_memory())
      bad_usage("the probabilities of {} inputs need {} as JSON: take fewer inputs, or CSV", data.size(),
                format_bytes(bytes));
    labels_ = at::empty({data.size()}, at::kLong);
    probabilities_ = at::empty({data.size(), network.info().classes});
  }

  void add(const Predictions& predictions, std::int64_t first) {
    std::int64_t n = predictions.labels.size(0);
    labels_.narrow(0, first, n).copy_(predictions.labels);
    probabilities_.narrow(0, first, n).copy_(predictions.probabilities);
  }

  // The same as columns, for a program.
  void give(const Common& common, std::int64_t not_a_number, const Evaluation* evaluation) const {
    Json document = totals(not_a_number, evaluation);
    if (!data_.files.empty()) document["files"] = data_.files;
    common.give(document, {{"labels", data_.labels},
                           {"predicted", labels_},
                           {"probabilities", probabilities_},
                           {"confidence", confidences(probabilities_, labels_)}});
  }

  void write(std::int64_t not_a_number, const Evaluation* evaluation, const Put& put) const {
    auto labels = labels_.accessor<std::int64_t, 1>();
    auto truth = data_.labels.accessor<std::int64_t, 1>();
    auto p = probabilities_.accessor<float, 2>();
    std::string head = json_text(totals(not_a_number, evaluation), 1);
    put(head.substr(0, head.rfind("\n}")) + ",\n \"predictions\": [");
    for (std::int64_t i = 0; i < labels.size(0); ++i) {
      std::vector<double> row;
      for (std::int64_t c = 0; c < p.size(1); ++c) row.push_back(p[i][c]);
      Json line = {{"index", i},
                   {"label", truth[i] < 0 ? Json() : Json(truth[i])},
                   {"predicted", labels[i]},
                   {"name", verdict_name(network_, data_, labels[i])},
                   {"probabilities", labels[i] == kNotANumber ? Json() : Json(row)}};
      if (!data_.files.empty()) line["file"] = data_.file(i);
      put((i == 0 ? "\n  " : ",\n  ") + json_text(line));
    }
    put("\n ]\n}\n");
  }

 private:
  Json totals(std::int64_t not_a_number, const Evaluation* evaluation) const {
    return {
        {"model", network_.info().path},     {"data", data_.name},
        {data_.type().noun(), data_.size()}, {"classes", network_.info().classes},
        {"not_a_number", not_a_number},      {"accuracy", evaluation != nullptr ? Json(evaluation->accuracy) : Json()}};
  }

  const Network& network_;
  const DataView& data_;
  at::Tensor labels_;         // [N] int64: the verdicts
  at::Tensor probabilities_;  // [N, classes] float
};

Figures figures_of(std::int64_t inputs, std::int64_t not_a_number, const Evaluation* evaluation) {
  Figures figures = {{"images", static_cast<double>(inputs)}, {"not-a-number", static_cast<double>(not_a_number)}};
  if (evaluation != nullptr) figures.emplace_back("accuracy", evaluation->accuracy);
  return figures;
}

// The same of a network whose answers are no classes.
void run_answers(Common& common, PredictFlags& flags, Network& network, const DataView& data) {
  const Question& question = network.info().question;
  flags.gates.check(data.answers.defined() ? known_answer_figures(question)
                                           : std::vector<std::string>{"images", "not-a-number"});
  RowSink sink(flags.output);
  std::optional<AnswerScoring> scoring;
  if (data.answers.defined()) scoring.emplace(question, data.answers);
  AnswerRows rows(network, data, sink.put());
  at::Tensor kept = common.json ? at::empty({data.size(), question.outputs}) : at::Tensor();
  std::int64_t not_a_number = 0;
  auto start = std::chrono::steady_clock::now();
  answer_stream(network, data, "predicting", [&](const at::Tensor& answers, std::int64_t first) {
    not_a_number += at::isfinite(answers).all(1).logical_not().sum().item<std::int64_t>();
    if (scoring) scoring->add(answers, first);
    if (kept.defined()) {
      kept.narrow(0, first, answers.size(0)).copy_(shown_answers(network.info(), answers));
    } else {
      rows.add(answers, first);
    }
  });
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::optional<AnswerEvaluation> evaluation;
  if (scoring) evaluation = scoring->result();
  if (common.json) {
    Json document = {{"model", network.info().path},
                     {"data", data.name},
                     {data.type().noun(), data.size()},
                     {"task", to_string(question.task)},
                     {"not_a_number", not_a_number}};
    if (evaluation) document["figures"] = answers_json(network, *evaluation);
    if (common.taker != nullptr) common.give(document, {{"answers", kept}});
    if (common.taker == nullptr || sink.to_file()) {
      document["answers"] = Json::array();
      for (std::int64_t i = 0; i < kept.size(0); ++i) {
        const float* row = kept.data_ptr<float>() + i * kept.size(1);
        document["answers"].push_back(std::vector<double>(row, row + kept.size(1)));
      }
      sink.write(json_text(document, 1) + "\n");
    }
  }
  sink.commit();
  log::info("{} {} in {:.2f} s{}{}{}", format_count(data.size()), data.type().noun(), seconds,
            evaluation ? ", " + answers_headline(network, *evaluation) : "",
            not_a_number > 0 ? fmt::format(", {} are {}", not_a_number, kNotANumberName) : "",
            flags.output.empty() ? "" : ", written to " + flags.output);
  flags.gates.silent = flags.output.empty();
  Figures figures = evaluation ? answer_figures(network, *evaluation)
                               : Figures{{"images", static_cast<double>(data.size())},
                                         {"not-a-number", static_cast<double>(not_a_number)}};
  flags.gates.judge(common, figures, {"galvani predict " + data.name, network.info().path, seconds, {}});
}

void run(Common& common, PredictFlags& flags) {
  flags.model.options.any_task = true;
  ModelAndData loaded = load_with_data(flags.model, flags.data);
  if (loaded.network->info().question.by_reference()) return run_answers(common, flags, *loaded.network, loaded.data);
  const std::shared_ptr<Network>& network = loaded.network;
  const DataView& data = loaded.data;
  flags.gates.check(data.labelled() ? std::vector<std::string>{"images", "not-a-number", "accuracy"}
                                    : std::vector<std::string>{"images", "not-a-number"});
  check_fits(*network, data.type().shape, data.name);
  std::optional<Scoring> scoring;
  if (data.labelled()) scoring.emplace(*network, data);
  RowSink sink(flags.output);
  std::optional<CsvRows> csv;
  std::optional<JsonRows> rows;
  if (common.json) {
    rows.emplace(*network, data);
  } else {
    csv.emplace(*network, data, sink.put());
  }
  std::int64_t not_a_number = 0;
  auto start = std::chrono::steady_clock::now();
  predict_stream(*network, data, "predicting", [&](const Predictions& predictions, std::int64_t first) {
    not_a_number += (predictions.labels == kNotANumber).sum().item<std::int64_t>();
    if (scoring) scoring->add(predictions, first);
    if (csv) csv->add(predictions, first);
    if (rows) rows->add(predictions, first);
  });
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::optional<Evaluation> evaluation;
  if (scoring) {
    evaluation = scoring->result();
    if (auto warning = suspicious(*network, *evaluation, data.name)) log::warn("{}", *warning);
  }
  const Evaluation* judged = evaluation ? &*evaluation : nullptr;
  if (rows && (common.taker == nullptr || sink.to_file())) rows->write(not_a_number, judged, sink.put());
  if (rows && common.taker != nullptr) rows->give(common, not_a_number, judged);
  sink.commit();
  log::info("{} {} in {:.2f} s ({} {}/s){}{}{}", format_count(data.size()), data.type().noun(), seconds,
            format_rate(static_cast<double>(data.size()) / seconds), data.type().noun(),
            evaluation ? fmt::format(", accuracy {:.2f}%", evaluation->accuracy * 100) : "",
            not_a_number > 0 ? fmt::format(", {} are {}", not_a_number, kNotANumberName) : "",
            flags.output.empty() ? "" : ", written to " + flags.output);
  flags.gates.silent = flags.output.empty();
  flags.gates.judge(common, figures_of(data.size(), not_a_number, evaluation ? &*evaluation : nullptr),
                    {"galvani predict " + data.name, network->info().path, seconds, {}});
}

}  // namespace

void add_predict_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<PredictFlags>();
  Verb& verb = make_verb(app, common, "predict", "write predicted labels and probabilities as CSV or JSON",
                         "  galvani predict lenet5.onnx --data digits:test -o predictions.csv\n"
                         "  galvani predict lenet5.onnx --data photos/ --json");
  runs_models(
      verb, common,
      [flags] {
        return Confinement{{}, {flags->output, flags->gates.junit}};
      },
      Processes::many);
  flags->model.add_to(verb);
  verb.add_option("--data", flags->data, "inputs to predict").required();
  verb.add_option("-o,--output", flags->output, "file to write (default: standard output)");
  flags->gates.add_to(verb, "accuracy<0.9");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
