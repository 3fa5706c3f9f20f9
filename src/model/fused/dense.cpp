#include "model/fused/primitives.h"

namespace galvani {
namespace {

using fused::memory;

class Dense final : public FusedLayer {
 public:
  Dense(LinearLayer layer, at::Tensor bias, FusedActivation activation, bool flattens)
      : layer_(std::move(layer)), bias_(std::move(bias)), activation_(activation), flattens_(flattens) {}

  at::Tensor run(const at::Tensor& input, const at::Tensor& sum) const override {
    TORCH_CHECK(!sum.defined(), "a dense layer adds nothing");
    TORCH_CHECK(input.scalar_type() == at::kFloat, "a dense layer of floats cannot be applied to ",
                input.scalar_type());
    std::int64_t features = layer_.weight.size(1);
    at::Tensor x = input;
    // An image whose channels lie last is taken as it is; its weights are packed in that order.
    bool image = flattens_ && x.dim() == 4 && !x.is_contiguous() && x.is_contiguous(at::MemoryFormat::ChannelsLast);
    if (flattens_ && !image) x = x.flatten(1);
    std::vector<std::int64_t> sizes = image ? std::vector<std::int64_t>{x.size(0), 0} : x.sizes().vec();
    bool fits = image ? x.size(1) * x.size(2) * x.size(3) == features : x.dim() > 0 && x.size(-1) == features;
    TORCH_CHECK(fits, "a dense layer of ", features, " features cannot be applied to an input of shape ", x.sizes());
    sizes.back() = layer_.weight.size(0);
    if (!image) x = x.contiguous().view({-1, features});
    std::shared_ptr<const fused::Prepared> prepared = cache_.get(x.sizes().vec(), [&] { return prepare(x.sizes()); });
    at::Tensor result = at::empty(sizes, x.options());
    fused::execute(*prepared, {{DNNL_ARG_SRC, fused::describe(x.sizes()), x},
                               {DNNL_ARG_DST, fused::describe(prepared->output), result}});
    return result;
  }

 private:
  fused::Prepared prepare(c10::IntArrayRef input) const {
    at::NoGradGuard no_grad;
    using Tag = memory::format_tag;
    constexpr auto kFloat = memory::data_type::f32;
    std::int64_t neurons = layer_.weight.size(0);
    memory::dims of_weight(input.begin(), input.end());
    of_weight[0] = neurons;
    fused::Prepared prepared;
    prepared.output = {input[0], neurons};
    dnnl::post_ops operations;
    fused::append(operations, activation_);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(operations);
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    at::Tensor bias = bias_.defined() ? bias_.contiguous() : at::zeros({neurons});
    dnnl::inner_product_forward::desc description(dnnl::prop_kind::forward_inference, fused::describe(input),
                                                  memory::desc(of_weight, kFloat, Tag::any),
                                                  fused::describe(bias.sizes()), fused::describe(prepared.output));
    dnnl::inner_product_forward::primitive_desc chosen(description, attributes, fused::engine());
    prepared.primitive = dnnl::inner_product_forward(chosen);
    prepared.scratch = chosen.scratchpad_desc();
    memory::desc plain(of_weight, kFloat, of_weight.size() == 4 ? Tag::oihw : Tag::oi);
    prepared.add(DNNL_ARG_WEIGHTS, layer_.weight, plain, chosen.weights_desc());
    prepared.add(DNNL_ARG_BIAS, bias, chosen.bias_desc(), chosen.bias_desc());
    return prepared;
  }

  LinearLayer layer_;
  at::Tensor bias_;
  FusedActivation activation_;
  bool flattens_;
  fused::Cache cache_;
};

}  // namespace

FusedLayerPtr fused_dense(LinearLayer layer, at::Tensor bias, FusedActivation activation, bool flattens) {
  return c10::make_intrusive<Dense>(std::move(layer), std::move(bias), activation, flattens);
}

}  // namespace galvani
