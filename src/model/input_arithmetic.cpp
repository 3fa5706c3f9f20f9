#include "model/input_arithmetic.h"

#include <ATen/ATen.h>

#include <cmath>
#include <set>
#include <string>

#include "model/graph_tools.h"
#include "model/network_impl.h"

namespace galvani {
namespace {

using torch::jit::Node;
using torch::jit::Value;

constexpr double kLeastSpread = 0.5, kMostSpread = 20;  // of the values that a network is trained on
constexpr double kMeanOfBytes = 50;                     // what is subtracted of bytes, and of nothing else

// The mean of a number or tensor of the file.
std::optional<double> number_of(const Value* value, const torch::jit::Module& module) {
  std::string path = attribute_path(value);
  c10::IValue found;
  if (!path.empty()) {
    found = attribute_at(module, path);
  } else if (auto constant = torch::jit::toIValue(value)) {
    found = *constant;
  }
  if (found.isDouble() || found.isInt()) return found.toScalar().toDouble();
  if (!found.isTensor() || !found.toTensor().defined() || found.toTensor().numel() == 0) return std::nullopt;
  return found.toTensor().to(at::kDouble).mean().item<double>();
}

// The only node that computes with the value; null if several do. Questions about its shape do not count.
Node* only_reader(const Value* value) {
  static const std::set<std::string> kQuestions = {"size", "dim", "shape", "numel", "len", "device", "dtype"};
  Node* only = nullptr;
  for (const torch::jit::Use& use : value->uses()) {
    if (kQuestions.count(operator_name(use.user)) != 0) continue;
    if (only != nullptr && only != use.user) return nullptr;
    only = use.user;
  }
  return only;
}

std::optional<InputArithmetic> batch_norm(const Node* node, const torch::jit::Module& module) {
  auto weight = number_of(node->input(1), module).value_or(1), bias = number_of(node->input(2), module).value_or(0);
  auto mean = number_of(node->input(3), module), variance = number_of(node->input(4), module);
  if (!mean || !variance || *variance <= 0) return std::nullopt;
  double scale = weight / std::sqrt(*variance);
  return InputArithmetic{scale, bias - *mean * scale};
}

// What the node does to a value that is its first operand, or, of a sum or product, its second.
std::optional<InputArithmetic> step(const Node* node, const Value* value, const torch::jit::Module& module) {
  std::string op = operator_name(node);
  bool first = node->input(0) == value;
  if (op == "batch_norm") return batch_norm(node, module);
  bool turned = !first && (op == "add" || op == "mul");
  if ((!first && !turned) || node->inputs().size() < 2) return std::nullopt;
  std::optional<double> other = number_of(node->input(first ? 1 : 0), module);
  if (!other) return std::nullopt;
  if (op == "add") return InputArithmetic{1, *other};
  if (op == "sub") return InputArithmetic{1, -*other};
  if (op == "mul") return InputArithmetic{*other, 0};
  if (op == "div" && *other != 0) return InputArithmetic{1 / *other, 0};
  return std::nullopt;
}

}  // namespace

std::optional<InputArithmetic> input_arithmetic(Network& network) {
  static const std::set<std::string> kPassOn = {"to",       "permute", "transpose", "contiguous",     "clone",
                                                "view",     "reshape", "flatten",   "squeeze",        "unsqueeze",
                                                "detach",   "type_as", "expand",    "slice",          "flip",
                                                "identity", "alias",   "pad",       "constant_pad_nd"};
  FrozenModule frozen = network.impl().freeze();
  InputArithmetic all;
  bool any = false;
  const Value* value = frozen.graph->inputs().at(1);
  while (const Node* node = only_reader(value)) {
    if (node->outputs().size() != 1) break;
    if (std::optional<InputArithmetic> next = step(node, value, frozen.module)) {
      all = {all.scale * next->scale, all.shift * next->scale + next->shift};
      any = true;
    } else if (kPassOn.count(operator_name(node)) == 0 || node->input(0) != value) {
      break;
    }
    value = node->output();
  }
  return any ? std::optional<InputArithmetic>(all) : std::nullopt;
}

bool takes_bytes_as_they_are(const InputArithmetic& arithmetic) {
  double spread = 255 * std::abs(arithmetic.scale);
  bool small = spread >= kLeastSpread && spread <= kMostSpread;
  bool less_mean = std::abs(arithmetic.scale - 1) < 1e-6 && arithmetic.shift <= -kMeanOfBytes;
  return small || less_mean;
}

}  // namespace galvani
