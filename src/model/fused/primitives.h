// What all oneDNN layers share: descriptions of tensors, and primitives kept for the shapes they were made for.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "model/fused/layer.h"

namespace galvani::fused {

using dnnl::memory;

dnnl::engine& engine();

// [B, C, H, W] with channels last, [B, features], or [channels].
memory::desc describe(c10::IntArrayRef sizes);

// A primitive with what does not change from call to call. `weights` own the memory that `arguments` point to.
struct Prepared {
  dnnl::primitive primitive;
  std::vector<std::pair<int, memory>> arguments;
  std::vector<at::Tensor> weights;
  memory::desc scratch;
  std::vector<std::int64_t> output;  // the result's sizes

  // A constant operand in the layout that the primitive wants.
  void add(int argument, const at::Tensor& value, const memory::desc& given, const memory::desc& wanted);
};

struct Operand {
  int argument;
  memory::desc desc;
  const at::Tensor& tensor;
};
void execute(const Prepared& prepared, const std::vector<Operand>& operands);

// Finds what `make` made for a key, which is made once.
class Cache {
 public:
  using Key = std::vector<std::int64_t>;
  std::shared_ptr<const Prepared> get(const Key& key, const std::function<Prepared()>& make) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<Key, std::shared_ptr<const Prepared>> prepared_;
};

void append(dnnl::post_ops& operations, const FusedActivation& activation);
// The same by LibTorch, for what has another shape than the primitives are made for.
at::Tensor activate(const at::Tensor& x, const FusedActivation& activation);

// y = scale · x + shift, channel by channel.
struct Affine {
  at::Tensor scale, shift;  // double
};
Affine as_affine(const FusedNorm& norm);

}  // namespace galvani::fused
