// What happens to images on their way: they are blurred and compressed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace galvani {

// images [N, C, H, W] uint8 → the same. A Gaussian with this standard deviation, cut off at four of them, the border's
// values repeated outside, rounded to bytes.
at::Tensor blurred(const at::Tensor& images, double deviation);

// Encoded as JPEG and decoded again. REQUIRES one channel, or three.
at::Tensor compressed(const at::Tensor& images, std::int64_t quality);

}  // namespace galvani
