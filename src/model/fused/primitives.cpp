#include "model/fused/primitives.h"

#include <ATen/Parallel.h>

namespace galvani::fused {

dnnl::engine& engine() {
  static dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

namespace {

dnnl::stream& stream() {
  alignas(16) thread_local dnnl::stream instance(engine());
  return instance;
}

}  // namespace

memory::desc describe(c10::IntArrayRef sizes) {
  using Tag = memory::format_tag;
  return {memory::dims(sizes.begin(), sizes.end()), memory::data_type::f32,
          sizes.size() == 4   ? Tag::nhwc
          : sizes.size() == 2 ? Tag::nc
                              : Tag::x};
}

void Prepared::add(int argument, const at::Tensor& value, const memory::desc& given, const memory::desc& wanted) {
  at::Tensor source = value.contiguous();
  if (given == wanted) {
    weights.push_back(source);
  } else {
    at::Tensor packed = at::empty({static_cast<std::int64_t>(wanted.get_size())}, at::kByte);
    memory from(given, engine(), source.data_ptr());
    memory to(wanted, engine(), packed.data_ptr());
    dnnl::reorder(from, to).execute(stream(), from, to);
    stream().wait();
    weights.push_back(packed);
  }
  arguments.emplace_back(argument, memory(wanted, engine(), weights.back().data_ptr()));
}

void execute(const Prepared& prepared, const std::vector<Operand>& operands) {
  std::unordered_map<int, memory> arguments(prepared.arguments.begin(), prepared.arguments.end());
  for (const Operand& operand : operands)
    arguments.emplace(operand.argument, memory(operand.desc, engine(), operand.tensor.data_ptr()));
  at::Tensor scratch;
  if (auto bytes = static_cast<std::int64_t>(prepared.scratch.get_size()); bytes > 0) {
    scratch = at::empty({bytes}, at::kByte);
    arguments.emplace(DNNL_ARG_SCRATCHPAD, memory(prepared.scratch, engine(), scratch.data_ptr()));
  }
  prepared.primitive.execute(stream(), arguments);
  stream().wait();
}

std::shared_ptr<const Prepared> Cache::get(const Key& key, const std::function<Prepared()>& make) const {
  Key full = key;
  // A primitive is made for a number of kernel threads.
  full.push_back(at::get_num_threads());
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<const Prepared>& found = prepared_[full];
  if (!found) found = std::make_shared<const Prepared>(make());
  return found;
}

void append(dnnl::post_ops& operations, const FusedActivation& activation) {
  auto a = static_cast<float>(activation.a);
  auto b = static_cast<float>(activation.b);
  switch (activation.kind) {
    case FusedActivation::Kind::none:
      break;
    case FusedActivation::Kind::relu:
      operations.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
      break;
    case FusedActivation::Kind::leaky_relu:
      operations.append_eltwise(1, dnnl::algorithm::eltwise_relu, a, 0);
      break;
    case FusedActivation::Kind::clip:
      operations.append_eltwise(1, dnnl::algorithm::eltwise_clip, a, b);
      break;
  }
}

at::Tensor activate(const at::Tensor& x, const FusedActivation& activation) {
  switch (activation.kind) {
    case FusedActivation::Kind::none:
      return x;
    case FusedActivation::Kind::relu:
      return at::relu(x);
    case FusedActivation::Kind::leaky_relu:
      return at::leaky_relu(x, activation.a);
    case FusedActivation::Kind::clip:
      return at::clamp(x, activation.a, activation.b);
  }
  return x;
}

Affine as_affine(const FusedNorm& norm) {
  at::Tensor scale = (norm.variance.to(at::kDouble) + norm.epsilon).rsqrt();
  if (norm.weight.defined()) scale = scale * norm.weight.to(at::kDouble);
  at::Tensor shift = -norm.mean.to(at::kDouble) * scale;
  if (norm.bias.defined()) shift = shift + norm.bias.to(at::kDouble);
  return {scale, shift};
}

}  // namespace galvani::fused
