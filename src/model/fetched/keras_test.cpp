#include "model/fetched/keras.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/model/network.h"
#include "model/fetched/classifier.h"

namespace galvani {
namespace {

// 4x4 images of 2 channels: padding, convolution 3x3 in steps of 2, batch norm, ReLU, padding, max pooling, 1x1
// convolution "same", sum with itself, mean, dense layer for 3 classes.
const char* const kKerasModel = R"({"modelTopology": {"model_config": {"config": {"layers": [
 {"name": "in", "class_name": "InputLayer", "config": {"batch_input_shape": [null, 4, 4, 2]}, "inbound_nodes": []},
 {"name": "pad", "class_name": "ZeroPadding2D", "config": {"padding": [[1, 0], [0, 1]]}, "inbound_nodes": [[["in", 0, 0, {}]]]},
 {"name": "conv", "class_name": "Conv2D", "config": {"filters": 3, "kernel_size": [3, 3], "strides": [2, 2], "padding": "valid",
  "activation": "linear", "use_bias": true}, "inbound_nodes": [[["pad", 0, 0, {}]]]},
 {"name": "bn", "class_name": "BatchNormalization", "config": {"epsilon": 0.001, "momentum": 0.99}, "inbound_nodes": [[["conv", 0, 0, {}]]]},
 {"name": "act", "class_name": "Activation", "config": {"activation": "relu"}, "inbound_nodes": [[["bn", 0, 0, {}]]]},
 {"name": "pad2", "class_name": "ZeroPadding2D", "config": {"padding": [[1, 1], [1, 1]]}, "inbound_nodes": [[["act", 0, 0, {}]]]},
 {"name": "pool", "class_name": "MaxPooling2D", "config": {"pool_size": [2, 2], "strides": [2, 2], "padding": "valid"}, "inbound_nodes": [[["pad2", 0, 0, {}]]]},
 {"name": "one", "class_name": "Conv2D", "config": {"filters": 3, "kernel_size": [1, 1], "strides": [1, 1], "padding": "same",
  "activation": "relu", "use_bias": false}, "inbound_nodes": [[["pool", 0, 0, {}]]]},
 {"name": "sum", "class_name": "Add", "config": {}, "inbound_nodes": [[["one", 0, 0, {}], ["pool", 0, 0, {}]]]},
 {"name": "avg", "class_name": "GlobalAveragePooling2D", "config": {}, "inbound_nodes": [[["sum", 0, 0, {}]]]},
 {"name": "fc", "class_name": "Dense", "config": {"units": 3, "activation": "softmax"}, "inbound_nodes": [[["avg", 0, 0, {}]]]}
 ]}}}, "weightsManifest": [{"paths": ["x"], "weights": [
 {"name": "conv/kernel", "shape": [3, 3, 2, 3], "dtype": "float32"}, {"name": "conv/bias", "shape": [3], "dtype": "float32"},
 {"name": "bn/gamma", "shape": [3], "dtype": "float32"}, {"name": "bn/beta", "shape": [3], "dtype": "float32"},
 {"name": "bn/moving_mean", "shape": [3], "dtype": "float32"}, {"name": "bn/moving_variance", "shape": [3], "dtype": "float32"},
 {"name": "one/kernel", "shape": [1, 1, 3, 3], "dtype": "float32"},
 {"name": "fc/kernel", "shape": [3, 3], "dtype": "float32"}, {"name": "fc/bias", "shape": [3], "dtype": "float32"}]}]})";

at::Tensor keras_numbers(const std::vector<std::int64_t>& shape, double phase) {
  std::int64_t n = 1;
  for (std::int64_t side : shape) n *= side;
  return (at::arange(n, at::kFloat) * 0.7 + phase).sin().view(shape).contiguous();
}

struct KerasWeights {
  at::Tensor kernel = keras_numbers({3, 3, 2, 3}, 0), bias = keras_numbers({3}, 1), gamma = keras_numbers({3}, 2),
             beta = keras_numbers({3}, 3), mean = keras_numbers({3}, 4), variance = keras_numbers({3}, 5).abs() + 0.1,
             one = keras_numbers({1, 1, 3, 3}, 6), dense = keras_numbers({3, 3}, 7), last = keras_numbers({3}, 8);
  std::string bytes() const {
    std::string all;
    for (const at::Tensor& t : {kernel, bias, gamma, beta, mean, variance, one, dense, last})
      all.append(static_cast<const char*>(t.data_ptr()), t.nbytes());
    return all;
  }
};

