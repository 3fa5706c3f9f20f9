// Classifiers of photographs.
#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/nesting.h"
#include "galvani/model/network.h"
#include "model/fetched/classifier.h"
#include "model/fetched/converters.h"
#include "model/fetched/keras.h"
#include "model/fetched/tflite.h"

namespace galvani {
namespace {

constexpr std::int64_t kSide = 224;

// A picture that needs no file: stripes and waves, byte (7x + 13y + 29c + xy / 8) mod 256. [1, 3, 224, 224]
at::Tensor probe_picture() {
  at::Tensor x = at::arange(kSide, at::kLong).view({1, 1, kSide});
  at::Tensor y = at::arange(kSide, at::kLong).view({1, kSide, 1});
  at::Tensor c = at::arange(3, at::kLong).view({3, 1, 1});
  at::Tensor all = x * 7 + y * 13 + c * 29 + at::floor_divide(x * y, 8);
  return all.remainder(256).to(at::kByte).unsqueeze(0);
}

struct Recorded {
  std::int64_t label;
  double score;
};

// `recorded`: scores of the probe picture that a program of its own computed from the package's files.
void check_scores(const FetchedModel& model, const std::string& onnx, const std::vector<Recorded>& recorded) {
  constexpr double kTolerance = 2e-3;
  auto network = Network::from_onnx(onnx, model.name, {});
  Request request;
  request.alone = true;
  at::Tensor scores = network->run(probe_picture(), request).logits[0];
  for (const Recorded& expected : recorded) {
    auto found = scores[expected.label].item<double>();
    if (!(std::abs(found - expected.score) < kTolerance))
      fail(ErrorCode::internal, "{} gives {} for class {} where {} is recorded", model.name, found, expected.label,
           expected.score);
  }
}

std::map<std::string, std::string> files_under(const FetchedModel& model, const std::filesystem::path& archive,
                                               const std::vector<std::string>& prefixes) {
  std::map<std::string, std::string> files;
  auto wanted = [&](const std::string& name) {
    return std::any_of(prefixes.begin(), prefixes.end(), [&](const auto& p) { return name.rfind(p, 0) == 0; });
  };
  read_archive(archive, kMostUnpacked, wanted,
               [&](const std::string& name, std::string bytes) { files[name] = std::move(bytes); });
  return files;
}

const std::string& file_of(const FetchedModel& model, const std::map<std::string, std::string>& files,
                           const std::string& name) {
  auto found = files.find(name);
  if (found == files.end()) bad_input("{}: holds no {}", model.package, name);
  return found->second;
}

ModelCard imagenet_card(const FetchedModel& model, const std::string& architecture, std::vector<std::string> names) {
  ModelCard card;
  card.preprocess_known = true;
  card.input = {3, kSide, kSide};
  // As both were evaluated: the short side to 256, the centre of 224 cut out.
  card.intake.resize = Intake::Resize::short_side;
  card.intake.side = 256;
  card.class_names = distinct_imagenet_names(std::move(names));
  card.architecture = architecture;
  card.data = "ImageNet (ILSVRC 2012)";
  card.source = "npm " + model.package;
  card.licence = model.licence;
  return card;
}

// {"0": "tench", ...}
std::vector<std::string> keras_labels(const std::string& text, const std::string& where) {
  auto labels = parse_json<nlohmann::json>(text);
  std::vector<std::string> names;
  try {
    for (std::size_t i = 0; i < labels.size(); ++i) names.push_back(labels.at(std::to_string(i)).get<std::string>());
  } catch (const nlohmann::json::exception&) {
    bad_input("{}: is no list of class names", where);
  }
  return names;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

void convert_resnet50(const FetchedModel& model, const std::filesystem::path& archive, CacheFolder& folder) {
  const std::string prefix = "package/ResNet50/";
  const std::string labels = "package/assets/labels.json";
  auto files = files_under(model, archive, {prefix, labels});
  const std::string& topology = file_of(model, files, prefix + "model.json");
  auto manifest = parse_json<nlohmann::json>(topology);
  std::string weights;
  try {
    for (const auto& group : manifest.at("weightsManifest")) {
      for (const auto& name : group.at("paths")) weights += file_of(model, files, prefix + name.get<std::string>());
    }
  } catch (const nlohmann::json::exception&) {
    bad_input("{}: model.json names no weights", model.package);
  }
  ModelCard card = imagenet_card(model, "resnet50", keras_labels(file_of(model, files, labels), model.package));
  // Keras subtracts the means of ImageNet's blue, green and red from bytes.
  card.preprocess.high = 255;
  card.preprocess.mean = {103.939, 116.779, 123.68};
  card.preprocess.bgr = true;
  card.accuracy = 0.749;
  card.accuracy_data = "ImageNet's validation images, says the package";
  std::string onnx = keras_as_onnx(topology, weights, model.package + ": model.json", card);
  check_scores(model, onnx, {{581, 12.60265}, {754, 10.88999}, {0, -2.89316}, {281, 0.23088}, {999, 0.91304}});
  write_file(folder.file(model.main), onnx);
}

void convert_mobilenet(const FetchedModel& model, const std::filesystem::path& archive, CacheFolder& folder) {
  const std::string prefix = "package/example/models/mobilenet_v1_1.0_224.";
  auto files = files_under(model, archive, {prefix});
  ModelCard card = imagenet_card(model, "mobilenet-v1", lines_of(file_of(model, files, prefix + "txt")));
  card.preprocess.low = -1;
  card.preprocess.high = 1;
  std::string onnx = tflite_as_onnx(file_of(model, files, prefix + "tflite"), model.package, card);
  check_scores(model, onnx, {{906, 9.97470}, {790, 8.24051}, {0, -2.28490}, {281, -3.01092}, {999, 2.23447}});
  write_file(folder.file(model.main), onnx);
}

}  // namespace galvani
