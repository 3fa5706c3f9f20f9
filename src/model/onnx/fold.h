// Constants folded by running the very source an operator emits, so that folding and running cannot disagree.
#pragma once

#include <string>
#include <vector>

#include "model/onnx/emit.h"

namespace galvani::onnx {

// An upper bound, in bytes, of what a foldable node makes of constant inputs.
std::int64_t fold_bound(const std::vector<Value*>& inputs);

class FoldSink : public Sink {
 public:
  void line(const std::string& text) override { body_ += "    " + text + "\n"; }
  std::string fresh(const char* prefix) override { return fmt::format("{}{}", prefix, next_++); }
  std::string constant(Value& value) override { return constant(*value.known); }
  std::string constant(const at::Tensor& tensor) override;

  std::size_t size() const { return body_.size(); }
  // The node's outputs after its emit function wrote here, every one known.
  std::vector<Value> run(Node& node, const std::string& label);

 private:
  std::string body_;
  std::vector<at::Tensor> arguments_;
  int next_ = 0;
};

}  // namespace galvani::onnx
