// Single images as bytes of a file.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace galvani {

// PNG bytes of [C, H, W] uint8 pixels, C 1 or 3 (RGB). `level` of compression 0..9; -1: the encoder's choice.
std::string encode_png(const unsigned char* pixels, std::int64_t channels, std::int64_t height, std::int64_t width,
                       int level = -1);
std::string encode_png(const at::Tensor& image, int level = -1);

// [C, H, W] uint8; Error(bad_input) naming `what` for anything but an 8-bit PNG, JPEG, BMP or PNM image. Decoders may
// write to standard error about damaged files unless a QuietDecoders lives.
at::Tensor decode_image_tensor(std::string_view bytes, const std::string& what);

// While one lives, what libpng, libjpeg and OpenCV print about damaged files goes nowhere: they write to standard
// error by themselves, and there is no other way to stop them. So does what anybody else writes there.
class QuietDecoders {
 public:
  QuietDecoders();
  ~QuietDecoders();
  QuietDecoders(const QuietDecoders&) = delete;
  QuietDecoders& operator=(const QuietDecoders&) = delete;
};

}  // namespace galvani
