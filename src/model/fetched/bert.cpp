#include "model/fetched/bert.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/nesting.h"
#include "model/onnx/writer.h"

namespace galvani {
namespace {

using nlohmann::json;
using onnx::set_int;
using onnx::set_ints;

// Far below any score, so that what is masked gets a share of exactly 0.
constexpr float kMasked = -1e9F;

class BertWriter {
 public:
  BertWriter(const std::string& name, const BertShape& shape, const SafeTensors& tensors)
      : shape_(shape), tensors_(tensors), out_(name) {}

  std::string write(const std::string& source, const std::string& licence) {
    const std::vector<std::string> open = {"batch", "sequence"};
    for (const char* input : {"input_ids", "attention_mask", "token_type_ids"})
      out_.input(input, at::kLong, {-1, -1}, open);
    std::string mask = node("Cast", "mask", {"attention_mask"}, "to", ::onnx::TensorProto::FLOAT);
    std::string x = embeddings();
    std::string bias = attention_bias(mask);
    for (std::int64_t i = 0; i < shape_.layers; ++i)
      x = layer(fmt::format("encoder.layer.{}", i), x, bias, i + 1 == shape_.layers);
    std::string pooled = pool(x, mask);
    out_.output(x, at::kFloat, {-1, -1, shape_.hidden}, open);
    out_.output(pooled, at::kFloat, {-1, shape_.hidden}, open);
    out_.metadata("galvani.source", source);
    out_.metadata("galvani.licence", licence);
    return out_.bytes();
  }

 private:
  std::string node(const std::string& type, const std::string& name, const std::vector<std::string>& inputs) {
    out_.node(type, name, inputs);
    return name;
  }
  std::string node(const std::string& type, const std::string& name, const std::vector<std::string>& inputs,
                   const std::string& attribute, std::int64_t value) {
    set_int(out_.node(type, name, inputs), attribute, value);
    return name;
  }
  std::string node(const std::string& type, const std::string& name, const std::vector<std::string>& inputs,
                   const std::string& attribute, const std::vector<std::int64_t>& values) {
    set_ints(out_.node(type, name, inputs), attribute, values);
    return name;
  }
  std::string weight(const std::string& name, const std::vector<std::int64_t>& shape) {
    return out_.weight(name, tensors_.get(name, shape));
  }
  std::string mean(const std::string& name, const std::string& x) {
    return node("ReduceMean", name, {x}, "axes", std::vector<std::int64_t>{-1});
  }

  std::string norm(const std::string& name, const std::string& x, const std::string& result) {
    std::string centred = node("Sub", name + "/centred", {x, mean(name + "/mean", x)});
    std::string squares = node("Mul", name + "/squares", {centred, centred});
    std::string epsilon = out_.constant(name + "/epsilon", static_cast<float>(shape_.epsilon));
    std::string variance = node("Add", name + "/variance", {mean(name + "/mean_square", squares), epsilon});
    std::string unit = node("Div", name + "/unit", {centred, node("Sqrt", name + "/deviation", {variance})});
    std::string scaled = node("Mul", name + "/scaled", {unit, weight(name + ".weight", {shape_.hidden})});
    return node("Add", result, {scaled, weight(name + ".bias", {shape_.hidden})});
  }

  // x · Wᵀ + b
  std::string dense(const std::string& name, const std::string& x, std::int64_t from, std::int64_t to) {
    std::string w = out_.weight(name + ".weight", tensors_.get(name + ".weight", {to, from}).t().contiguous());
    return node("Add", name, {node("MatMul", name + "/product", {x, w}), weight(name + ".bias", {to})});
  }

  std::string embeddings() {
    const std::string prefix = "embeddings.";
    std::string words = weight(prefix + "word_embeddings.weight", {shape_.words, shape_.hidden});
    std::string types = weight(prefix + "token_type_embeddings.weight", {shape_.types, shape_.hidden});
    std::string places = weight(prefix + "position_embeddings.weight", {shape_.positions, shape_.hidden});
    std::string sum = node("Add", prefix + "words_and_types",
                           {node("Gather", prefix + "words", {words, "input_ids"}),
                            node("Gather", prefix + "types", {types, "token_type_ids"})});
    // The first T rows.
    std::string zero = out_.constant(prefix + "zero", std::vector<std::int64_t>{0});
    std::string one = out_.constant(prefix + "one", std::vector<std::int64_t>{1});
    std::string shape = node("Shape", prefix + "shape", {"input_ids"});
    std::string length = node("Gather", prefix + "length", {shape, one});
    std::string first = node("Slice", prefix + "positions", {places, zero, length, zero});
    return norm(prefix + "LayerNorm", node("Add", prefix + "sum", {sum, first}), prefix + "output");
  }

  // 0 where a token may be looked at, far below where not; [N, 1, 1, T].
  std::string attention_bias(const std::string& mask) {
    std::string one = out_.constant("attention.one", 1.0F);
    std::string low = out_.constant("attention.low", kMasked);
    std::string axes = out_.constant("attention.axes", std::vector<std::int64_t>{1, 2});
    std::string bias = node("Mul", "attention.missing", {node("Sub", "attention.absent", {one, mask}), low});
    return node("Unsqueeze", "attention.bias", {bias, axes});
  }

