#include <algorithm>

#include "model/fused/primitives.h"
#include "model/loops.h"

namespace galvani {
namespace {

// By a loop of ours, since oneDNN's way of doing this takes ten times as long.
class Norm final : public FusedLayer {
 public:
  Norm(FusedNorm norm, FusedActivation activation, bool in_place)
      : norm_(std::move(norm)), activation_(activation), in_place_(in_place) {
    fused::Affine map = fused::as_affine(norm_);
    scale_ = map.scale.to(at::kFloat).contiguous();
    shift_ = map.shift.to(at::kFloat).contiguous();
  }

  at::Tensor run(const at::Tensor& x, const at::Tensor& sum) const override {
    bool usual = x.dim() == 4 && x.scalar_type() == at::kFloat && x.size(1) == scale_.size(0) &&
                 x.is_contiguous(at::MemoryFormat::ChannelsLast) &&
                 (!sum.defined() || (sum.sizes() == x.sizes() && sum.scalar_type() == at::kFloat));
    if (!usual) {
      at::Tensor y =
          at::batch_norm(x, norm_.weight, norm_.bias, norm_.mean, norm_.variance, false, 0, norm_.epsilon, false);
      return fused::activate(sum.defined() ? at::add(y, sum) : y, activation_);
    }
    at::Tensor result = in_place_ ? x : at::empty_like(x);
    at::Tensor addend = sum.defined() ? sum.contiguous(at::MemoryFormat::ChannelsLast) : at::Tensor();
    loops::Rows rows{x.data_ptr<float>(),
                     addend.defined() ? addend.data_ptr<float>() : nullptr,
                     result.data_ptr<float>(),
                     x.numel() / std::max<std::int64_t>(1, x.size(1)),
                     x.size(1),
                     scale_.data_ptr<float>(),
                     shift_.data_ptr<float>()};
    auto a = static_cast<float>(activation_.a);
    switch (activation_.kind) {
      case FusedActivation::Kind::none:
        loops::normalize(rows);
        break;
      case FusedActivation::Kind::relu:
      case FusedActivation::Kind::leaky_relu:
        loops::normalize_relu(rows, a);
        break;
      case FusedActivation::Kind::clip:
        loops::normalize_clip(rows, a, static_cast<float>(activation_.b));
        break;
    }
    return result;
  }

 private:
  FusedNorm norm_;
  FusedActivation activation_;
  bool in_place_;
  at::Tensor scale_, shift_;  // float
};

}  // namespace

FusedLayerPtr fused_norm(FusedNorm norm, FusedActivation activation, bool in_place) {
  return c10::make_intrusive<Norm>(std::move(norm), activation, in_place);
}

}  // namespace galvani
