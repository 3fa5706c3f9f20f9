// One image file, decoded by OpenCV behind our own look at its header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "galvani/data/image.h"

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

bool has_image_extension(const std::filesystem::path& path);

}  // namespace galvani
