#include "galvani/semantics/descriptions.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/nesting.h"

namespace galvani {
namespace {

using nlohmann::json;

constexpr const char* kDescriptionsFormat = "galvani neurons 1";
constexpr std::uint64_t kMostDescriptionBytes = std::uint64_t{1} << 30;

Json to_value(const DescribedNeuron& neuron) {
  Json parts = Json::array();
  for (const Evidence& part : neuron.parts)
    parts.push_back(
        {{"words", part.words}, {"about", part.about}, {"figure", part.figure}, {"score", part.score}, {"p", part.p}});
  Json exemplars = Json::array();
  for (const auto& [row, peak] : neuron.exemplars) {
    Json pair = Json::array();
    pair.push_back(row);
    pair.push_back(peak);
    exemplars.push_back(pair);
  }
  return {{"words", neuron.words}, {"sure", neuron.sure},       {"score", neuron.score},
          {"p", neuron.p},         {"figure", neuron.figure},   {"threshold", neuron.threshold},
          {"above", neuron.above}, {"parts", std::move(parts)}, {"exemplars", std::move(exemplars)}};
}

Json to_value(const Calibration& c) {
  Json quartiles = Json::array();
  for (double q : c.quartiles) quartiles.push_back(q);
  return {{"paths", c.paths},
          {"data", c.data},
          {"generator", c.generator},
          {"inputs", c.inputs},
          {"mutants", c.mutants},
          {"quantile", c.quantile},
          {"tau", c.tau},
          {"quartiles", quartiles},
          {"below", c.below},
          {"same-words", c.same_words}};
}

DescribedNeuron neuron_from(const json& j) {
  DescribedNeuron neuron;
  neuron.words = j.at("words").get<std::string>();
  neuron.sure = j.at("sure").get<bool>();
  neuron.score = j.at("score").get<double>();
  neuron.p = j.at("p").get<double>();
  neuron.figure = j.at("figure").get<std::string>();
  neuron.threshold = j.at("threshold").get<float>();
  neuron.above = j.at("above").get<double>();
  for (const json& part : j.at("parts"))
    neuron.parts.push_back({part.at("words").get<std::string>(), part.at("about").get<std::string>(),
                            part.at("figure").get<std::string>(), part.at("score").get<double>(),
                            part.at("p").get<double>()});
  for (const json& pair : j.at("exemplars"))
    neuron.exemplars.emplace_back(pair.at(0).get<std::int64_t>(), pair.at(1).get<float>());
  return neuron;
}

Calibration calibration_from(const json& j) {
  Calibration c;
  c.paths = j.at("paths").get<std::string>();
  c.data = j.at("data").get<std::string>();
  c.generator = j.at("generator").get<std::string>();
  c.inputs = j.at("inputs").get<std::int64_t>();
  c.mutants = j.at("mutants").get<std::int64_t>();
  c.quantile = j.at("quantile").get<double>();
  c.tau = j.at("tau").get<double>();
  for (std::size_t i = 0; i < 3; ++i) c.quartiles[i] = j.at("quartiles").at(i).get<double>();
  c.below = j.at("below").get<double>();
  c.same_words = j.at("same-words").get<double>();
  return c;
}

Json layers_value(const std::vector<DescribedLayer>& layers) {
  Json result = Json::array();
  for (const DescribedLayer& layer : layers) {
    Json neurons = Json::array();
    for (const DescribedNeuron& neuron : layer.neurons) neurons.push_back(to_value(neuron));
    result.push_back({{"tap", layer.tap}, {"neurons", std::move(neurons)}});
  }
  return result;
}

}  // namespace

std::int64_t Descriptions::neurons() const {
  std::int64_t count = 0;
  for (const DescribedLayer& layer : layers) count += static_cast<std::int64_t>(layer.neurons.size());
  return count;
}

std::string Descriptions::to_json() const {
  Json all_calibrations = Json::array();
  for (const Calibration& c : calibrations) all_calibrations.push_back(to_value(c));
  Json j = {{"format", kDescriptionsFormat},
            {"model", model},
            {"describer", describer},
            {"data", data},
            {"inputs", inputs},
            {"seed", seed},
            {"count", options.count},
            {"quantile", options.quantile}};
  j["layers"] = layers_value(layers);
  j["calibrations"] = std::move(all_calibrations);
  return json_text(j, 1) + "\n";
}

void Descriptions::save(const std::filesystem::path& path) const {
  write_file(path, to_json());
}

std::string Descriptions::sha256() const {
  return galvani::sha256(model + "\n" + json_text(layers_value(layers)));
}

Descriptions Descriptions::load(const std::filesystem::path& path, const Network& network) {
  std::string text = read_file(path, kMostDescriptionBytes);
  Descriptions result;
  try {
    json j = parse_json<json>(text);
    if (j.is_discarded())
      bad_input("{}: is cut short or no JSON; make it again with 'galvani describe'", path.string());
    if (!j.is_object() || !j.contains("format") || j.at("format") != kDescriptionsFormat)
      bad_input("{}: is no description of neurons; 'galvani describe' writes one", path.string());
    result.model = j.at("model").get<std::string>();
    result.describer = j.at("describer").get<std::string>();
    result.data = j.at("data").get<std::string>();
    result.inputs = j.at("inputs").get<std::int64_t>();
    result.seed = j.at("seed").get<std::uint64_t>();
    result.options.count = j.at("count").get<std::int64_t>();
    result.options.quantile = j.at("quantile").get<double>();
    for (const json& layer : j.at("layers")) {
      DescribedLayer described{layer.at("tap").get<std::string>(), {}};
      for (const json& neuron : layer.at("neurons")) described.neurons.push_back(neuron_from(neuron));
      result.layers.push_back(std::move(described));
    }
    for (const json& c : j.at("calibrations")) result.calibrations.push_back(calibration_from(c));
  } catch (const json::exception& e) {
    bad_input("{}: is damaged: {}; make it again with 'galvani describe'", path.string(), printable(e.what()));
  }
  if (result.model != network.identity())
    bad_input("{}: describes the neurons of another model than {}; make one with 'galvani describe {}'", path.string(),
              network.info().path, network.info().path);
  if (result.layers.empty()) bad_input("{}: describes no layer", path.string());
  try {
    result.taps(network);
  } catch (const Error& e) {
    bad_input("{}: {}", path.string(), e.what());
  }
  return result;
}

std::vector<int> Descriptions::taps(const Network& network) const {
  std::vector<int> found;
  for (const DescribedLayer& layer : layers) {
    const auto& taps = network.taps();
    auto tap = std::find_if(taps.begin(), taps.end(), [&](const Tap& t) { return t.name == layer.tap; });
    if (tap == taps.end() || tap->neurons() != static_cast<std::int64_t>(layer.neurons.size()))
      bad_input("the model has no layer '{}' of {} neurons", printable(layer.tap), layer.neurons.size());
    found.push_back(static_cast<int>(tap - taps.begin()));
  }
  return found;
}

std::filesystem::path last_descriptions(const Network& network) {
  return cache_folder() / "neurons" / (network.identity() + ".json");
}

Descriptions describe(Describer& describer, const DescribeTask& task) {
  std::vector<std::vector<NeuronWords>> words = describer.describe(task);
  Descriptions result;
  const Exemplars& exemplars = task.exemplars;
  result.model = exemplars.model;
  result.describer = describer.spec();
  result.data = exemplars.data;
  result.inputs = exemplars.inputs;
  result.seed = task.seed;
  result.options = exemplars.options;
  auto count = static_cast<std::size_t>(exemplars.options.count);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const ExemplarLayer& from = exemplars.layers[i];
    DescribedLayer layer{from.tap, {}};
    for (std::size_t n = 0; n < words[i].size(); ++n) {
      DescribedNeuron neuron;
      static_cast<NeuronWords&>(neuron) = std::move(words[i][n]);
      neuron.threshold = from.threshold[n];
      neuron.above = from.above[n];
      for (std::size_t place = 0; place < count && from.rows[n * count + place] >= 0; ++place)
        neuron.exemplars.emplace_back(from.rows[n * count + place], from.peaks[n * count + place]);
      layer.neurons.push_back(std::move(neuron));
    }
    result.layers.push_back(std::move(layer));
  }
  return result;
}

}  // namespace galvani
