// The table of operators, by what they are for. Left out on purpose: what takes strides, storages or unchecked indices
// (as_strided, _reshape_alias, set_, resize_, empty_strided, embedding_bag, bincount, ...), files (save, from_file),
// text on the terminal (Print), threads (fork, wait), sparse, quantised and nested tensors, and sorting of lists, where
// an order that contradicts itself makes the standard library leave the list.
#include "galvani/model/operators.h"

#include <fmt/format.h>

#include <sstream>

namespace galvani {
namespace {

struct Row {
  const char* title;
  bool tensors;
  const char* space;
  const char* names;
};

constexpr Row kRows[] = {
    {"Control flow, values, objects", false, "prim::",
     "CallFunction CallMethod Constant ConstantChunk CreateObject DictConstruct Enter EnumName EnumValue Exit "
     "GetAttr If ImplicitTensorToNum ListConstruct ListUnpack Loop ModuleContainerIndex NumToTensor RaiseException "
     "SetAttr StringIndex TupleConstruct TupleIndex TupleSlice TupleUnpack Uninitialized abs annotate data device "
     "dtype is_cpu is_cuda is_meta is_mkldnn is_nested is_quantized is_sparse isinstance layout max min rangelist "
     "requires_grad shape unchecked_cast unchecked_unwrap_optional"},
    {"Numbers, booleans, text, lists, dictionaries", false, "aten::",
     "Bool Delete Float FloatImplicit Int IntImplicit ScalarImplicit Size __and__ __contains__ __derive_index "
     "__getitem__ __is__ __isnot__ __lshift__ __not__ __or__ __range_length __rshift__ __xor__ _get_tracing_state "
     "_set_item _unwrap_optional acos add all any append asin atan atan2 ceil clear copy copysign cos cosh count "
     "degrees "
     "dict div endswith eq exp extend fabs find floor floordiv fmod format ge get gt has_torch_function hash "
     "insert is_autocast_enabled is_grad_enabled is_scripting isfinite isinf isnan items join keys le len list log "
     "log10 log1p log2 lower lstrip lt mul ne neg ord pop popitem pow radians remainder remove replace reverse "
     "round rstrip set_grad_enabled setdefault sin sinh slice split sqrt startswith str strip sub tan tanh trunc "
     "update "
     "upper values warn"},
    {"Making tensors", false, "aten::",
     "arange as_tensor blackman_window empty eye full hamming_window hann_window linspace logspace meshgrid normal "
     "ones rand randint randn randperm scalar_tensor tensor tril_indices triu_indices zeros"},
    {"Like another tensor, random numbers", true, "aten::",
     "bernoulli bernoulli_ empty_like exponential_ full_like multinomial new_empty new_full new_ones new_zeros "
     "normal_ ones_like rand_like randint_like randn_like random_ uniform_ zeros_like"},
    {"Element by element", true, "aten::",
     "__and__ __lshift__ __or__ __rshift__ __xor__ abs abs_ absolute acos acosh add add_ addcdiv addcdiv_ addcmul "
     "addcmul_ alpha_dropout alpha_dropout_ arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan "
     "atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil ceil_ celu celu_ clamp clamp_ clamp_max "
     "clamp_max_ clamp_min clamp_min_ clip clip_ copysign cos cosh deg2rad digamma div div_ divide dropout "
     "dropout_ elu elu_ eq eq_ erf erf_ erfc erfinv exp exp2 exp_ expm1 feature_alpha_dropout feature_dropout "
     "feature_dropout_ floor floor_ floor_divide floor_divide_ fmax fmin fmod fmod_ frac ge ge_ gelu gelu_ glu "
     "greater greater_equal gt gt_ hardshrink hardsigmoid hardsigmoid_ hardswish hardswish_ hardtanh hardtanh_ "
     "hypot isclose isfinite isinf isnan isneginf isposinf ldexp le le_ leaky_relu leaky_relu_ lerp lerp_ less "
     "less_equal lgamma log log10 log1p log2 log_ log_sigmoid logaddexp logaddexp2 logical_and logical_not "
     "logical_or logical_xor logit lt lt_ maximum minimum mish mish_ mul mul_ multiply nan_to_num nan_to_num_ "
     "native_dropout ne ne_ neg neg_ negative not_equal positive pow pow_ prelu rad2deg reciprocal reciprocal_ "
     "relu relu6 relu6_ relu_ remainder remainder_ round round_ rrelu rsqrt rsqrt_ rsub selu selu_ sgn sigmoid "
     "sigmoid_ sign silu silu_ sin sinc sinh softplus softshrink special_expit special_log_softmax special_softmax "
     "sqrt sqrt_ square square_ sub sub_ subtract tan tanh tanh_ threshold threshold_ true_divide trunc trunc_ "
     "where xlogy"},
    {"Convolution, pooling, normalisation, recurrence, attention", true, "aten::",
     "__interpolate __upsample __upsample_bilinear __upsample_nearest _convolution _convolution_mode _log_softmax "
     "_native_multi_head_attention _softmax _weight_norm adaptive_avg_pool1d adaptive_avg_pool2d "
     "adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d affine_grid_generator "
     "avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear cdist channel_shuffle col2im conv1d conv2d conv3d "
     "conv_transpose1d conv_transpose2d conv_transpose3d convolution cosine_similarity embedding grid_sampler "
     "group_norm gru gru_cell im2col instance_norm layer_norm linear log_softmax lstm lstm_cell max_pool1d "
     "max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices "
     "pairwise_distance pixel_shuffle pixel_unshuffle rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell softmax unfold "
     "upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d "
     "upsample_nearest3d upsample_trilinear3d"},
    {"Products and linear algebra", false, "aten::",
     "addbmm addmm addmm_ addmv addr baddbmm bmm chain_matmul cross det dot einsum ger inner inverse kron "
     "linalg_inv linalg_matrix_norm linalg_norm linalg_vector_norm matmul matrix_power mm mv outer tensordot trace "
     "vdot"},
    {"Reductions and order", true, "aten::",
     "_unique2 all allclose amax amin aminmax any argmax argmin argsort bucketize count_nonzero cummax "
     "cummin cumprod cumsum diff dist equal frobenius_norm histc kthvalue logcumsumexp logsumexp max mean median "
     "min mode nanmean nansum norm nuclear_norm prod quantile renorm searchsorted sort std std_mean sum topk "
     "unique_consecutive var var_mean"},
    {"Shape, parts, places", true, "aten::",
     "_dim_arange _reshape_from_tensor _shape_as_tensor alias atleast_1d atleast_2d atleast_3d broadcast_tensors "
     "broadcast_to cat chunk clone column_stack concat concatenate constant_pad_nd contiguous copy_ cpu detach "
     "detach_ diag diag_embed diagflat diagonal dim dsplit dstack element_size expand expand_as fill fill_ flatten "
     "flip fliplr flipud gather get_device hsplit hstack index index_add index_add_ index_copy index_copy_ "
     "index_fill index_fill_ index_put index_put_ index_select is_complex is_contiguous is_floating_point "
     "is_nonzero is_same_size is_signed item mT masked_fill masked_fill_ masked_scatter masked_select moveaxis "
     "movedim narrow narrow_copy nonzero nonzero_numpy numel numpy_T one_hot pad permute ravel reflection_pad1d "
     "reflection_pad2d reflection_pad3d repeat repeat_interleave replication_pad1d replication_pad2d "
     "replication_pad3d requires_grad_ reshape reshape_as result_type roll rot90 scatter scatter_ scatter_add "
     "scatter_add_ select size slice split split_with_sizes squeeze squeeze_ stack sum_to_size swapaxes swapdims t "
     "t_ take take_along_dim tensor_split tile to transpose transpose_ tril tril_ triu triu_ type_as unbind "
     "unflatten unsqueeze unsqueeze_ view view_as vsplit vstack zero_"},
    {"Spectra", true, "aten::",
     "angle complex conj fft_fft fft_fft2 fft_fftn fft_fftshift fft_ifft fft_ifft2 fft_ifftn fft_ifftshift "
     "fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn imag polar real stft view_as_complex "
     "view_as_real"},
};

std::vector<OperatorGroup> make_groups() {
  std::vector<OperatorGroup> groups;
  for (const Row& row : kRows) {
    OperatorGroup group{row.title, row.tensors, {}};
    std::istringstream words(row.names);
    for (std::string word; words >> word;) group.names.push_back(row.space + word);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

const std::vector<OperatorGroup>& torchscript_operators() {
  static const std::vector<OperatorGroup> kGroups = make_groups();
  return kGroups;
}

std::string torchscript_operators_markdown() {
  std::string page =
      "# Operators a TorchScript file may use\n\n"
      "Written by `galvani inspect --operators`; [security](security.md) says what the list is for. Overloads that "
      "write\n"
      "into a given tensor (`out=`) are refused everywhere; \"of tensors\" means that overloads which begin with "
      "something\n"
      "else are refused, too. `prim::unchecked_cast` may only take the `None` out of an optional type. What draws "
      "random\n"
      "numbers, and dropout and batch normalisation in training mode, may be there for training alone: a file in "
      "which\n"
      "evaluation gets to them is refused.\n";
  for (const OperatorGroup& group : torchscript_operators()) {
    page += fmt::format("\n## {}{}\n\n", group.title, group.tensors ? " (of tensors)" : "");
    std::string line;
    for (const std::string& name : group.names) {
      std::string word = fmt::format("`{}`", name);
      if (line.size() + word.size() + 1 > 118) {
        page += line + "\n";
        line.clear();
      }
      line += (line.empty() ? "" : " ") + word;
    }
    page += line + "\n";
  }
  return page;
}

}  // namespace galvani
