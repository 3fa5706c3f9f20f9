// Spectra and windows.
#include <ATen/ATen.h>

#include "model/onnx/emit.h"
#include "model/onnx/tensors.h"

namespace galvani::onnx {

namespace {

at::ScalarType output_type(const Node& node) {
  int wanted = static_cast<int>(node.integer("output_datatype", ::onnx::TensorProto::FLOAT));
  auto type = scalar_type(wanted);
  if (!type) node.refuse("makes the element type {}, which is not supported", type_name(wanted));
  return *type;
}

// A sum of cosines with the given weights.
Emit window(double a0, double a1, double a2) {
  return [a0, a1, a2](Node& node) {
    at::ScalarType type = output_type(node);
    if (auto size = node.known_number(0)) check_size(node, {static_cast<std::int64_t>(*size)}, type);
    node.out(fmt::format("galvani_onnx.window({}, {}, {}, {}, {}, {})", node.integer(0),
                         bool_text(node.integer("periodic", 1) != 0), number_text(a0), number_text(a1), number_text(a2),
                         type_text(type)),
             type, 1);
  };
}

void emit_dft(Node& node) {
  std::string length = node.has(1) ? node.integer(1) : "None";
  std::string axis = node.opset() >= 20 ? (node.has(2) ? node.integer(2) : "-2") : int_text(node.integer("axis", 1));
  bool inverse = node.integer("inverse", 0) != 0;
  bool one_sided = node.integer("onesided", 0) != 0;
  if (inverse && one_sided) node.refuse("inverts a one-sided spectrum, which is not supported");
  node.out(fmt::format("galvani_onnx.dft({}, {}, {}, {}, {})", node.in(0), length, axis, bool_text(inverse),
                       bool_text(one_sided)),
           node.rank(0));
}

void emit_stft(Node& node) {
  if (!node.has(2) && !node.has(3)) node.refuse("has neither a window nor a frame length");
  std::string length = node.has(3) ? node.integer(3) : "None";
  node.out(fmt::format("galvani_onnx.stft({}, {}, {}, {}, {})", node.in(0), node.integer(1), node.in_or_none(2), length,
                       bool_text(node.integer("onesided", 1) != 0)),
           4);
}

void emit_mel(Node& node) {
  at::ScalarType type = output_type(node);
  auto edge = [&](int i) { return node.temporary(fmt::format("galvani_onnx.real({})", node.in(i, false))); };
  std::string low = edge(3);
  std::string high = edge(4);
  node.out(fmt::format("galvani_onnx.mel_weights({}, {}, {}, {}, {}, {})", node.integer(0), node.integer(1),
                       node.integer(2), low, high, type_text(type)),
           type, 2);
}

}  // namespace

std::vector<Operator> signal_operators() {
  return {
      {"HannWindow", 17, kNewestOpset, window(0.5, 0.5, 0)},
      {"HammingWindow", 17, kNewestOpset, window(25.0 / 46.0, 21.0 / 46.0, 0)},
      {"BlackmanWindow", 17, kNewestOpset, window(0.42, 0.5, 0.08)},
      {"DFT", 17, kNewestOpset, emit_dft},
      {"STFT", 17, kNewestOpset, emit_stft},
      {"MelWeightMatrix", 17, kNewestOpset, emit_mel},
  };
}

}  // namespace galvani::onnx
