#include <torch/library.h>
#include <torch/script.h>

#include "model/onnx/narrow.h"
#include "model/onnx/runtime.h"

namespace galvani::onnx {

namespace {

using at::Tensor;
using OptionalTensor = c10::optional<Tensor>;

// A parameter per element of one axis, shaped to multiply x; a scalar stays one.
Tensor along(const Tensor& parameter, const Tensor& x, std::int64_t axis) {
  if (parameter.numel() == 1) return parameter.reshape({});
  if (axis < 0) axis += x.dim();
  TORCH_CHECK(axis >= 0 && axis < x.dim(), "axis ", axis, " of a tensor with ", x.dim(), " axes");
  std::vector<std::int64_t> shape(x.dim(), 1);
  shape[axis] = -1;
  return parameter.reshape(shape);
}

Tensor saturate(const Tensor& x, std::int64_t type) {
  bool is_signed = static_cast<at::ScalarType>(type) == at::kChar;
  return x.clamp(is_signed ? -128 : 0, is_signed ? 127 : 255).to(static_cast<at::ScalarType>(type));
}

Tensor quantize(const Tensor& x, const Tensor& scale, const OptionalTensor& zero, std::int64_t axis,
                std::int64_t type) {
  Tensor steps = at::round(x / along(scale, x, axis));
  if (zero) steps = steps + along(*zero, x, axis).to(steps.scalar_type());
  return saturate(steps, type);
}

// A parameter of blocks along an axis, each repeated for its block; with a block of 0 it is along an axis or one.
Tensor spread(const Tensor& parameter, const Tensor& x, std::int64_t axis, std::int64_t block) {
  if (block == 0) return along(parameter, x, axis);
  axis = wrap(axis, x.dim());
  TORCH_CHECK(parameter.dim() == x.dim(), "scales of ", parameter.dim(), " axes for ", x.dim());
  std::int64_t size = x.size(axis), blocks = parameter.size(axis);
  TORCH_CHECK(size == 0 || (blocks - 1) * static_cast<double>(block) < static_cast<double>(size), blocks, " blocks of ",
              block, " for ", size, " values");
  return parameter.index_select(axis, at::arange(size).div(block, "floor").clamp_max(blocks - 1));
}

// To any type by its ONNX number.
Tensor quantize_to(const Tensor& x, const Tensor& scale, const OptionalTensor& zero, std::int64_t axis,
                   std::int64_t block, std::int64_t element, bool saturated) {
  Tensor steps = x.to(scale.scalar_type()) / spread(scale, x, axis, block);
  const NarrowType* narrow = narrow_type(static_cast<int>(element));
  if (narrow != nullptr && narrow->held == at::kFloat) {
    if (zero) steps = steps + spread(*zero, x, axis, block).to(steps.scalar_type());
    return round_narrow(*narrow, steps, saturated);
  }
  steps = at::round(steps.to(at::kDouble));
  if (zero) steps = steps + spread(*zero, x, axis, block).to(at::kDouble);
  bool wide = narrow == nullptr && element == 5;  // int16
  int bits = narrow != nullptr ? narrow->bits : wide ? 16 : 8;
  bool is_signed = narrow != nullptr ? narrow->is_signed : element != 2;
  double range = std::ldexp(1.0, bits);
  steps = steps.clamp(is_signed ? -range / 2 : 0, is_signed ? range / 2 - 1 : range - 1);
  return steps.to(narrow != nullptr ? narrow->held : wide ? at::kShort : is_signed ? at::kChar : at::kByte);
}

Tensor dequantize_blocks(const Tensor& x, const Tensor& scale, const OptionalTensor& zero, std::int64_t axis,
                         std::int64_t block) {
  Tensor steps = x.to(scale.scalar_type());
  if (zero) steps = steps - spread(*zero, x, axis, block).to(scale.scalar_type());
  return steps * spread(scale, x, axis, block);
}

Tensor round_element(const Tensor& x, std::int64_t element, bool saturated) {
  const NarrowType* type = narrow_type(static_cast<int>(element));
  TORCH_CHECK(type != nullptr, "the element type ", element);
  return round_narrow(*type, x, saturated);
}

Tensor dequantize(const Tensor& x, const Tensor& scale, const OptionalTensor& zero, std::int64_t axis) {
  Tensor steps = x.to(scale.scalar_type());
  if (zero) steps = steps - along(*zero, x, axis).to(scale.scalar_type());
  return steps * along(scale, x, axis);
}

std::tuple<Tensor, Tensor, Tensor> dynamic_quantize(const Tensor& x) {
  // The range always holds 0.
  Tensor high = x.max().clamp_min(0);
  Tensor low = x.min().clamp_max(0);
  Tensor scale = (high - low) / 255;
  Tensor zero = at::round((-low / scale).clamp(0, 255)).to(at::kByte);
  return {quantize(x, scale, zero, 0, static_cast<std::int64_t>(at::kByte)), scale, zero};
}

Tensor matmul_integer(const Tensor& a, const Tensor& b, const OptionalTensor& a_zero, const OptionalTensor& b_zero) {
  Tensor left = a.to(at::kInt);
  Tensor right = b.to(at::kInt);
  // Zero points are per row of the left matrix and per column of the right one.
  if (a_zero) left = left - (a_zero->dim() == 1 && a_zero->numel() > 1 ? a_zero->unsqueeze(-1) : *a_zero).to(at::kInt);
  if (b_zero) right = right - b_zero->to(at::kInt);
  return at::matmul(left, right);
}

Tensor requantize(const Tensor& sums, const Tensor& a_scale, const Tensor& b_scale, const Tensor& y_scale,
                  const OptionalTensor& zero, std::int64_t type, std::int64_t axis) {
  Tensor factor = (a_scale * b_scale / y_scale).to(at::kDouble);
  Tensor steps = at::round(sums.to(at::kDouble) * along(factor, sums, axis));
  return saturate(zero ? steps + zero->to(at::kDouble) : steps, type);
}

Tensor centre(const Tensor& x, const OptionalTensor& zero) {
  Tensor wide = x.to(at::kDouble);
  return zero ? wide - zero->to(at::kDouble) : wide;
}

Tensor centre_rows(const Tensor& weight, const OptionalTensor& zero) {
  Tensor wide = weight.to(at::kDouble);
  return zero ? wide - along(zero->to(at::kDouble), weight, 0) : wide;
}

// Weights [n, blocks, bytes] of a few bits each, the lowest first, as floats [n, k]. Scales are per block, zero points
// as well: floats, or packed like the weights.
Tensor unpack_blocks(const Tensor& packed, const Tensor& scales, const OptionalTensor& zeros, std::int64_t bits,
                     std::int64_t block, std::int64_t k) {
  TORCH_CHECK(packed.dim() == 3 && packed.scalar_type() == at::kByte, "weights that are not [n, blocks, bytes]");
  auto unpack = [bits](const Tensor& bytes) {
    std::vector<Tensor> parts;
    for (std::int64_t shift = 0; shift < 8; shift += bits)
      parts.push_back(at::bitwise_and(at::bitwise_right_shift(bytes, shift), (1 << bits) - 1));
    return at::stack(parts, -1).flatten(-2);
  };
  std::int64_t n = packed.size(0), blocks = packed.size(1);
  Tensor weight = unpack(packed).to(scales.scalar_type());
  TORCH_CHECK(weight.size(2) == block && blocks * block >= k, "blocks of another size than stated");
  Tensor middle = at::full({1, 1, 1}, static_cast<double>(1 << (bits - 1)), scales.options());
  if (zeros) {
    Tensor flat = zeros->scalar_type() == at::kByte ? unpack(zeros->reshape({n, -1})).slice(1, 0, blocks) : *zeros;
    middle = flat.reshape({n, blocks, 1}).to(scales.scalar_type());
  }
  weight = (weight - middle) * scales.reshape({n, blocks, 1});
  return weight.reshape({n, blocks * block}).slice(1, 0, k);
}

}  // namespace

void define_quant(torch::Library& library) {
  library.def("quantize(Tensor x, Tensor scale, Tensor? zero, int axis, int type) -> Tensor", quantize);
  library.def("dequantize(Tensor x, Tensor scale, Tensor? zero, int axis) -> Tensor", dequantize);
  library.def("dynamic_quantize(Tensor x) -> (Tensor, Tensor, Tensor)", dynamic_quantize);
  library.def("matmul_integer(Tensor a, Tensor b, Tensor? a_zero, Tensor? b_zero) -> Tensor", matmul_integer);
  library.def(
      "requantize(Tensor sums, Tensor a_scale, Tensor b_scale, Tensor y_scale, Tensor? zero, int type, int axis) -> "
      "Tensor",
      requantize);
  library.def("unpack_blocks(Tensor packed, Tensor scales, Tensor? zeros, int bits, int block, int k) -> Tensor",
              unpack_blocks);
  library.def(
      "quantize_to(Tensor x, Tensor scale, Tensor? zero, int axis, int block, int element, bool saturated) -> Tensor",
      quantize_to);
  library.def("dequantize_blocks(Tensor x, Tensor scale, Tensor? zero, int axis, int block) -> Tensor",
              dequantize_blocks);
  library.def("round_narrow(Tensor x, int element, bool saturated) -> Tensor", round_element);
  library.def("centre(Tensor x, Tensor? zero) -> Tensor", centre);
  library.def("centre_rows(Tensor weight, Tensor? zero) -> Tensor", centre_rows);
}

}  // namespace galvani::onnx
