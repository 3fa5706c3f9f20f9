#include "model/onnx/narrow.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace galvani::onnx {

namespace {

const NarrowType kNarrow[] = {
    {4, at::kInt, 16, false, 0, 0, 0, false, false},        // uint16
    {12, at::kLong, 32, false, 0, 0, 0, false, false},      // uint32
    {13, at::kLong, 64, false, 0, 0, 0, false, false},      // uint64
    {17, at::kFloat, 8, true, 3, 7, 448, false, true},      // float8e4m3fn
    {18, at::kFloat, 8, true, 3, 8, 240, false, false},     // float8e4m3fnuz
    {19, at::kFloat, 8, true, 2, 15, 57344, true, true},    // float8e5m2
    {20, at::kFloat, 8, true, 2, 16, 57344, false, false},  // float8e5m2fnuz
    {21, at::kByte, 4, false, 0, 0, 0, false, false},       // uint4
    {22, at::kChar, 4, true, 0, 0, 0, false, false},        // int4
    {23, at::kFloat, 4, true, 1, 1, 6, false, true},        // float4e2m1
    {24, at::kFloat, 8, false, 0, 127, 0, false, false},    // float8e8m0
    {25, at::kByte, 2, false, 0, 0, 0, false, false},       // uint2
    {26, at::kChar, 2, true, 0, 0, 0, false, false},        // int2
};

constexpr int kPowersOfTwo = 24;  // float8e8m0, which is an exponent alone

float decoded(const NarrowType& type, std::uint32_t code) {
  if (type.onnx == kPowersOfTwo) return code == 255 ? NAN : std::ldexp(1.0F, static_cast<int>(code) - type.bias);
  std::uint32_t sign = code >> (type.bits - 1);
  int exponent_bits = type.bits - 1 - type.fraction;
  auto exponent = static_cast<int>((code >> type.fraction) & ((1U << exponent_bits) - 1));
  auto fraction = static_cast<int>(code & ((1U << type.fraction) - 1));
  if (!type.negative_zero && code == 1U << (type.bits - 1)) return NAN;
  int most = (1 << exponent_bits) - 1;
  if (type.infinities && exponent == most) return fraction != 0 ? NAN : sign != 0 ? -INFINITY : INFINITY;
  if (type.onnx == 17 && exponent == most && fraction == 7) return NAN;
  float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), 1 - type.bias - type.fraction)
                              : std::ldexp(static_cast<float>(fraction + (1 << type.fraction)),
                                           exponent - type.bias - type.fraction);
  return sign != 0 ? -value : value;
}

float rounded(const NarrowType& type, float x, bool saturate) {
  if (std::isnan(x)) return type.bits == 4 ? -0.0F : x;
  double size = std::abs(static_cast<double>(x));
  int exponent = 0;
  if (std::isfinite(size) && size > 0) {
    std::frexp(size, &exponent);
    exponent = std::max(exponent - 1, 1 - type.bias) - type.fraction;
    size = std::ldexp(std::nearbyint(std::ldexp(size, -exponent)), exponent);
  }
  if (size > type.largest) size = saturate || type.bits == 4 ? type.largest : type.infinities ? INFINITY : NAN;
  if (size == 0 && !type.negative_zero) return 0;
  return static_cast<float>(std::copysign(size, x));
}

}  // namespace

const NarrowType* narrow_type(int onnx_type) {
  for (const NarrowType& type : kNarrow) {
    if (type.onnx == onnx_type) return &type;
  }
  return nullptr;
}

at::Tensor unpack_narrow(const NarrowType& type, const std::string& bytes, const std::vector<std::int64_t>& shape) {
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(type.held));
  std::int64_t count = tensor.numel();
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t code = 0;
    if (type.bits >= 8) {
      std::memcpy(&code, bytes.data() + i * (type.bits / 8), type.bits / 8);
    } else {
      int each = 8 / type.bits;
      code = (static_cast<std::uint8_t>(bytes[i / each]) >> (i % each * type.bits)) & ((1U << type.bits) - 1);
    }
    auto number = static_cast<std::int64_t>(code);
    if (type.is_signed && (code >> (type.bits - 1)) != 0) number -= std::int64_t{1} << type.bits;
    switch (type.held) {
      case at::kFloat:
        tensor.data_ptr<float>()[i] = decoded(type, static_cast<std::uint32_t>(code));
        break;
      case at::kInt:
        tensor.data_ptr<std::int32_t>()[i] = static_cast<std::int32_t>(number);
        break;
      case at::kLong:
        tensor.data_ptr<std::int64_t>()[i] = number;
        break;
      case at::kByte:
        tensor.data_ptr<std::uint8_t>()[i] = static_cast<std::uint8_t>(number);
        break;
      default:
        tensor.data_ptr<std::int8_t>()[i] = static_cast<std::int8_t>(number);
    }
  }
  return tensor;
}

at::Tensor round_narrow(const NarrowType& type, const at::Tensor& x, bool saturate) {
  if (type.held != at::kFloat) {
    at::Tensor whole = x.to(at::kLong);
    if (type.bits == 64) return whole;
    std::int64_t range = std::int64_t{1} << type.bits;
    whole = at::bitwise_and(whole, range - 1);
    if (type.is_signed) whole = at::where(whole >= range / 2, whole - range, whole);
    return whole.to(type.held);
  }
  TORCH_CHECK(type.onnx != kPowersOfTwo, "conversion to float8e8m0");
  at::Tensor result = x.to(at::kFloat).contiguous().clone();
  auto* data = result.data_ptr<float>();
  for (std::int64_t i = 0; i < result.numel(); ++i) data[i] = rounded(type, data[i], saturate);
  return result;
}

}  // namespace galvani::onnx
