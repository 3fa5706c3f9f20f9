#include "model/onnx/fold.h"

#include <torch/script.h>

#include "galvani/base/runtime.h"
#include "model/graph_tools.h"
#include "model/onnx/compile.h"

namespace galvani::onnx {

std::int64_t fold_bound(const std::vector<Value*>& inputs) {
  std::int64_t product = 8;
  std::int64_t sum = 0;
  for (const Value* value : inputs) {
    if (!value) continue;
    std::int64_t count = std::max<std::int64_t>(value->known->numel(), 1);
    if (__builtin_mul_overflow(product, count, &product)) return std::numeric_limits<std::int64_t>::max();
    sum += 8 * count;
  }
  return std::max(product, sum);
}

std::string FoldSink::constant(const at::Tensor& tensor) {
  arguments_.push_back(tensor);
  return fmt::format("c{}", arguments_.size() - 1);
}

std::vector<Value> FoldSink::run(Node& node, const std::string& label) {
  std::vector<Value> results = node.results();
  std::string all;
  for (Value& result : results) {
    if (result.variable.empty()) node.refuse("has an output that is not supported");
    all += result.variable + ", ";
  }
  std::string header;
  for (std::size_t i = 0; i < arguments_.size(); ++i) header += fmt::format("{}c{}", i ? ", " : "", i);
  try {
    torch::NoGradGuard no_grad;
    TensorLimit limit(kMaxFoldedBytes);
    auto unit = compile_function(fmt::format("def fold({}):\n{}    return [{}]\n", header, body_, all));
    std::vector<c10::IValue> stack(arguments_.begin(), arguments_.end());
    auto values = unit->get_function("fold")(stack).toTensorVector();
    for (std::size_t i = 0; i < results.size(); ++i) {
      results[i].variable.clear();
      results[i].known = values.at(i).clone();
      results[i].type = values[i].scalar_type();
      results[i].rank = static_cast<int>(values[i].dim());
      results[i].origin = Value::Origin::constant;
      results[i].named = false;
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    node.refuse("fails on its constant inputs: {}", printable(first_line(error.what()), 300));
  }
  return results;
}

}  // namespace galvani::onnx
