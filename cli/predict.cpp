#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string_view>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/output_file.h"
#include "galvani/base/text.h"
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

std::int64_t not_a_number(const Predictions& predictions) {
  return (predictions.labels == kNotANumber).sum().item<std::int64_t>();
}

using Put = std::function<void(std::string_view)>;

// One row per image: index, true label (empty if unknown), predicted label and name, probability of every class (empty
// if the verdict is not a number).
void write_csv(const Network& network, const Dataset& data, const Predictions& predictions, const Put& put) {
  auto labels = predictions.labels.accessor<std::int64_t, 1>();
  auto truth = data.labels.accessor<std::int64_t, 1>();
  auto p = predictions.probabilities.accessor<float, 2>();
  auto confidence = predictions.confidence.accessor<float, 1>();
  std::string row = "index,label,predicted,name,confidence";
  for (std::int64_t c = 0; c < p.size(1); ++c) row += fmt::format(",p{}", c);
  put(row + "\n");
  for (std::int64_t i = 0; i < labels.size(0); ++i) {
    row = fmt::format("{},{},{},{},{:.6g}", i, truth[i] < 0 ? "" : std::to_string(truth[i]), labels[i],
                      csv_name(verdict_name(network, data, labels[i])), confidence[i]);
    for (std::int64_t c = 0; c < p.size(1); ++c)
      row += labels[i] == kNotANumber ? "," : fmt::format(",{:.6g}", p[i][c]);
    put(row + "\n");
  }
}

// One object, with a line for every image.
void write_json(const Network& network, const Dataset& data, const Predictions& predictions,
                const Evaluation* evaluation, const Put& put) {
  auto labels = predictions.labels.accessor<std::int64_t, 1>();
  auto truth = data.labels.accessor<std::int64_t, 1>();
  auto p = predictions.probabilities.accessor<float, 2>();
  std::string head = json_text({{"model", network.info().path},
                                {"data", data.name},
                                {"images", data.size()},
                                {"classes", network.info().classes},
                                {"not_a_number", not_a_number(predictions)},
                                {"accuracy", evaluation != nullptr ? Json(evaluation->accuracy) : Json()}},
                               1);
  put(head.substr(0, head.rfind("\n}")) + ",\n \"predictions\": [");
  for (std::int64_t i = 0; i < labels.size(0); ++i) {
    std::vector<double> row;
    for (std::int64_t c = 0; c < p.size(1); ++c) row.push_back(p[i][c]);
    put((i == 0 ? "\n  " : ",\n  ") + json_text({{"index", i},
                                                 {"label", truth[i] < 0 ? Json() : Json(truth[i])},
                                                 {"predicted", labels[i]},
                                                 {"name", verdict_name(network, data, labels[i])},
                                                 {"probabilities", labels[i] == kNotANumber ? Json() : Json(row)}}));
  }
  put("\n ]\n}\n");
}

Figures figures_of(const Predictions& predictions, const Evaluation* evaluation) {
  Figures figures = {{"images", static_cast<double>(predictions.labels.numel())},
                     {"not-a-number", static_cast<double>(not_a_number(predictions))}};
  if (evaluation != nullptr) figures.emplace_back("accuracy", evaluation->accuracy);
  return figures;
}

void run(Common& common, PredictFlags& flags) {
  Dataset data = load_data(flags.data);
  flags.gates.check(data.labelled() ? std::vector<std::string>{"images", "not-a-number", "accuracy"}
                                    : std::vector<std::string>{"images", "not-a-number"});
  std::unique_ptr<Network> network = flags.model.load(&data);
  auto start = std::chrono::steady_clock::now();
  Predictions predictions = predict_all(*network, data, "predicting");
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::optional<Evaluation> evaluation;
  if (data.labelled()) {
    evaluation = score(*network, data, predictions);
    if (auto warning = suspicious(*network, *evaluation)) log::warn("{}", *warning);
  }
  std::optional<OutputFile> file;
  if (!flags.output.empty()) file.emplace(flags.output);
  Put put = [&](std::string_view text) {
    check_interrupt();
    if (file) {
      file->write(text);
    } else {
      std::fwrite(text.data(), 1, text.size(), stdout);
    }
  };
  if (common.json) {
    write_json(*network, data, predictions, evaluation ? &*evaluation : nullptr, put);
  } else {
    write_csv(*network, data, predictions, put);
  }
  if (file) file->commit();
  std::int64_t unknown = not_a_number(predictions);
  log::info("{} images in {:.2f} s ({:.0f} images/s){}{}{}", data.size(), seconds,
            static_cast<double>(data.size()) / seconds,
            evaluation ? fmt::format(", accuracy {:.2f}%", evaluation->accuracy * 100) : "",
            unknown > 0 ? fmt::format(", {} are {}", unknown, kNotANumberName) : "",
            flags.output.empty() ? "" : ", written to " + flags.output);
  flags.gates.silent = flags.output.empty();
  flags.gates.judge(common, figures_of(predictions, evaluation ? &*evaluation : nullptr),
                    {"galvani predict " + data.name, network->info().path, seconds, {}});
}

}  // namespace

void add_predict_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<PredictFlags>();
  Verb& verb = make_verb(app, common, "predict", "write predicted labels and probabilities as CSV or JSON",
                         "  galvani predict lenet5.onnx --data digits:test -o predictions.csv\n"
                         "  galvani predict lenet5.onnx --data photos/ --json");
  runs_models(verb, common, [flags] { return Confinement{{}, {flags->output, flags->gates.junit}}; });
  flags->model.add_to(verb);
  verb.add_option("--data", flags->data, "images to predict").required();
  verb.add_option("-o,--output", flags->output, "file to write (default: standard output)");
  flags->gates.add_to(verb, "accuracy<0.9");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
