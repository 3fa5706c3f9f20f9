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
  int channels = 0;               // 1 or 3; 0: the decoder finds out
  bool deep = false;              // 16 bits a sample
  int orientation = 1;            // EXIF's, 1 to 8; 1: as it is stored
  std::uint64_t least_bytes = 0;  // of a whole file, where the header says so
};

// What the header says; Error(bad_input) naming `what` for unknown formats and absurd sizes. Decoders allocate what a
// header claims, so it is checked first. `data` may be the start of a file; "ends inside its header" where that is too
// short.
ImageInfo read_image_header(std::string_view data, const std::string& what);
// Whether the end of a file of `size` bytes is that of such an image. `tail` is the last part of it, or all.
bool ends_whole(const ImageInfo& info, std::string_view tail, std::uint64_t size);
// The same for a file, of which little is read; Error(bad_input) for what is broken.
ImageInfo look_at_image(const std::filesystem::path& path);

struct Image {
  std::int64_t channels = 0;  // 1 or 3 (RGB)
  std::int64_t height = 0;
  std::int64_t width = 0;
  int orientation = 1;  // EXIF's: the pixels are as they are stored
  std::string pixels;   // [C, H, W]
};

// Alpha is dropped, 16 bits become 8. REQUIRES a living QuietDecoders.
Image decode_image(std::string_view bytes, const std::string& what);

bool has_image_extension(const std::filesystem::path& path);

}  // namespace galvani
