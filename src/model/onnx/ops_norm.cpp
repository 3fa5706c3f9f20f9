// Normalisation, dropout and softmax.
#include <ATen/ATen.h>

#include "model/onnx/emit.h"

namespace galvani::onnx {

namespace {

void emit_batch_norm(Node& node) {
  std::string epsilon = number_text(node.real("epsilon", 1e-5));
  // ONNX weighs the old statistics, torch the new ones.
  double kept = node.real("momentum", 0.9);
  std::string momentum = float_text(static_cast<float>(1 - kept));
  if (node.opset() < 9 && node.integer("spatial", 1) == 0)
    node.refuse("is not per channel (spatial=0), which is not supported");
  node.integer("is_test", 1);
  bool training = node.integer("training_mode", 0) != 0;
  if (node.rank(0) == 1) node.refuse("normalises a tensor without channels");
  std::string arguments =
      fmt::format("{}, {}, {}, {}, {}", node.in(0), node.in(1), node.in(2), node.in(3, false), node.in(4, false));
  if (node.wants(1) || node.wants(2)) {
    // Someone reads the new statistics: training as ONNX defines it. Exports in training mode leave them unread.
    if (!training) node.refuse("gives statistics without being in training mode, which is not supported");
    return node.outs(fmt::format("galvani_onnx.batch_norm_training({}, {}, {})", arguments, epsilon, number_text(kept)),
                     {node.type(0), node.type(3), node.type(4)}, {node.rank(0), 1, 1});
  }
  node.out(fmt::format("torch.batch_norm({}, self.training, {}, {}, False)", arguments, momentum, epsilon),
           node.rank(0));
}

void emit_dropout(Node& node) {
  std::string ratio;
  if (node.opset() < 12) {
    ratio = number_text(node.real("ratio", 0.5));
    node.integer("is_test", 0);
  } else {
    ratio = node.has(1) ? node.real(1) : "0.5";
    if (node.has(2) && !node.value(2).known)
      node.refuse("decides at run time whether it trains, which is not supported");
    node.integer("seed", 0);
  }
  bool mask_wanted = node.wants(1);
  node.out(fmt::format("torch.dropout({}, {}, self.training)", node.in(0), ratio), node.rank(0));
  if (!mask_wanted) return;
  Value& mask = node.results().at(1);
  // Of a mask only the one of evaluation can be given: everything is kept.
  mask.variable =
      node.temporary(fmt::format("torch.to(torch.ones_like({}), {})", node.in(0), type_text(at::kBool)), "o");
  mask.type = at::kBool;
  mask.rank = node.rank(0);
}

void emit_instance_norm(Node& node) {
  node.out(fmt::format("torch.instance_norm({}, {}, {}, None, None, True, 0.0, {}, False)", node.in(0), node.in(1),
                       node.in(2), number_text(node.real("epsilon", 1e-5))),
           node.rank(0));
}

void require_float_statistics(const Node& node) {
  if (node.integer("stash_type", 1) != 1)
    node.refuse("keeps its statistics in another type than float, which is not supported");
}

void emit_layer_norm(Node& node) {
  std::int64_t axis = node.integer("axis", -1);
  std::string epsilon = number_text(node.real("epsilon", 1e-5));
  require_float_statistics(node);
  const Value& scale = node.value(1);
  bool trailing = scale.known && (axis == -scale.known->dim() ||
                                  (node.rank(0) >= 0 && axis >= 0 && node.rank(0) - axis == scale.known->dim()));
  if (!node.wants(1) && !node.wants(2) && trailing) {
    return node.out(fmt::format("torch.layer_norm({}, {}, {}, {}, {}, False)", node.in(0),
                                ints_text(scale.known->sizes().vec()), node.in(1), node.in_or_none(2), epsilon),
                    node.rank(0));
  }
  node.outs(fmt::format("galvani_onnx.layer_norm({}, {}, {}, {}, {})", node.in(0), node.in(1), node.in_or_none(2),
                        int_text(axis), epsilon),
            {node.type(0), at::kFloat, at::kFloat}, {node.rank(0), node.rank(0), node.rank(0)});
}

void emit_rms_norm(Node& node) {
  require_float_statistics(node);
  node.out(fmt::format("galvani_onnx.rms_norm({}, {}, {}, {})", node.in(0), node.in(1),
                       int_text(node.integer("axis", -1)), number_text(node.real("epsilon", 1e-5))),
           node.type(1), node.rank(0));
}

void emit_group_norm(Node& node) {
  std::int64_t groups = node.integer("num_groups", 0);
  if (groups < 1) node.refuse("has {} groups", groups);
  require_float_statistics(node);
  // Opset 18 scales per group; torch, and opset 21, per channel.
  node.out(fmt::format("galvani_onnx.group_norm({}, {}, {}, {}, {})", node.in(0), node.in(1), node.in(2),
                       int_text(groups), number_text(node.real("epsilon", 1e-5))),
           node.rank(0));
}

void emit_lrn(Node& node) {
  std::int64_t size = node.integer("size", 0);
  if (size < 1 || size > 65536) node.refuse("has a size of {}", size);
  node.out(fmt::format("galvani_onnx.local_response_norm({}, {}, {}, {}, {})", node.in(0), int_text(size),
                       number_text(node.real("alpha", 1e-4)), number_text(node.real("beta", 0.75)),
                       number_text(node.real("bias", 1))),
           node.rank(0));
}

void emit_mean_variance_norm(Node& node) {
  node.out(
      fmt::format("galvani_onnx.mean_variance_norm({}, {})", node.in(0), ints_text(node.integers("axes", {0, 2, 3}))),
      node.rank(0));
}

void emit_lp_norm(Node& node) {
  std::int64_t p = node.integer("p", 2);
  if (p != 1 && p != 2) node.refuse("has a norm of order {}", p);
  std::string axis = int_text(node.integer("axis", -1));
  std::string x = node.in(0);
  std::string norm = node.temporary(fmt::format("torch.norm({}, {}, [{}], True)", x, p, axis));
  // What is zero throughout stays so.
  std::string divisor = node.temporary(fmt::format("torch.add({}, torch.eq({}, 0))", norm, norm));
  node.out(fmt::format("torch.div({}, {})", x, divisor), node.rank(0));
}

// softmax, log_softmax and hardmax of one axis since opset 13; of everything from the axis on, flattened, before.
Emit softmax(const char* plain, const char* flattened) {
  std::string function = plain;
  std::string flat = flattened;
  return [function, flat](Node& node) {
    std::int64_t axis = node.integer("axis", node.opset() >= 13 ? -1 : 1);
    bool last = axis == -1 || (node.rank(0) > 0 && axis == node.rank(0) - 1);
    std::string arguments = fmt::format("{}, {}", node.in(0), int_text(axis));
    node.out(node.opset() >= 13 || last ? fmt::format("{}({})", function, arguments)
                                        : fmt::format("galvani_onnx.{}({})", flat, arguments),
             node.rank(0));
  };
}

}  // namespace

std::vector<Operator> norm_operators() {
  return {
      {"BatchNormalization", 6, kNewestOpset, emit_batch_norm},
      {"Dropout", 6, kNewestOpset, emit_dropout},
      {"InstanceNormalization", 6, kNewestOpset, emit_instance_norm},
      {"LayerNormalization", 17, kNewestOpset, emit_layer_norm},
      {"RMSNormalization", 23, kNewestOpset, emit_rms_norm},
      // ONNX Runtime's older name of it, which its tools write into the default domain.
      {"SimplifiedLayerNormalization", 1, kNewestOpset, emit_rms_norm},
      {"GroupNormalization", 18, kNewestOpset, emit_group_norm},
      {"LRN", 1, kNewestOpset, emit_lrn},
      {"MeanVarianceNormalization", 9, kNewestOpset, emit_mean_variance_norm},
      {"LpNormalization", 1, kNewestOpset, emit_lp_norm},
      {"Softmax", 1, kNewestOpset, softmax("torch.softmax", "softmax_flattened")},
      {"LogSoftmax", 1, kNewestOpset, softmax("torch.log_softmax", "log_softmax_flattened")},
      {"Hardmax", 1, kNewestOpset, softmax("galvani_onnx.hardmax", "hardmax_flattened")},
  };
}

}  // namespace galvani::onnx
