// Operators of layers: padding by size, transposed convolution, pooling, normalisation, softmax.
#include <torch/library.h>
#include <torch/script.h>

#include "model/onnx/runtime.h"

namespace galvani::onnx {

namespace {

using at::IntArrayRef;
using at::Tensor;
using OptionalTensor = c10::optional<Tensor>;

// Pads so that the window gives ceil(size / stride) positions; an odd amount goes to the end (`upper`) or the start.
Tensor pad_same(const Tensor& x, IntArrayRef kernel, IntArrayRef strides, IntArrayRef dilations, bool upper,
                const at::Scalar& fill) {
  auto n = static_cast<std::int64_t>(kernel.size());
  TORCH_CHECK(x.dim() == n + 2, "a window of ", n, " axes on a tensor of ", x.dim());
  std::vector<std::int64_t> amounts;
  for (std::int64_t i = n - 1; i >= 0; --i) {
    std::int64_t size = x.size(i + 2);
    std::int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    std::int64_t positions = (size + strides[i] - 1) / strides[i];
    std::int64_t total = std::max<std::int64_t>((positions - 1) * strides[i] + reach - size, 0);
    std::int64_t less = total / 2;
    amounts.push_back(upper ? less : total - less);
    amounts.push_back(upper ? total - less : less);
  }
  return at::constant_pad_nd(x, amounts, fill);
}

Tensor conv_transpose(const Tensor& x, const Tensor& weight, const OptionalTensor& bias, IntArrayRef strides,
                      IntArrayRef dilations, IntArrayRef before, IntArrayRef after, IntArrayRef extra,
                      std::int64_t group, IntArrayRef shape, std::int64_t same) {
  auto n = static_cast<std::int64_t>(strides.size());
  TORCH_CHECK(x.dim() == n + 2 && weight.dim() == n + 2, "a window of ", n, " axes on a tensor of ", x.dim());
  std::vector<std::int64_t> none(n, 0);
  Tensor full = at::convolution(x, weight, {}, strides, none, dilations, true, none, group);
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t size = full.size(i + 2) + extra[i];
    std::int64_t head = before[i];
    std::int64_t wanted = size - before[i] - after[i];
    if (!shape.empty() || same != 0) {
      wanted = shape.empty() ? x.size(i + 2) * strides[i] : shape[i];
      std::int64_t total = std::max<std::int64_t>(size - wanted, 0);
      head = same == 1 ? total / 2 : total - total / 2;
    }
    std::int64_t axis = i + 2;
    std::int64_t missing = head + wanted - full.size(axis);
    if (missing > 0) {
      std::vector<std::int64_t> amounts(2 * static_cast<std::size_t>(x.dim() - axis), 0);
      amounts.back() = missing;
      full = at::constant_pad_nd(full, amounts, 0);
    }
    full = full.narrow(axis, head, wanted);
  }
  if (!bias) return full;
  std::vector<std::int64_t> ones(n + 2, 1);
  ones[1] = -1;
  return full + bias->reshape(ones);
}

std::tuple<Tensor, Tensor> max_pool_indices(const Tensor& x, IntArrayRef kernel, IntArrayRef strides,
                                            IntArrayRef padding, IntArrayRef dilations, bool ceil, bool column_major) {
  auto n = static_cast<std::int64_t>(kernel.size());
  TORCH_CHECK(x.dim() == n + 2, "a window of ", n, " axes on a tensor of ", x.dim());
  Tensor values;
  Tensor indices;
  if (n == 1) std::tie(values, indices) = at::max_pool1d_with_indices(x, kernel, strides, padding, dilations, ceil);
  if (n == 2) std::tie(values, indices) = at::max_pool2d_with_indices(x, kernel, strides, padding, dilations, ceil);
  if (n == 3) std::tie(values, indices) = at::max_pool3d_with_indices(x, kernel, strides, padding, dilations, ceil);
  // torch counts within a plane, ONNX within the whole tensor; column-major swaps the last two axes' roles.
  std::int64_t plane = 1;
  for (std::int64_t i = 0; i < n; ++i) plane *= x.size(i + 2);
  if (column_major && n >= 2) {
    std::int64_t h = x.size(n), w = x.size(n + 1);
    Tensor rest = at::div(indices, h * w, "floor") * (h * w);
    Tensor inner = at::remainder(indices, h * w);
    indices = rest + at::remainder(inner, w) * h + at::div(inner, w, "floor");
  }
  std::vector<std::int64_t> leading(n + 2, 1);
  leading[0] = x.size(0);
  leading[1] = x.size(1);
  return {values, indices + (at::arange(x.size(0) * x.size(1), at::kLong) * plane).reshape(leading)};
}

Tensor max_unpool(const Tensor& x, const Tensor& indices, IntArrayRef kernel, IntArrayRef strides, IntArrayRef before,
                  IntArrayRef after, IntArrayRef shape) {
  auto n = static_cast<std::int64_t>(kernel.size());
  TORCH_CHECK(x.dim() == n + 2 && indices.sizes() == x.sizes(), "values and indices differ in shape");
  std::vector<std::int64_t> inferred = {x.size(0), x.size(1)};
  for (std::int64_t i = 0; i < n; ++i)
    inferred.push_back((x.size(i + 2) - 1) * strides[i] - before[i] - after[i] + kernel[i]);
  check_made(inferred);
  // The indices count in the inferred tensor; a given shape only makes room around it.
  std::int64_t count = c10::multiply_integers(inferred);
  Tensor flat = at::zeros({count}, x.options()).scatter(0, indices.reshape({-1}), x.reshape({-1}));
  Tensor result = flat.reshape(inferred);
  if (shape.empty()) return result;
  TORCH_CHECK(shape.size() == inferred.size(), "an output shape of ", shape.size(), " axes");
  check_made(shape);
  std::vector<std::int64_t> amounts;
  for (std::int64_t i = n + 1; i >= 0; --i) {
    amounts.push_back(0);
    amounts.push_back(shape[i] - inferred[i]);
  }
  return at::constant_pad_nd(result, amounts, 0);
}

std::vector<std::int64_t> spatial_axes(const Tensor& x) {
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 2; i < x.dim(); ++i) axes.push_back(i);
  return axes;
}

