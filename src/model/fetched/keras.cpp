#include "model/fetched/keras.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/nesting.h"
#include "model/fetched/classifier.h"

namespace galvani {
namespace {

using nlohmann::json;
using onnx::set_float;
using onnx::set_int;
using onnx::set_ints;

class KerasReader {
 public:
  KerasReader(const json& model, const std::string& weights, const std::string& label, const ModelCard& card)
      : label_(label), card_(card), out_(card.architecture), names_(label) {
    place_weights(model.at("weightsManifest"), weights);
    layers_ = model.at("modelTopology").at("model_config").at("config").at("layers");
    for (const json& layer : layers_) {
      for (const std::string& name : inputs_of(layer)) ++readers_[name];
    }
  }

  std::string convert() {
    for (const json& layer : layers_) add(layer);
    if (!finished_) bad_input("{}: does not end in a dense layer", label_);
    return finish_classifier(out_, card_);
  }

 private:
  // What a layer gave: a value and its shape without the batch, and padding that the next layer is yet to do.
  struct Value {
    std::string name;
    std::vector<std::int64_t> shape;  // [C, H, W] or [features]
    Padding rows, columns;
  };

  void place_weights(const json& manifest, const std::string& weights) {
    std::size_t place = 0;
    for (const json& group : manifest) {
      for (const json& entry : group.at("weights")) {
        auto name = entry.at("name").get<std::string>();
        auto shape = entry.at("shape").get<std::vector<std::int64_t>>();
        if (entry.at("dtype") != "float32" || entry.contains("quantization"))
          bad_input("{}: weight '{}' is not float32", label_, printable(name));
        std::size_t numbers = 1;
        for (std::int64_t side : shape) {
          numbers *= std::min(static_cast<std::size_t>(side), weights.size() + 1);
          if (side < 1 || numbers > (weights.size() - place) / sizeof(float))
            bad_input("{}: its weights are cut short at '{}'", label_, printable(name));
        }
        at::Tensor value = at::empty(shape, at::kFloat);
        std::memcpy(value.data_ptr(), weights.data() + place, value.nbytes());
        place += value.nbytes();
        weights_.emplace(name, value);
      }
    }
    if (place != weights.size()) bad_input("{}: has more weights than its list names", label_);
  }

  std::vector<std::string> inputs_of(const json& layer) const {
    const json& calls = layer.at("inbound_nodes");
    if (calls.empty()) return {};
    if (calls.size() != 1) bad_input("{}: a layer is used more than once", label_);
    std::vector<std::string> names;
    for (const json& input : calls[0]) names.push_back(input.at(0).get<std::string>());
    return names;
  }

  at::Tensor weight(const std::string& name, const std::vector<std::int64_t>& shape) const {
    auto found = weights_.find(name);
    if (found == weights_.end()) bad_input("{}: has no weight '{}'", label_, name);
    if (found->second.sizes() != at::IntArrayRef(shape))
      bad_input("{}: weight '{}' is not [{}]", label_, name, fmt::join(shape, ", "));
    return found->second;
  }

  static std::pair<std::int64_t, std::int64_t> pair(const json& config, const char* key) {
    auto values = config.at(key).get<std::vector<std::int64_t>>();
    if (values.size() != 2 || values[0] < 1 || values[1] < 1) throw std::invalid_argument(key);
    return {values[0], values[1]};
  }

  static void require_map(const Value& x) {
    if (x.shape.size() != 3) throw std::invalid_argument("its input is no map");
  }

  void add(const json& layer) {
    auto name = layer.at("name").get<std::string>();
    auto kind = layer.at("class_name").get<std::string>();
    const json& config = layer.at("config");
    if (finished_) bad_input("{}: layer '{}' follows the last", label_, printable(name));
    names_.add(name);
    if (config.value("data_format", "channels_last") != "channels_last")
      bad_input("{}: layer '{}' has channels first", label_, printable(name));
    std::vector<Value> inputs;
    for (const std::string& input : inputs_of(layer)) {
      auto found = values_.find(input);
      if (found == values_.end()) bad_input("{}: layer '{}' reads what does not exist", label_, printable(name));
      inputs.push_back(found->second);
    }
    std::size_t wanted = kind == "InputLayer" ? 0 : kind == "Add" ? 2 : 1;
    if (inputs.size() != wanted) bad_input("{}: layer '{}' has {} inputs", label_, printable(name), inputs.size());
    if (kind == "ZeroPadding2D") {
      values_[name] = zero_padding(inputs[0], config);
      return;
    }
    // Only a convolution pads by itself; what precedes other layers has to be written out.
    for (Value& input : inputs) {
      if (kind != "Conv2D") input = padded(name, input);
    }
    values_[name] = made(name, kind, config, inputs);
  }

