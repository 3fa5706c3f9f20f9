// Losses.
#include <ATen/ATen.h>

#include "model/onnx/emit.h"

namespace galvani::onnx {

namespace {

std::string loss_arguments(Node& node) {
  std::string kind = node.text("reduction", "mean");
  if (kind != "none" && kind != "mean" && kind != "sum") node.refuse("has an unknown reduction");
  std::string ignored = node.given("ignore_index") ? int_text(node.integer("ignore_index", 0)) : "None";
  return fmt::format("{}, {}, {}, {}", node.in(1), node.in_or_none(2), ignored,
                     kind == "none"   ? 0
                     : kind == "mean" ? 1
                                      : 2);
}

void emit_nll(Node& node) {
  std::string arguments = loss_arguments(node);
  node.out(fmt::format("galvani_onnx.nll_loss({}, {})", node.in(0), arguments));
}

void emit_cross_entropy(Node& node) {
  std::string arguments = loss_arguments(node);
  std::string logs = node.temporary(fmt::format("torch.log_softmax({}, 1)", node.in(0)));
  if (!node.wants(1)) return node.out(fmt::format("galvani_onnx.nll_loss({}, {})", logs, arguments));
  std::string loss = node.temporary(fmt::format("galvani_onnx.nll_loss({}, {})", logs, arguments));
  node.outs(fmt::format("({}, {})", loss, logs), {node.type(0), node.type(0)});
}

}  // namespace

std::vector<Operator> loss_operators() {
  return {
      {"NegativeLogLikelihoodLoss", 12, kNewestOpset, emit_nll},
      {"SoftmaxCrossEntropyLoss", 12, kNewestOpset, emit_cross_entropy},
  };
}

}  // namespace galvani::onnx
