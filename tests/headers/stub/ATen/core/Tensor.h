// Stands in for LibTorch's header, which takes seconds to read: what our headers use of it.
#pragma once

#include <cstdint>

namespace at {

enum class ScalarType : std::int8_t { byte };
constexpr ScalarType kByte = ScalarType::byte;

class IntArrayRef;

class Tensor {
 public:
  bool defined() const;
  std::int64_t size(std::int64_t axis) const;
  std::int64_t numel() const;
  template <class T>
  T* data_ptr() const;
};

}  // namespace at
