#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/log.h"
#include "galvani/model/evaluate.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

using nlohmann::json;

struct PredictFlags {
  ModelFlags model;
  std::string data;
  std::string output;
};

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::int64_t not_a_number(const Predictions& predictions) {
  return (predictions.labels == kNotANumber).sum().item<std::int64_t>();
}

// One row per image: index, true label (empty if unknown), predicted label and name, probability of every class (empty
// if the verdict is not a number).
std::string as_csv(const Network& network, const Dataset& data, const Predictions& predictions) {
  auto labels = predictions.labels.accessor<std::int64_t, 1>();
  auto truth = data.labels.accessor<std::int64_t, 1>();
  auto p = predictions.probabilities.accessor<float, 2>();
  auto confidence = predictions.confidence.accessor<float, 1>();
  std::string text = "index,label,predicted,name,confidence";
  for (std::int64_t c = 0; c < p.size(1); ++c) text += fmt::format(",p{}", c);
  text += "\n";
  for (std::int64_t i = 0; i < labels.size(0); ++i) {
    text += fmt::format("{},{},{},{},{:.6g}", i, truth[i] < 0 ? "" : std::to_string(truth[i]), labels[i],
                        csv_field(verdict_name(network, data, labels[i])), confidence[i]);
    for (std::int64_t c = 0; c < p.size(1); ++c)
      text += labels[i] == kNotANumber ? "," : fmt::format(",{:.6g}", p[i][c]);
    text += "\n";
  }
  return text;
}

std::string as_json(const Network& network, const Dataset& data, const Predictions& predictions,
                    const Evaluation* evaluation) {
  auto labels = predictions.labels.accessor<std::int64_t, 1>();
  auto truth = data.labels.accessor<std::int64_t, 1>();
  auto p = predictions.probabilities.accessor<float, 2>();
  json j = {{"model", network.info().path},
            {"data", data.name},
            {"images", data.size()},
            {"classes", network.info().classes},
            {"not_a_number", not_a_number(predictions)}};
  j["accuracy"] = evaluation != nullptr ? json(evaluation->accuracy) : json();
  j["predictions"] = json::array();
  for (std::int64_t i = 0; i < labels.size(0); ++i) {
    std::vector<double> row;
    for (std::int64_t c = 0; c < p.size(1); ++c) row.push_back(p[i][c]);
    j["predictions"].push_back({{"index", i},
                                {"label", truth[i] < 0 ? json() : json(truth[i])},
                                {"predicted", labels[i]},
                                {"name", verdict_name(network, data, labels[i])},
                                {"probabilities", labels[i] == kNotANumber ? json() : json(row)}});
  }
  return j.dump(1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n";
}

void run(const Common& common, PredictFlags& flags) {
  Dataset data = load_data(flags.data);
  std::unique_ptr<Network> network = flags.model.load(&data);
  auto start = std::chrono::steady_clock::now();
  Predictions predictions = predict_all(*network, data, "predicting");
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::optional<Evaluation> evaluation;
  if (data.labelled()) {
    evaluation = score(*network, data, predictions);
    if (auto warning = suspicious(*network, *evaluation)) log::warn("{}", *warning);
  }
  std::string text = common.json ? as_json(*network, data, predictions, evaluation ? &*evaluation : nullptr)
                                 : as_csv(*network, data, predictions);
  if (flags.output.empty()) {
    std::cout << text;
  } else {
    write_file(flags.output, text);
  }
  std::int64_t unknown = not_a_number(predictions);
  log::info("{} images in {:.2f} s ({:.0f} images/s){}{}{}", data.size(), seconds,
            static_cast<double>(data.size()) / seconds,
            evaluation ? fmt::format(", accuracy {:.2f}%", evaluation->accuracy * 100) : "",
            unknown > 0 ? fmt::format(", {} are {}", unknown, kNotANumberName) : "",
            flags.output.empty() ? "" : ", written to " + flags.output);
}

}  // namespace

void add_predict_verb(CLI::App& app, Common& common) {
  auto flags = std::make_shared<PredictFlags>();
  CLI::App* verb = make_verb(app, common, "predict", "write predicted labels and probabilities as CSV or JSON",
                             "  galvani predict lenet5.onnx --data digits:test -o predictions.csv\n"
                             "  galvani predict lenet5.onnx --data photos/ --json");
  flags->model.add_to(*verb);
  verb->add_option("--data", flags->data, "images to predict")->required();
  verb->add_option("-o,--output", flags->output, "file to write (default: standard output)");
  verb->callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
