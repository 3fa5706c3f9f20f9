#include <cstring>

#include "model/fused/primitives.h"

namespace galvani {
namespace {

using fused::memory;

constexpr std::int64_t kLanes = 16;  // floats in a vector register of AVX-512

bool has_wide_registers() {
  static const bool wide =
      (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & static_cast<unsigned>(dnnl::cpu_isa::avx512_core)) ==
      static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return wide;
}

struct Window {
  std::vector<std::int64_t> kernel, stride, padding, dilation, out;
};

// How many neighbouring columns of the result become channels of one column. Channels fill the lanes of a register, so
// a layer with few of them leaves most idle; with channels last, n columns of c channels are one column of n · c in the
// same memory. The kernel gets wider by n - 1 steps, so that much of the gain is lost.
std::int64_t columns_together(std::int64_t channels, const Window& window) {
  if (!has_wide_registers() || window.dilation[1] != 1) return 1;
  std::int64_t best = 1;
  auto gain = [&](std::int64_t n) {
    auto width = static_cast<double>(window.kernel[1]);
    return static_cast<double>(n) * width / (width + static_cast<double>((n - 1) * window.stride[1]));
  };
  for (std::int64_t n = 2; n * channels <= kLanes; ++n) {
    if (window.out[1] % n == 0 && gain(n) > gain(best) * 1.1) best = n;
  }
  return best;
}

// [O, I, H, W] → [n · O, I, H, W + (n - 1) · step]: the kernel once for each of n columns, shifted.
at::Tensor widen(const at::Tensor& weight, std::int64_t n, std::int64_t step) {
  at::Tensor wide =
      at::zeros({n * weight.size(0), weight.size(1), weight.size(2), weight.size(3) + (n - 1) * step}, at::kDouble);
  for (std::int64_t i = 0; i < n; ++i)
    wide.narrow(0, i * weight.size(0), weight.size(0)).narrow(3, i * step, weight.size(3)).copy_(weight);
  return wide;
}

// oneDNN offers its kernels in an order that does not fit small networks. Measured with AVX-512: the batch-reduce ones
// come first but win only where one register of results takes long sums; the direct ones are up to 40% faster
// elsewhere.
bool wants_direct(std::int64_t in, std::int64_t out, const Window& window) {
  bool single = window.kernel[0] == 1 && window.kernel[1] == 1;
  return !single && (in < 8 || out > kLanes);
}

class Convolution final : public FusedLayer {
 public:
  Convolution(LinearLayer layer, at::Tensor bias, std::optional<FusedNorm> norm, FusedActivation activation,
              bool takes_sum)
      : layer_(std::move(layer)),
        bias_(std::move(bias)),
        norm_(std::move(norm)),
        activation_(activation),
        takes_sum_(takes_sum) {}

  at::Tensor run(const at::Tensor& input, const at::Tensor& sum) const override {
    TORCH_CHECK(input.dim() == 4 && input.size(1) == layer_.features(), "a convolution of ", layer_.features(),
                " channels cannot be applied to an input of shape ", input.sizes());
    TORCH_CHECK(input.scalar_type() == at::kFloat, "a convolution of floats cannot be applied to ",
                input.scalar_type());
    at::Tensor x = input.contiguous(at::MemoryFormat::ChannelsLast);
    Window window = window_for(x);
    std::vector<std::int64_t> sizes = {x.size(0), layer_.weight.size(0), window.out[0], window.out[1]};
    // Something that has to be spread out is added by LibTorch.
    bool alike = sum.defined() && sum.sizes() == c10::IntArrayRef(sizes) && sum.scalar_type() == at::kFloat;
    bool later = sum.defined() && !alike;
    bool onto = alike && takes_sum_ && sum.is_contiguous(at::MemoryFormat::ChannelsLast);
    Sum way = !sum.defined() ? Sum::none : later ? Sum::later : onto ? Sum::onto : Sum::beside;
    std::shared_ptr<const fused::Prepared> prepared =
        cache_.get({x.size(0), x.size(2), x.size(3), static_cast<std::int64_t>(way)},
                   [&] { return prepare(x.sizes(), window, way); });
    at::Tensor result = onto ? sum : at::empty(sizes, x.options(), at::MemoryFormat::ChannelsLast);
    at::Tensor addend = alike ? sum.contiguous(at::MemoryFormat::ChannelsLast) : at::Tensor();
    memory::desc shape = fused::describe(prepared->output);
    std::vector<fused::Operand> operands = {{DNNL_ARG_SRC, fused::describe(x.sizes()), x},
                                            {DNNL_ARG_DST, shape, result}};
    if (way == Sum::beside) operands.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, shape, addend});
    fused::execute(*prepared, operands);
    return later ? fused::activate(at::add(result, sum), activation_) : result;
  }

