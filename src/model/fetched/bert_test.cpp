#include "model/fetched/bert.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "galvani/base/json.h"
#include "galvani/model/onnx_graph.h"
#include "model/testing.h"

namespace galvani {
namespace {

const char* const kBertConfig =
    R"({"model_type": "bert", "hidden_act": "gelu", "hidden_size": 6, "num_attention_heads": 2,
  "num_hidden_layers": 2, "intermediate_size": 5, "vocab_size": 7, "max_position_embeddings": 9, "type_vocab_size": 2,
  "layer_norm_eps": 1e-12})";

using Tensors = std::map<std::string, at::Tensor>;

Tensors bert_weights() {
  Tensors all;
  double phase = 0;
  auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    std::int64_t n = 1;
    for (std::int64_t side : shape) n *= side;
    all[name] = (at::arange(n, at::kFloat) * 1.3 + phase++).sin().view(shape).contiguous();
  };
  auto dense = [&](const std::string& name, std::int64_t to, std::int64_t from) {
    add(name + ".weight", {to, from});
    add(name + ".bias", {to});
  };
  auto norm = [&](const std::string& name) {
    add(name + ".weight", {6});
    add(name + ".bias", {6});
  };
  add("embeddings.word_embeddings.weight", {7, 6});
  add("embeddings.position_embeddings.weight", {9, 6});
  add("embeddings.token_type_embeddings.weight", {2, 6});
  norm("embeddings.LayerNorm");
  for (int i = 0; i < 2; ++i) {
    std::string layer = "encoder.layer." + std::to_string(i) + ".";
    for (const char* part : {"query", "key", "value"}) dense(layer + "attention.self." + part, 6, 6);
    dense(layer + "attention.output.dense", 6, 6);
    norm(layer + "attention.output.LayerNorm");
    dense(layer + "intermediate.dense", 5, 6);
    dense(layer + "output.dense", 6, 5);
    norm(layer + "output.LayerNorm");
  }
  return all;
}

std::string as_safetensors(const Tensors& all) {
  Json header;
  std::string data;
  for (const auto& [name, value] : all) {
    std::size_t start = data.size();
    data.append(static_cast<const char*>(value.data_ptr()), value.nbytes());
    header[name] = {{"dtype", "F32"}, {"shape", value.sizes().vec()}, {"data_offsets", {start, data.size()}}};
  }
  std::string text = json_text(header);
  std::uint64_t length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + text + data;
}

// One text after the other, by LibTorch's own layers.
at::Tensor by_layers(const Tensors& w, const at::Tensor& ids) {
  auto dense = [&](const at::Tensor& x, const std::string& name) {
    return at::linear(x, w.at(name + ".weight"), w.at(name + ".bias"));
  };
  auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {6}, w.at(name + ".weight"), w.at(name + ".bias"), 1e-12);
  };
  std::int64_t n = ids.size(0);
  at::Tensor x = w.at("embeddings.word_embeddings.weight").index_select(0, ids) +
                 w.at("embeddings.position_embeddings.weight").narrow(0, 0, n) +
                 w.at("embeddings.token_type_embeddings.weight")[0];
  x = norm(x, "embeddings.LayerNorm");
  for (int i = 0; i < 2; ++i) {
    std::string layer = "encoder.layer." + std::to_string(i) + ".";
    auto heads = [&](const char* part) {
      return dense(x, layer + "attention.self." + part).view({n, 2, 3}).transpose(0, 1);
    };
    at::Tensor shares = (heads("query").matmul(heads("key").transpose(1, 2)) / std::sqrt(3.0)).softmax(-1);
    at::Tensor mixed = shares.matmul(heads("value")).transpose(0, 1).reshape({n, 6});
    x = norm(dense(mixed, layer + "attention.output.dense") + x, layer + "attention.output.LayerNorm");
    at::Tensor wide = at::gelu(dense(x, layer + "intermediate.dense"));
    x = norm(dense(wide, layer + "output.dense") + x, layer + "output.LayerNorm");
  }
  return x;
}

TEST(Bert, BecomesOnnxThatComputesTheSame) {
  Tensors weights = bert_weights();
  std::string bytes = as_safetensors(weights);
  BertShape shape = BertShape::from_json(kBertConfig, "c");
  auto graph = OnnxGraph::from_bytes(bert_as_onnx("b", shape, SafeTensors(bytes, "f"), "s", "l"), "b");
  at::Tensor ids = at::tensor({2, 5, 1, 6}, at::kLong).unsqueeze(0);
  auto found = graph->run({ids, at::ones_like(ids), at::zeros_like(ids)});
  at::Tensor expected = by_layers(weights, ids[0]);
  EXPECT_TRUE(at::allclose(found[0][0], expected, 1e-4, 1e-5));
  at::Tensor mean = expected.mean(0);
  EXPECT_TRUE(at::allclose(found[1][0], mean / mean.norm(), 1e-4, 1e-5));

  // Padding changes nothing, beside a longer text or not.
  at::Tensor two = at::tensor({2, 5, 1, 6, 3, 1, 4, 0}, at::kLong).view({2, 4});
  at::Tensor mask = at::tensor({1, 1, 1, 1, 1, 1, 1, 0}, at::kLong).view({2, 4});
  auto both = graph->run({two, mask, at::zeros_like(two)});
  EXPECT_TRUE(at::allclose(both[1][0], found[1][0], 1e-4, 1e-5));
  at::Tensor second = by_layers(weights, at::tensor({3, 1, 4}, at::kLong)).mean(0);
  EXPECT_TRUE(at::allclose(both[1][1], second / second.norm(), 1e-4, 1e-5));
}

TEST(Bert, SaysWhatItCannotRead) {
  auto with = [](const std::string& from, const std::string& to) {
    std::string changed = kBertConfig;
    changed.replace(changed.find(from), from.size(), to);
    return testing::error_of([&] { BertShape::from_json(changed, "c"); });
  };
  EXPECT_EQ(with("\"bert\"", "\"gpt2\""), "c: 'model_type' is not bert");
  EXPECT_EQ(with("\"gelu\"", "\"relu\""), "c: 'hidden_act' is not gelu");
  EXPECT_EQ(with("\"hidden_size\": 6", "\"hidden_size\": 0"), "c: 'hidden_size' is 0");
  EXPECT_EQ(with("_heads\": 2", "_heads\": 4"), "c: 6 numbers cannot be split into 4 heads");
  EXPECT_NE(with("\"vocab_size\"", "\"words\"").find("c: is not what a BERT has"), std::string::npos);
  EXPECT_EQ(testing::error_of([] { BertShape::from_json("{", "c"); }), "c: is no JSON object");
}

}  // namespace
}  // namespace galvani