  Value made(const std::string& name, const std::string& kind, const json& config, const std::vector<Value>& inputs) {
    if (kind == "InputLayer") return image(config);
    if (kind == "Conv2D") return activated(name, config, convolution(name, config, inputs[0]));
    if (kind == "BatchNormalization") return batch_norm(name, config, inputs[0]);
    if (kind == "Activation") return activated(name, config, inputs[0]);
    if (kind == "MaxPooling2D") return max_pooling(name, config, inputs[0]);
    if (kind == "GlobalAveragePooling2D") return average(name, inputs[0]);
    if (kind == "Add") return sum(name, inputs);
    if (kind == "Dense") return dense(name, config, inputs[0]);
    bad_input("{}: layers of the kind '{}' are not supported", label_, printable(kind));
  }

  Value image(const json& config) {
    const json& shape = config.at("batch_input_shape");
    std::vector<std::int64_t> sides = {shape.at(3).get<std::int64_t>(), shape.at(1).get<std::int64_t>(),
                                       shape.at(2).get<std::int64_t>()};
    out_.input("input", at::kFloat, {-1, sides[0], sides[1], sides[2]}, {"N"});
    return {"input", sides, {}, {}};
  }

  static Value zero_padding(Value x, const json& config) {
    require_map(x);
    auto sides = config.at("padding").get<std::vector<std::vector<std::int64_t>>>();
    if (sides.size() != 2 || sides[0].size() != 2 || sides[1].size() != 2) throw std::invalid_argument("padding");
    x.rows.before += sides[0][0];
    x.rows.after += sides[0][1];
    x.columns.before += sides[1][0];
    x.columns.after += sides[1][1];
    return x;
  }

  Value padded(const std::string& name, const Value& x) {
    if (x.rows.before + x.rows.after + x.columns.before + x.columns.after == 0) return x;
    std::string pads =
        out_.constant(name + "/pads", {0, 0, x.rows.before, x.columns.before, 0, 0, x.rows.after, x.columns.after});
    out_.node("Pad", name + "/padded", {x.name, pads});
    return {name + "/padded",
            {x.shape[0], x.shape[1] + x.rows.before + x.rows.after, x.shape[2] + x.columns.before + x.columns.after},
            {},
            {}};
  }

  // Of a layer whose padding is "same" or "valid", on top of what was added before.
  struct Window {
    std::int64_t height, width, down, right;
    Padding rows, columns;
  };
  static Window window_of(const json& config, const char* size, const Value& x) {
    require_map(x);
    Window w{};
    std::tie(w.height, w.width) = pair(config, size);
    std::tie(w.down, w.right) = pair(config, "strides");
    if (config.value("dilation_rate", std::vector<int>{1, 1}) != std::vector<int>{1, 1})
      throw std::invalid_argument("dilation_rate");
    w.rows = x.rows;
    w.columns = x.columns;
    if (config.at("padding") == "same") {
      Padding rows = same_padding(x.shape[1] + x.rows.before + x.rows.after, w.height, w.down);
      Padding columns = same_padding(x.shape[2] + x.columns.before + x.columns.after, w.width, w.right);
      w.rows = {w.rows.before + rows.before, w.rows.after + rows.after};
      w.columns = {w.columns.before + columns.before, w.columns.after + columns.after};
    } else if (config.at("padding") != "valid") {
      throw std::invalid_argument("padding");
    }
    return w;
  }
  static std::vector<std::int64_t> windowed(std::int64_t channels, const Value& x, const Window& w) {
    return {channels, windowed_side(x.shape[1], w.height, w.down, w.rows),
            windowed_side(x.shape[2], w.width, w.right, w.columns)};
  }
  static void set_window(::onnx::NodeProto& node, const Window& w) {
    set_ints(node, "kernel_shape", {w.height, w.width});
    set_ints(node, "strides", {w.down, w.right});
    set_ints(node, "pads", {w.rows.before, w.columns.before, w.rows.after, w.columns.after});
  }

