// One image file, decoded by OpenCV behind our own look at its header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace galvani {

struct ImageInfo {
  std::string format;
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool gray = false;  // decode to one channel; otherwise the decoder may still find that it is gray
};

// What the header says; Error(bad_input) naming `what` for unknown formats, 16-bit samples and absurd sizes. Decoders
// allocate what a header claims, so it is checked first.
ImageInfo read_image_header(std::string_view data, const std::string& what);

struct Image {
  std::int64_t channels = 0;  // 1 or 3 (RGB)
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::string pixels;  // [C, H, W]
};

// Alpha is dropped, an orientation tag is ignored. REQUIRES a living QuietDecoders.
Image decode_image(std::string_view bytes, const std::string& what);

// PNG bytes of [C, H, W] uint8 pixels, C 1 or 3 (RGB).
std::string encode_png(const unsigned char* pixels, std::int64_t channels, std::int64_t height, std::int64_t width);

bool has_image_extension(const std::filesystem::path& path);

// While one lives, what libpng, libjpeg and OpenCV print about damaged files goes nowhere: they write to standard
// error by themselves, and there is no other way to stop them.
class QuietDecoders {
 public:
  QuietDecoders();
  ~QuietDecoders();
  QuietDecoders(const QuietDecoders&) = delete;
  QuietDecoders& operator=(const QuietDecoders&) = delete;
};

}  // namespace galvani