 private:
  enum class Sum {
    none,
    later,   // has another shape
    beside,  // read from memory of its own
    onto,    // lies where the result will
  };

  Window window_for(const at::Tensor& x) const {
    Window window{layer_.weight.sizes().slice(2).vec(), layer_.stride, layer_.padding, layer_.dilation, {}};
    for (std::size_t i = 0; i < 2; ++i) {
      std::int64_t reach = window.dilation[i] * (window.kernel[i] - 1) + 1;
      std::int64_t room = x.size(static_cast<std::int64_t>(i) + 2) + 2 * window.padding[i] - reach;
      TORCH_CHECK(room >= 0 && window.stride[i] > 0, "a kernel of ", layer_.weight.sizes(),
                  " cannot be larger than its padded input of ", x.sizes());
      window.out.push_back(room / window.stride[i] + 1);
    }
    return window;
  }

  // Weight and bias with batch norm folded in, in double.
  std::pair<at::Tensor, at::Tensor> folded() const {
    at::Tensor weight = layer_.weight.to(at::kDouble);
    at::Tensor bias = bias_.defined() ? bias_.to(at::kDouble) : at::zeros({weight.size(0)}, at::kDouble);
    if (!norm_) return {weight, bias};
    fused::Affine map = fused::as_affine(*norm_);
    return {weight * map.scale.view({-1, 1, 1, 1}), bias * map.scale + map.shift};
  }

  fused::Prepared prepare(c10::IntArrayRef input, Window window, Sum sum) const {
    at::NoGradGuard no_grad;
    auto [weight, bias] = folded();
    std::int64_t groups = layer_.groups;
    if (std::int64_t n = groups == 1 ? columns_together(weight.size(0), window) : 1; n > 1) {
      weight = widen(weight, n, window.stride[1]);
      bias = bias.repeat({n});
      window.kernel[1] = weight.size(3);
      window.stride[1] *= n;
      window.out[1] /= n;
    }
    weight = weight.to(at::kFloat).contiguous();
    bias = bias.to(at::kFloat).contiguous();

    using Tag = memory::format_tag;
    memory::dims of_weight = weight.sizes().vec();
    if (groups > 1) {
      of_weight[0] /= groups;
      of_weight.insert(of_weight.begin(), groups);
    }
    constexpr auto kFloat = memory::data_type::f32;
    memory::desc any_weight(of_weight, kFloat, Tag::any);
    memory::desc plain_weight(of_weight, kFloat, groups > 1 ? Tag::goihw : Tag::oihw);
    fused::Prepared prepared;
    prepared.output = {input[0], weight.size(0), window.out[0], window.out[1]};
    memory::desc output = fused::describe(prepared.output);
    dnnl::post_ops operations;
    // More kernels can add onto their result than can read another operand.
    if (sum == Sum::onto) operations.append_sum(1);
    if (sum == Sum::beside) operations.append_binary(dnnl::algorithm::binary_add, output);
    if (sum != Sum::later) fused::append(operations, activation_);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(operations);
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    memory::dims dilates = {window.dilation[0] - 1, window.dilation[1] - 1};
    dnnl::convolution_forward::desc description(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                                fused::describe(input), any_weight, fused::describe(bias.sizes()),
                                                output, window.stride, dilates, window.padding, window.padding);
    dnnl::convolution_forward::primitive_desc chosen(description, attributes, fused::engine());
    if (groups == 1 && wants_direct(weight.size(1), weight.size(0), window)) {
      dnnl::convolution_forward::primitive_desc other(description, attributes, fused::engine());
      while (std::strncmp(other.impl_info_str(), "brg", 3) == 0 && other.next_impl()) {
      }
      if (std::strncmp(other.impl_info_str(), "jit:avx512", 10) == 0) chosen = other;
    }
    prepared.primitive = dnnl::convolution_forward(chosen);
    prepared.scratch = chosen.scratchpad_desc();
    prepared.add(DNNL_ARG_WEIGHTS, weight, plain_weight, chosen.weights_desc());
    prepared.add(DNNL_ARG_BIAS, bias, chosen.bias_desc(), chosen.bias_desc());
    return prepared;
  }

  LinearLayer layer_;
  at::Tensor bias_;
  std::optional<FusedNorm> norm_;
  FusedActivation activation_;
  bool takes_sum_;
  fused::Cache cache_;
};

}  // namespace

FusedLayerPtr fused_convolution(LinearLayer layer, at::Tensor bias, std::optional<FusedNorm> norm,
                                FusedActivation activation, bool takes_sum) {
  return c10::make_intrusive<Convolution>(std::move(layer), std::move(bias), std::move(norm), activation, takes_sum);
}

}  // namespace galvani
