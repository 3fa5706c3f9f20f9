// Attention, and what goes with it in transformers.
#include <ATen/ATen.h>

#include "model/onnx/emit.h"
#include "model/onnx/tensors.h"

namespace galvani::onnx {

namespace {

void emit_attention(Node& node) {
  std::int64_t precision = -1;
  if (node.given("softmax_precision")) {
    auto wanted = static_cast<int>(node.integer("softmax_precision", 1));
    std::optional<at::ScalarType> type = scalar_type(wanted);
    if (!type || !at::isFloatingType(*type))
      node.refuse("has the element type {} for its softmax, which is not supported", type_name(wanted));
    // float16 itself has no kernel.
    precision = static_cast<std::int64_t>(*type == at::kDouble ? at::kDouble : at::kFloat);
  }
  std::string scale = node.given("scale") ? number_text(node.real("scale", 1)) : "None";
  node.outs(fmt::format("galvani_onnx.attention({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})",
                        node.in(0), node.in(1), node.in(2), node.in_or_none(3), node.in_or_none(4), node.in_or_none(5),
                        node.in_or_none(6), int_text(node.integer("q_num_heads", 0)),
                        int_text(node.integer("kv_num_heads", 0)), scale, bool_text(node.integer("is_causal", 0) != 0),
                        number_text(node.real("softcap", 0)), int_text(node.integer("qk_matmul_output_mode", 0)),
                        int_text(node.integer("left_window_size", -1)), int_text(node.integer("right_window_size", -1)),
                        precision),
            {node.type(0), node.type(1), node.type(2), node.type(0)}, {node.rank(0), 4, 4, 4});
}

void emit_rotary_embedding(Node& node) {
  node.out(
      fmt::format("galvani_onnx.rotary_embedding({}, {}, {}, {}, {}, {}, {})", node.in(0), node.in(1), node.in(2),
                  node.in_or_none(3), int_text(node.integer("num_heads", 0)),
                  int_text(node.integer("rotary_embedding_dim", 0)), bool_text(node.integer("interleaved", 0) != 0)),
      node.rank(0));
}

void emit_tensor_scatter(Node& node) {
  std::string mode = node.text("mode", "linear");
  if (mode != "linear" && mode != "circular") node.refuse("has an unknown mode");
  node.out(fmt::format("galvani_onnx.tensor_scatter({}, {}, {}, {}, {})", node.in(0), node.in(1), node.in_or_none(2),
                       int_text(node.integer("axis", -2)), bool_text(mode == "circular")),
           node.rank(0));
}

std::string swish(Node& node) {
  std::string x = node.in(0);
  double alpha = node.real("alpha", 1);
  if (alpha == 1) return fmt::format("torch.silu({})", x);
  std::string gate = node.temporary(fmt::format("torch.sigmoid(torch.mul({}, {}))", x, number_text(alpha)));
  return fmt::format("torch.mul({}, {})", x, gate);
}

void emit_swish(Node& node) {
  std::string y = swish(node);
  node.out(y, node.rank(0));
}

void emit_swiglu(Node& node) {
  std::string gate = node.temporary(swish(node));
  node.out(fmt::format("torch.mul({}, {})", gate, node.in(1)), node.rank(0));
}

}  // namespace

std::vector<Operator> attention_operators() {
  return {
      {"Attention", 23, kNewestOpset, emit_attention},
      {"RotaryEmbedding", 23, kNewestOpset, emit_rotary_embedding},
      {"TensorScatter", 24, kNewestOpset, emit_tensor_scatter, false, true},
      {"Swish", 24, kNewestOpset, emit_swish},
      {"SwiGLU", 28, kNewestOpset, emit_swiglu},
  };
}

}  // namespace galvani::onnx
