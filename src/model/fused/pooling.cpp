#include "model/fused/primitives.h"

namespace galvani {
namespace {

class Pooling final : public FusedLayer {
 public:
  explicit Pooling(FusedPooling pooling) : pooling_(std::move(pooling)) {}

  at::Tensor run(const at::Tensor& input, const at::Tensor& sum) const override {
    TORCH_CHECK(!sum.defined(), "pooling adds nothing");
    bool usual = input.dim() == 4 && input.scalar_type() == at::kFloat;
    std::vector<std::int64_t> sizes = input.sizes().vec();
    for (std::size_t i = 0; i < 2 && usual; ++i) {
      std::int64_t room = sizes[i + 2] + 2 * pooling_.padding[i] - pooling_.kernel[i];
      usual = room >= 0;
      sizes[i + 2] = room / pooling_.stride[i] + 1;
    }
    // Anything else is LibTorch's business, or its error.
    if (!usual) return by_libtorch(input);
    at::Tensor x = input.contiguous(at::MemoryFormat::ChannelsLast);
    std::shared_ptr<const fused::Prepared> prepared =
        cache_.get(x.sizes().vec(), [&] { return prepare(x.sizes(), sizes); });
    at::Tensor result = at::empty(sizes, x.options(), at::MemoryFormat::ChannelsLast);
    fused::execute(*prepared,
                   {{DNNL_ARG_SRC, fused::describe(x.sizes()), x}, {DNNL_ARG_DST, fused::describe(sizes), result}});
    return result;
  }

 private:
  at::Tensor by_libtorch(const at::Tensor& x) const {
    if (pooling_.kind == FusedPooling::Kind::maximum)
      return at::max_pool2d(x, pooling_.kernel, pooling_.stride, pooling_.padding);
    return at::avg_pool2d(x, pooling_.kernel, pooling_.stride, pooling_.padding, false,
                          pooling_.kind == FusedPooling::Kind::average);
  }

  fused::Prepared prepare(c10::IntArrayRef from, c10::IntArrayRef to) const {
    auto algorithm = pooling_.kind == FusedPooling::Kind::maximum   ? dnnl::algorithm::pooling_max
                     : pooling_.kind == FusedPooling::Kind::average ? dnnl::algorithm::pooling_avg_include_padding
                                                                    : dnnl::algorithm::pooling_avg_exclude_padding;
    dnnl::pooling_forward::desc description(dnnl::prop_kind::forward_inference, algorithm, fused::describe(from),
                                            fused::describe(to), pooling_.stride, pooling_.kernel, pooling_.padding,
                                            pooling_.padding);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::pooling_forward::primitive_desc chosen(description, attributes, fused::engine());
    fused::Prepared prepared;
    prepared.primitive = dnnl::pooling_forward(chosen);
    prepared.scratch = chosen.scratchpad_desc();
    return prepared;
  }

  FusedPooling pooling_;
  fused::Cache cache_;
};

}  // namespace

FusedLayerPtr fused_pooling(FusedPooling pooling) {
  return c10::make_intrusive<Pooling>(std::move(pooling));
}

}  // namespace galvani
