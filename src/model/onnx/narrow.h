// Element types that LibTorch has no tensors for: their values are held by a wider type.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace galvani::onnx {

struct NarrowType {
  int onnx;
  at::ScalarType held;
  int bits;
  bool is_signed;
  // Of floating-point types: bits of the fraction, bias of the exponent, the largest value (0: an integer). Those
  // without infinities overflow to NaN; those without a negative zero have NaN in its place.
  int fraction;
  int bias;
  double largest;
  bool infinities;
  bool negative_zero;
};

// Null if there is no such type.
const NarrowType* narrow_type(int onnx_type);

// The elements from their bytes: several a byte, the lowest first, or several bytes, little-endian.
// REQUIRES as many bytes as the shape asks for.
at::Tensor unpack_narrow(const NarrowType& type, const std::string& bytes, const std::vector<std::int64_t>& shape);

// Values as the type has them: floating-point numbers rounded to the nearest, integers cut to their lowest bits. What
// is too large becomes the largest value if `saturate`, otherwise infinity or NaN.
at::Tensor round_narrow(const NarrowType& type, const at::Tensor& x, bool saturate);

}  // namespace galvani::onnx