Tensor global_average_pool(const Tensor& x) {
  auto axes = spatial_axes(x);
  return axes.empty() ? x : x.mean(axes, true);
}

Tensor global_lp_pool(const Tensor& x, std::int64_t p) {
  auto axes = spatial_axes(x);
  return axes.empty() ? x.abs() : at::norm(x, p, axes, true);
}

// Sums over windows, as a convolution of each channel with ones. Rounding up (`ceil`) adds zeros behind the image, but
// no window that begins there.
Tensor window_sums(const Tensor& x, IntArrayRef kernel, IntArrayRef strides, IntArrayRef dilations, IntArrayRef before,
                   IntArrayRef after, bool ceil) {
  auto n = static_cast<std::int64_t>(kernel.size());
  TORCH_CHECK(x.dim() == n + 2, "a window of ", n, " axes on a tensor of ", x.dim());
  std::vector<std::int64_t> amounts, weight{x.size(1), 1};
  for (std::int64_t i = n - 1; i >= 0; --i) {
    std::int64_t size = x.size(i + 2) + before[i] + after[i];
    std::int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    std::int64_t more = 0;
    if (ceil && size >= reach) {
      std::int64_t positions = (size - reach + strides[i] - 1) / strides[i] + 1;
      if ((positions - 1) * strides[i] >= x.size(i + 2) + before[i]) --positions;
      more = std::max<std::int64_t>((positions - 1) * strides[i] + reach - size, 0);
    }
    amounts.push_back(before[i]);
    amounts.push_back(after[i] + more);
  }
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  TORCH_CHECK(x.size(1) > 0, "a tensor without channels");
  Tensor padded = at::constant_pad_nd(x, amounts);
  return at::convolution(padded, at::ones(weight, x.options()), {}, strides, std::vector<std::int64_t>(n, 0), dilations,
                         false, std::vector<std::int64_t>(n, 0), x.size(1));
}

