// Recurrent layers.
#include <ATen/ATen.h>

#include "model/onnx/emit.h"

namespace galvani::onnx {

namespace {

// Numbers that runtime_recurrent.cpp reads back.
std::int64_t activation_code(const Node& node, const std::string& name) {
  const char* const names[] = {"Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign", "Softplus"};
  for (int i = 0; i < 6; ++i) {
    if (name == names[i]) return i;
  }
  node.refuse("has the activation '{}', which is not supported", printable(name));
}

Emit recurrent(const char* function, const std::vector<std::string>& defaults) {
  std::string name = function;
  return [name, defaults](Node& node) {
    std::string direction = node.text("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      node.refuse("has an unknown direction");
    std::size_t directions = direction == "bidirectional" ? 2 : 1;
    std::vector<std::string> activations = node.texts("activations");
    std::vector<std::int64_t> codes;
    if (activations.empty()) {
      for (std::size_t i = 0; i < directions; ++i)
        activations.insert(activations.end(), defaults.begin(), defaults.end());
    }
    if (activations.size() != directions * defaults.size()) node.refuse("has {} activations", activations.size());
    for (const std::string& activation : activations) codes.push_back(activation_code(node, activation));
    if (!node.reals("activation_alpha").empty() || !node.reals("activation_beta").empty())
      node.refuse("scales its activations, which is not supported");
    node.integer("hidden_size", 0);
    std::string clip = node.given("clip") ? number_text(node.real("clip", 0)) : "None";
    std::string common = fmt::format("{}, {}, {}, {}, {}, {}", node.in(0), node.in(1), node.in(2), node.in_or_none(3),
                                     node.in_or_none(4), node.in_or_none(5));
    std::string tail = fmt::format("{}, {}, {}, {}",
                                   direction == "forward"   ? 0
                                   : direction == "reverse" ? 1
                                                            : 2,
                                   ints_text(codes), clip, bool_text(node.integer("layout", 0) != 0));
    at::ScalarType type = node.type(0);
    if (name == "lstm") {
      node.outs(fmt::format("galvani_onnx.lstm({}, {}, {}, {}, {})", common, node.in_or_none(6), node.in_or_none(7),
                            tail, bool_text(node.integer("input_forget", 0) != 0)),
                {type, type, type}, {4, 3, 3});
    } else if (name == "gru") {
      node.outs(fmt::format("galvani_onnx.gru({}, {}, {})", common, tail,
                            bool_text(node.integer("linear_before_reset", 0) != 0)),
                {type, type}, {4, 3});
    } else {
      node.outs(fmt::format("galvani_onnx.rnn({}, {})", common, tail), {type, type}, {4, 3});
    }
  };
}

}  // namespace

std::vector<Operator> recurrent_operators() {
  return {
      {"LSTM", 7, kNewestOpset, recurrent("lstm", {"Sigmoid", "Tanh", "Tanh"})},
      {"GRU", 7, kNewestOpset, recurrent("gru", {"Sigmoid", "Tanh"})},
      {"RNN", 7, kNewestOpset, recurrent("rnn", {"Tanh"})},
  };
}

}  // namespace galvani::onnx