ModelCard keras_card() {
  ModelCard made;
  made.architecture = "small";
  made.preprocess_known = true;
  made.class_names = {"x", "y", "z"};
  made.source = "a test";
  made.licence = "none";
  return made;
}

std::string keras_refusal(const std::string& model, const std::string& weights) {
  try {
    keras_as_onnx(model, weights, "m", keras_card());
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_input);
    return e.what();
  }
  return "nothing was refused";
}

TEST(Keras, BecomesOnnxThatComputesTheSame) {
  KerasWeights w;
  auto network = Network::from_onnx(keras_as_onnx(kKerasModel, w.bytes(), "m", keras_card()), "m", {});
  at::Tensor images = at::arange(2 * 2 * 4 * 4, at::kLong).mul(37).remainder(256).to(at::kByte).view({2, 2, 4, 4});
  at::Tensor x = images.to(at::kFloat) / 255;
  x = at::conv2d(at::constant_pad_nd(x, {0, 1, 1, 0}), w.kernel.permute({3, 2, 0, 1}), w.bias, 2);
  auto column = [](const at::Tensor& t) { return t.view({1, 3, 1, 1}); };
  x = (x - column(w.mean)) / (column(w.variance) + 0.001).sqrt() * column(w.gamma) + column(w.beta);
  x = at::max_pool2d(at::constant_pad_nd(x.relu(), {1, 1, 1, 1}), 2, 2);
  x = at::conv2d(x, w.one.permute({3, 2, 0, 1})).relu() + x;
  at::Tensor expected = x.mean({2, 3}).matmul(w.dense) + w.last;
  EXPECT_TRUE(at::allclose(network->run(images).logits, expected, 1e-4, 1e-5));
  EXPECT_EQ(network->card().class_names, (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_EQ(network->card().source, "a test");
  EXPECT_EQ(network->card().licence, "none");
  EXPECT_EQ(network->info().input, (std::vector<std::int64_t>{2, 4, 4}));
}

TEST(Keras, SaysWhatItCannotRead) {
  std::string model = kKerasModel;
  std::string weights = KerasWeights().bytes();
  auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = model;
    changed.replace(changed.find(from), from.size(), to);
    return keras_refusal(changed, weights);
  };
  EXPECT_EQ(keras_refusal("{", weights), "m: is no JSON object");
  EXPECT_NE(keras_refusal("{}", weights).find("m: is not a Keras model as expected"), std::string::npos);
  EXPECT_NE(keras_refusal(model, weights.substr(0, 100)).find("its weights are cut short at"), std::string::npos);
  EXPECT_EQ(keras_refusal(model, weights + "more"), "m: has more weights than its list names");
  EXPECT_EQ(with("MaxPooling2D", "LSTM"), "m: layers of the kind 'LSTM' are not supported");
  EXPECT_NE(with("\"activation\": \"relu\"", "\"activation\": \"tanh\"").find("activation 'tanh'"), std::string::npos);
  EXPECT_NE(with("[3, 3, 2, 3]", "[3, 3, 3, 2]").find("weight 'conv/kernel' is not [3, 3, 2, 3]"), std::string::npos);
  EXPECT_NE(with("[3, 3, 2, 3]", "[-3, 3, 2, 3]").find("cut short at 'conv/kernel'"), std::string::npos);
  EXPECT_NE(with("[[\"pad\", 0, 0, {}]]", "[[\"gone\", 0, 0, {}]]").find("reads what does not exist"),
            std::string::npos);
  EXPECT_NE(with("\"strides\": [2, 2]", "\"strides\": [2]").find("a layer that is not understood: strides"),
            std::string::npos);
}

TEST(Classifier, PadsAsTensorFlowDoes) {
  // 224 in steps of 2 by a window of 3: one is missing, and it is added at the end.
  EXPECT_EQ(same_padding(224, 3, 2).before, 0);
  EXPECT_EQ(same_padding(224, 3, 2).after, 1);
  EXPECT_EQ(same_padding(112, 3, 1).before, 1);
  EXPECT_EQ(same_padding(7, 1, 1).after, 0);
  EXPECT_EQ(windowed_side(224, 3, 2, same_padding(224, 3, 2)), 112);
}

TEST(Classifier, TwinsGetNamesOfTheirOwn) {
  EXPECT_EQ(distinct_imagenet_names({"crane", "great_white_shark", "crane", "maillot", "maillot"}),
            (std::vector<std::string>{"crane bird", "great white shark", "crane", "maillot", "maillot tank suit"}));
  EXPECT_EQ(distinct_imagenet_names({"crane"}), std::vector<std::string>{"crane"});
}

}  // namespace
}  // namespace galvani