Tensor global_max_pool(const Tensor& x) {
  auto axes = spatial_axes(x);
  return axes.empty() ? x : x.amax(axes, true);
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_training(const Tensor& x, const Tensor& scale, const Tensor& bias,
                                                       const Tensor& mean, const Tensor& variance, double epsilon,
                                                       double kept) {
  std::vector<std::int64_t> axes = {0};
  for (std::int64_t i = 2; i < x.dim(); ++i) axes.push_back(i);
  // ONNX keeps the population variance, torch the sample's.
  Tensor batch_mean = x.mean(axes);
  Tensor batch_variance = x.var(axes, /*unbiased=*/false);
  Tensor y = at::batch_norm(x, scale, bias, {}, {}, true, 0.0, epsilon, false);
  return {y, mean * kept + batch_mean * (1 - kept), variance * kept + batch_variance * (1 - kept)};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm(const Tensor& x, const Tensor& scale, const OptionalTensor& bias,
                                              std::int64_t axis, double epsilon) {
  if (axis < 0) axis += x.dim();
  TORCH_CHECK(axis >= 0 && axis < x.dim(), "axis ", axis, " of a tensor with ", x.dim(), " axes");
  std::vector<std::int64_t> axes;
  for (std::int64_t i = axis; i < x.dim(); ++i) axes.push_back(i);
  Tensor wide = x.to(at::kFloat);
  Tensor mean = wide.mean(axes, true);
  Tensor centred = wide - mean;
  Tensor inverse = (centred.square().mean(axes, true) + epsilon).rsqrt();
  Tensor y = (centred * inverse).to(x.scalar_type()) * scale;
  if (bias) y = y + *bias;
  return {y, mean, inverse};
}

// Divides by the root of the mean square over the axes from `axis` on, which is computed in float32 at least.
Tensor rms_norm(const Tensor& x, const Tensor& scale, std::int64_t axis, double epsilon) {
  std::vector<std::int64_t> axes;
  for (std::int64_t i = wrap(axis, x.dim()); i < x.dim(); ++i) axes.push_back(i);
  Tensor wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  Tensor normal = wide * (wide.square().mean(axes, true) + epsilon).rsqrt();
  return normal.to(scale.scalar_type()) * scale;
}

Tensor group_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, std::int64_t groups, double epsilon) {
  TORCH_CHECK(x.dim() >= 2 && groups > 0 && x.size(1) % groups == 0, "channels do not divide into groups");
  std::int64_t each = x.size(1) / groups;
  auto per_channel = [&](const Tensor& value) {
    return value.numel() == groups ? value.repeat_interleave(each) : value;
  };
  return at::group_norm(x, groups, per_channel(scale), per_channel(bias), epsilon);
}

Tensor local_response_norm(const Tensor& x, std::int64_t size, double alpha, double beta, double bias) {
  TORCH_CHECK(x.dim() >= 3, "a tensor of ", x.dim(), " axes has no neighbourhood of channels");
  Tensor squares = x.square().reshape({x.size(0), 1, x.size(1), -1});
  squares = at::constant_pad_nd(squares, {0, 0, (size - 1) / 2, size / 2}, 0);
  Tensor mean = at::avg_pool2d(squares, {size, 1}, {1, 1}).reshape(x.sizes());
  return x / (mean * alpha + bias).pow(beta);
}

Tensor mean_variance_norm(const Tensor& x, IntArrayRef axes) {
  Tensor mean = x.mean(axes, true);
  Tensor deviation = (x.square().mean(axes, true) - mean.square()).sqrt();
  return (x - mean) / (deviation + 1e-9);
}

Tensor hardmax(const Tensor& x, std::int64_t axis) {
  Tensor best = x.argmax(axis, true);
  return at::zeros_like(x).scatter(axis, best, 1);
}

// Applies `act` to the rows of the matrix that flattening at `axis` makes.
template <class Act>
Tensor on_rows(const Tensor& x, std::int64_t axis, Act act) {
  if (axis < 0) axis += x.dim();
  TORCH_CHECK(axis >= 0 && axis <= x.dim(), "axis ", axis, " of a tensor with ", x.dim(), " axes");
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i < axis; ++i) rows *= x.size(i);
  std::int64_t columns = 1;
  for (std::int64_t i = axis; i < x.dim(); ++i) columns *= x.size(i);
  return act(x.reshape({rows, columns})).reshape(x.sizes());
}