  Value convolution(const std::string& name, const json& config, const Value& x) {
    Window w = window_of(config, "kernel_size", x);
    auto filters = config.at("filters").get<std::int64_t>();
    at::Tensor kernel = weight(name + "/kernel", {w.height, w.width, x.shape[0], filters});
    std::vector<std::string> inputs = {x.name,
                                       out_.weight(name + ".weight", kernel.permute({3, 2, 0, 1}).contiguous())};
    if (config.at("use_bias").get<bool>())
      inputs.push_back(out_.weight(name + ".bias", weight(name + "/bias", {filters})));
    set_window(out_.node("Conv", name, inputs), w);
    return {name, windowed(filters, x, w), {}, {}};
  }

  Value batch_norm(const std::string& name, const json& config, const Value& x) {
    std::int64_t n = x.shape[0];
    std::vector<std::string> inputs = {x.name};
    for (const auto& [ours, theirs] :
         std::vector<std::pair<const char*, const char*>>{{"weight", "gamma"},
                                                          {"bias", "beta"},
                                                          {"running_mean", "moving_mean"},
                                                          {"running_var", "moving_variance"}})
      inputs.push_back(out_.weight(name + "." + ours, weight(name + "/" + theirs, {n})));
    ::onnx::NodeProto& node = out_.node("BatchNormalization", name, inputs);
    set_float(node, "epsilon", config.at("epsilon").get<float>());
    set_float(node, "momentum", config.at("momentum").get<float>());
    return {name, x.shape, {}, {}};
  }

  Value activated(const std::string& name, const json& config, const Value& x) {
    auto function = config.at("activation").get<std::string>();
    if (function == "linear") return x;
    if (function != "relu")
      bad_input("{}: layer '{}' has the activation '{}', which is not supported", label_, name, printable(function));
    std::string result = x.name == name ? name + "/relu" : name;
    out_.node("Relu", result, {x.name});
    return {result, x.shape, {}, {}};
  }

  Value max_pooling(const std::string& name, const json& config, const Value& x) {
    Window w = window_of(config, "pool_size", x);
    set_window(out_.node("MaxPool", name, {x.name}), w);
    return {name, windowed(x.shape[0], x, w), {}, {}};
  }

  Value average(const std::string& name, const Value& x) {
    require_map(x);
    out_.node("GlobalAveragePool", name, {x.name});
    set_int(out_.node("Flatten", name + "/flat", {name}), "axis", 1);
    return {name + "/flat", {x.shape[0]}, {}, {}};
  }

  Value sum(const std::string& name, const std::vector<Value>& inputs) {
    if (inputs[0].shape != inputs[1].shape) bad_input("{}: layer '{}' adds values of unlike shape", label_, name);
    out_.node("Add", name, {inputs[0].name, inputs[1].name});
    return {name, inputs[0].shape, {}, {}};
  }

  // The last layer; its softmax is left out.
  Value dense(const std::string& name, const json& config, const Value& x) {
    auto units = config.at("units").get<std::int64_t>();
    if (config.at("activation") != "softmax" || readers_[name] > 0)
      bad_input("{}: layer '{}' is dense but not the last", label_, name);
    at::Tensor kernel = weight(name + "/kernel", {x.shape.at(0), units});
    std::string w = out_.weight(name + ".weight", kernel.t().contiguous());
    std::string b = out_.weight(name + ".bias", weight(name + "/bias", {units}));
    ::onnx::NodeProto& node = out_.node("Gemm", name, {x.name, w, b});
    set_int(node, "transB", 1);
    node.set_output(0, "logits");
    out_.claim("logits");
    out_.output("logits", at::kFloat, {-1, units}, {"N"});
    finished_ = true;
    return {"logits", {units}, {}, {}};
  }

  const std::string& label_;
  const ModelCard& card_;
  onnx::GraphWriter out_;
  LayerNames names_;
  json layers_;
  std::map<std::string, at::Tensor> weights_;
  std::map<std::string, Value> values_;
  std::map<std::string, int> readers_;
  bool finished_ = false;
};

}  // namespace

std::string keras_as_onnx(const std::string& model_json, const std::string& weights, const std::string& label,
                          const ModelCard& card) {
  json model = parse_json<json>(model_json);
  if (!model.is_object()) bad_input("{}: is no JSON object", label);
  try {
    return KerasReader(model, weights, label, card).convert();
  } catch (const json::exception& e) {
    bad_input("{}: is not a Keras model as expected: {}", label, printable(e.what()));
  } catch (const std::invalid_argument& e) {
    bad_input("{}: has a layer that is not understood: {}", label, printable(e.what()));
  }
}

}  // namespace galvani