  // [N, T, hidden] → [N, heads, T, hidden / heads], or with the last two exchanged.
  std::string split(const std::string& x, bool turned) {
    std::string shape = out_.constant(x + "/shape", {0, 0, shape_.heads, shape_.hidden / shape_.heads});
    std::vector<std::int64_t> order = {0, 2, 1, 3};
    if (turned) order = {0, 2, 3, 1};
    return node("Transpose", x + "/heads", {node("Reshape", x + "/split", {x, shape})}, "perm", order);
  }

  std::string attention(const std::string& name, const std::string& x, const std::string& bias) {
    std::int64_t d = shape_.hidden;
    std::string query = split(dense(name + ".self.query", x, d, d), false);
    std::string key = split(dense(name + ".self.key", x, d, d), true);
    std::string value = split(dense(name + ".self.value", x, d, d), false);
    auto width = static_cast<double>(shape_.hidden) / static_cast<double>(shape_.heads);
    std::string scale = out_.constant(name + "/scale", static_cast<float>(1 / std::sqrt(width)));
    std::string scores = node("Mul", name + "/scaled", {node("MatMul", name + "/scores", {query, key}), scale});
    std::string shares =
        node("Softmax", name + "/shares", {node("Add", name + "/masked", {scores, bias})}, "axis", std::int64_t{-1});
    std::string mixed = node("Transpose", name + "/mixed", {node("MatMul", name + "/context", {shares, value})}, "perm",
                             std::vector<std::int64_t>{0, 2, 1, 3});
    std::string shape = out_.constant(name + "/shape", {0, 0, d});
    std::string joined = node("Reshape", name + "/joined", {mixed, shape});
    std::string out = dense(name + ".output.dense", joined, d, d);
    return norm(name + ".output.LayerNorm", node("Add", name + "/sum", {out, x}), name + "/output");
  }

  // x · (1 + erf(x / √2)) / 2
  std::string gelu(const std::string& name, const std::string& x) {
    std::string root = out_.constant(name + "/root", static_cast<float>(1 / std::sqrt(2.0)));
    std::string erf = node("Erf", name + "/erf", {node("Mul", name + "/argument", {x, root})});
    std::string one = out_.constant(name + "/one", 1.0F);
    std::string half = out_.constant(name + "/half", 0.5F);
    std::string gate = node("Mul", name + "/gate", {node("Add", name + "/shifted", {erf, one}), half});
    return node("Mul", name, {x, gate});
  }

  std::string layer(const std::string& name, const std::string& x, const std::string& bias, bool last) {
    std::string attended = attention(name + ".attention", x, bias);
    std::string wide = dense(name + ".intermediate.dense", attended, shape_.hidden, shape_.inner);
    std::string active = gelu(name + ".intermediate/gelu", wide);
    std::string narrow = dense(name + ".output.dense", active, shape_.inner, shape_.hidden);
    return norm(name + ".output.LayerNorm", node("Add", name + "/sum", {narrow, attended}),
                last ? "last_hidden_state" : name + "/output");
  }

  std::string pool(const std::string& x, const std::string& mask) {
    std::string last_axis = out_.constant("pool/axis", std::vector<std::int64_t>{-1});
    std::string over_time = out_.constant("pool/time", std::vector<std::int64_t>{1});
    std::string column = node("Unsqueeze", "pool/mask", {mask, last_axis});
    std::string sum =
        node("ReduceSum", "pool/sum", {node("Mul", "pool/kept", {x, column}), over_time}, "keepdims", std::int64_t{0});
    std::string count = node("ReduceSum", "pool/count", {column, over_time}, "keepdims", std::int64_t{0});
    std::string average = node("Div", "pool/mean", {sum, count});
    std::string length = node("ReduceL2", "pool/length", {average}, "axes", std::vector<std::int64_t>{-1});
    return node("Div", "sentence_embedding", {average, length});
  }

  const BertShape& shape_;
  const SafeTensors& tensors_;
  onnx::GraphWriter out_;
};

}  // namespace

BertShape BertShape::from_json(const std::string& text, const std::string& where) {
  json j = parse_json<json>(text);
  if (!j.is_object()) bad_input("{}: is no JSON object", where);
  BertShape shape;
  try {
    if (j.at("model_type") != "bert") bad_input("{}: 'model_type' is not bert", where);
    if (j.at("hidden_act") != "gelu") bad_input("{}: 'hidden_act' is not gelu", where);
    if (j.value("position_embedding_type", "absolute") != "absolute")
      bad_input("{}: 'position_embedding_type' is not absolute", where);
    auto size = [&](const char* key) {
      auto value = j.at(key).get<std::int64_t>();
      if (value < 1 || value > (1 << 24)) bad_input("{}: '{}' is {}", where, key, value);
      return value;
    };
    shape.hidden = size("hidden_size");
    shape.heads = size("num_attention_heads");
    shape.layers = size("num_hidden_layers");
    shape.inner = size("intermediate_size");
    shape.words = size("vocab_size");
    shape.positions = size("max_position_embeddings");
    shape.types = size("type_vocab_size");
    shape.epsilon = j.at("layer_norm_eps").get<double>();
  } catch (const json::exception& e) {
    bad_input("{}: is not what a BERT has: {}", where, printable(e.what()));
  }
  if (shape.hidden % shape.heads != 0)
    bad_input("{}: {} numbers cannot be split into {} heads", where, shape.hidden, shape.heads);
  return shape;
}

std::string bert_as_onnx(const std::string& name, const BertShape& shape, const SafeTensors& tensors,
                         const std::string& source, const std::string& licence) {
  return BertWriter(name, shape, tensors).write(source, licence);
}

}  // namespace galvani