Tensor softmax_flattened(const Tensor& x, std::int64_t axis) {
  return on_rows(x, axis, [](const Tensor& rows) { return rows.softmax(1); });
}

Tensor log_softmax_flattened(const Tensor& x, std::int64_t axis) {
  return on_rows(x, axis, [](const Tensor& rows) { return rows.log_softmax(1); });
}

Tensor hardmax_flattened(const Tensor& x, std::int64_t axis) {
  return on_rows(x, axis, [](const Tensor& rows) { return hardmax(rows, 1); });
}

Tensor shrink(const Tensor& x, double bias, double lambda) {
  Tensor zero = at::zeros_like(x);
  return at::where(x < -lambda, x + bias, at::where(x > lambda, x - bias, zero)).to(x.scalar_type());
}

Tensor einsum(at::TensorList operands, IntArrayRef letters) {
  std::string equation;
  for (std::int64_t letter : letters) equation += static_cast<char>(letter);
  return at::einsum(equation, operands);
}

}  // namespace

void define_nn(torch::Library& library) {
  library.def("pad_same(Tensor x, int[] kernel, int[] strides, int[] dilations, bool upper, Scalar fill) -> Tensor",
              pad_same);
  library.def(
      "conv_transpose(Tensor x, Tensor weight, Tensor? bias, int[] strides, int[] dilations, int[] before, int[] "
      "after, "
      "int[] extra, int group, int[] shape, int same) -> Tensor",
      conv_transpose);
  library.def(
      "max_pool_indices(Tensor x, int[] kernel, int[] strides, int[] padding, int[] dilations, bool ceil, "
      "bool column_major) -> (Tensor, Tensor)",
      max_pool_indices);
  library.def(
      "max_unpool(Tensor x, Tensor indices, int[] kernel, int[] strides, int[] before, int[] after, int[] shape) -> "
      "Tensor",
      max_unpool);
  library.def("global_average_pool(Tensor x) -> Tensor", global_average_pool);
  library.def("global_lp_pool(Tensor x, int p) -> Tensor", global_lp_pool);
  library.def(
      "window_sums(Tensor x, int[] kernel, int[] strides, int[] dilations, int[] before, int[] after, bool ceil) -> "
      "Tensor",
      window_sums);
  library.def("global_max_pool(Tensor x) -> Tensor", global_max_pool);
  library.def(
      "batch_norm_training(Tensor x, Tensor scale, Tensor bias, Tensor mean, Tensor variance, float epsilon, "
      "float kept) -> (Tensor, Tensor, Tensor)",
      batch_norm_training);
  library.def("layer_norm(Tensor x, Tensor scale, Tensor? bias, int axis, float epsilon) -> (Tensor, Tensor, Tensor)",
              layer_norm);
  library.def("rms_norm(Tensor x, Tensor scale, int axis, float epsilon) -> Tensor", rms_norm);
  library.def("group_norm(Tensor x, Tensor scale, Tensor bias, int groups, float epsilon) -> Tensor", group_norm);
  library.def("local_response_norm(Tensor x, int size, float alpha, float beta, float bias) -> Tensor",
              local_response_norm);
  library.def("mean_variance_norm(Tensor x, int[] axes) -> Tensor", mean_variance_norm);
  library.def("hardmax(Tensor x, int axis) -> Tensor", hardmax);
  library.def("softmax_flattened(Tensor x, int axis) -> Tensor", softmax_flattened);
  library.def("log_softmax_flattened(Tensor x, int axis) -> Tensor", log_softmax_flattened);
  library.def("hardmax_flattened(Tensor x, int axis) -> Tensor", hardmax_flattened);
  library.def("shrink(Tensor x, float bias, float lambda_) -> Tensor", shrink);
  library.def("einsum(Tensor[] operands, int[] letters) -> Tensor", einsum);
}

}  // namespace galvani::onnx
