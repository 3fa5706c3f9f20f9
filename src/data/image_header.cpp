// What the headers of image files say.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include "bounds.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "image_file.h"

namespace galvani {
namespace {

constexpr std::int64_t kMaxPixels = std::int64_t{1} << 27;
constexpr std::size_t kHead = std::size_t{64} << 10;
constexpr std::size_t kTail = std::size_t{4} << 10;
constexpr std::uint64_t kMaxImageFile = std::uint64_t{1} << 30;

class Bytes {
 public:
  Bytes(std::string_view data, const std::string& what) : data_(data), what_(what) {}
  std::size_t size() const { return data_.size(); }
  std::int64_t byte(std::size_t at) const {
    if (at >= data_.size()) bad_input("{}: ends inside its header", what_);
    return static_cast<unsigned char>(data_[at]);
  }
  std::int64_t big16(std::size_t at) const { return byte(at) << 8 | byte(at + 1); }
  std::int64_t big32(std::size_t at) const { return big16(at) << 16 | big16(at + 2); }
  std::int64_t little16(std::size_t at) const { return byte(at) | byte(at + 1) << 8; }
  std::int64_t little32(std::size_t at) const { return little16(at) | little16(at + 2) << 16; }
  // At most what a signed number holds.
  std::int64_t big64(std::size_t at) const { return joined(big32(at), big32(at + 4)); }
  std::int64_t little64(std::size_t at) const { return joined(little32(at + 4), little32(at)); }

 private:
  static std::int64_t joined(std::int64_t high, std::int64_t low) {
    constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();
    return high > kHighest >> 32 ? kHighest : high << 32 | low;
  }

  std::string_view data_;
  const std::string& what_;
};

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// The numbers of a TIFF file's first directory; EXIF is such a file within another.
class Directory {
 public:
  Directory(std::string_view file, const std::string& what)
      : bytes_(file, what), what_(what), big_(file.substr(0, 2) == "MM") {
    entries_ = static_cast<std::size_t>(number(4, 4));
  }
  // The first value of a tag.
  std::int64_t value(std::int64_t tag, std::int64_t fallback) const {
    auto count = static_cast<std::size_t>(number(entries_, 2));
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t at = entries_ + 2 + i * 12;
      if (number(at, 2) != tag) continue;
      std::size_t bytes = size_of(number(at + 2, 2));
      bool elsewhere = static_cast<std::size_t>(number(at + 4, 4)) * bytes > 4;
      return number(elsewhere ? static_cast<std::size_t>(number(at + 8, 4)) : at + 8, bytes);
    }
    return fallback;
  }

 private:
  // Of the types of whole numbers, all of which a decoder takes for any tag.
  std::size_t size_of(std::int64_t type) const {
    switch (type) {
      case 1:  // BYTE, SBYTE
      case 6:
        return 1;
      case 3:  // SHORT, SSHORT
      case 8:
        return 2;
      case 4:  // LONG, SLONG, IFD
      case 9:
      case 13:
        return 4;
      case 16:  // LONG8, SLONG8, IFD8
      case 17:
      case 18:
        return 8;
      default:
        bad_input("{}: its TIFF header gives a whole number as type {}", what_, type);
    }
  }

  std::int64_t number(std::size_t at, std::size_t size) const {
    if (size == 1) return bytes_.byte(at);
    if (size == 8) return big_ ? bytes_.big64(at) : bytes_.little64(at);
    if (size == 2) return big_ ? bytes_.big16(at) : bytes_.little16(at);
    return big_ ? bytes_.big32(at) : bytes_.little32(at);
  }

  Bytes bytes_;
  const std::string& what_;
  bool big_;
  std::size_t entries_ = 0;
};

// 1 where the EXIF data is damaged: the image is not.
int orientation_in(std::string_view exif) {
  static const std::string nothing;
  try {
    std::int64_t found = exif.size() < 8 ? 1 : Directory(exif, nothing).value(0x112, 1);
    return found >= 1 && found <= 8 ? static_cast<int>(found) : 1;
  } catch (const Error&) {
    return 1;
  }
}

ImageInfo png_header(const Bytes& bytes, std::string_view data) {
  std::int64_t colour_type = bytes.byte(25);
  int channels = colour_type == 3 ? 0 : colour_type == 0 || colour_type == 4 ? 1 : 3;
  ImageInfo info{"PNG", bytes.big32(16), bytes.big32(20), channels, bytes.byte(24) == 16, 1};
  // Chunks before the pixels.
  for (std::size_t at = 33; at + 8 < data.size();) {
    std::string_view kind = data.substr(at + 4, 4);
    auto length = static_cast<std::size_t>(bytes.big32(at));
    if (kind == "IDAT" || kind == "IEND") break;
    if (kind == "eXIf") info.orientation = orientation_in(data.substr(at + 8, length));
    at += length + 12;
  }
  return info;
}

// Walks the segments up to the frame header, which has the size.
ImageInfo jpeg_header(const Bytes& bytes, std::string_view data) {
  int orientation = 1;
  std::size_t at = 2;
  while (true) {
    while (bytes.byte(at) != 0xff) ++at;
    while (bytes.byte(at) == 0xff) ++at;
    std::int64_t marker = bytes.byte(at++);
    bool is_frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (is_frame) {
      int channels = bytes.byte(at + 7) == 1 ? 1 : 3;
      return {"JPEG", bytes.big16(at + 5), bytes.big16(at + 3), channels, false, orientation};
    }
    bool has_no_length = marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    if (has_no_length) continue;
    auto length = static_cast<std::size_t>(std::max<std::int64_t>(2, bytes.big16(at)));
    bool exif = marker == 0xe1 && data.substr(std::min(at + 2, data.size()), 6) == std::string_view("Exif\0\0", 6);
    if (exif && length > 8) orientation = orientation_in(data.substr(at + 8, length - 8));
    at += length;
  }
}

ImageInfo bmp_header(const Bytes& bytes) {
  if (bytes.little32(14) == 12)
    return {"BMP", bytes.little16(18), bytes.little16(20), bytes.little16(24) <= 8 ? 0 : 3, false, 1};
  auto height = static_cast<std::int32_t>(bytes.little32(22));
  // A negative height means top row first.
  int channels = bytes.little16(28) <= 8 ? 0 : 3;
  return {"BMP", bytes.little32(18), std::abs(static_cast<std::int64_t>(height)), channels, false, 1};
}

// "P5", width, height and maximum as text, with comments between.
ImageInfo pnm_header(const Bytes& bytes, const std::string& what) {
  std::int64_t kind = bytes.byte(1) - '0';
  std::size_t at = 2;
  auto number = [&]() -> std::int64_t {
    while (std::isdigit(static_cast<int>(bytes.byte(at))) == 0) {
      bool comment = bytes.byte(at) == '#';
      while (comment && bytes.byte(at) != '\n') ++at;
      ++at;
    }
    std::int64_t value = 0;
    while (at < bytes.size() && std::isdigit(static_cast<int>(bytes.byte(at))) != 0)
      value = std::min(value * 10 + bytes.byte(at++) - '0', std::int64_t{1} << 40);
    return value;
  };
  ImageInfo info;
  info.format = "PNM";
  info.width = number();
  info.height = number();
  bool is_bitmap = kind == 1 || kind == 4;
  std::int64_t most = is_bitmap ? 1 : number();
  info.deep = most > 255;
  if (info.deep && most != 65535) bad_input("{}: has values up to {}; convert it to 8 bits first", what, most);
  info.channels = kind == 3 || kind == 6 ? 3 : 1;
  return info;
}

// A WebP file is a RIFF file of chunks: the simple kinds start with the image, the extended one with its size.
ImageInfo webp_header(const Bytes& bytes, std::string_view data, const std::string& what) {
  ImageInfo info;
  info.format = "WebP";
  info.channels = 3;
  info.least_bytes = static_cast<std::uint64_t>(bytes.little32(4)) + 8;
  std::string_view kind = data.substr(std::min<std::size_t>(12, data.size()), 4);
  if (kind == "VP8 ") {
    info.width = bytes.little16(26) & 0x3fff;
    info.height = bytes.little16(28) & 0x3fff;
  } else if (kind == "VP8L") {
    std::int64_t bits = bytes.little32(21);
    info.width = (bits & 0x3fff) + 1;
    info.height = (bits >> 14 & 0x3fff) + 1;
  } else if (kind == "VP8X") {
    if ((bytes.byte(20) & 2) != 0) bad_input("{}: is a moving WebP picture; one still image is needed", what);
    info.width = (bytes.little16(24) | bytes.byte(26) << 16) + 1;
    info.height = (bytes.little16(27) | bytes.byte(29) << 16) + 1;
    // EXIF comes after the pixels.
    for (std::size_t at = 12; at + 8 <= data.size();) {
      auto length = static_cast<std::size_t>(bytes.little32(at + 4));
      if (data.substr(at, 4) == "EXIF") {
        std::string_view exif = data.substr(at + 8, length);
        if (starts_with(exif, "Exif")) exif.remove_prefix(std::min<std::size_t>(6, exif.size()));
        info.orientation = orientation_in(exif);
      }
      at += 8 + length + length % 2;
    }
  } else {
    bad_input("{}: is not a PNG, JPEG, WebP, TIFF, BMP or PNM image", what);
  }
  return info;
}

ImageInfo tiff_header(std::string_view data, const std::string& what) {
  Directory directory(data, what);
  ImageInfo info;
  info.format = "TIFF";
  info.width = directory.value(256, 0);
  info.height = directory.value(257, 0);
  std::int64_t bits = directory.value(258, 1);
  if (bits > 16) bad_input("{}: has {} bits a sample; only 8 and 16 are read", what, bits);
  info.deep = bits == 16;
  std::int64_t colours = directory.value(262, 0);  // 0 and 1 are gray, 3 is a palette
  info.channels = colours <= 1 ? 1 : colours == 3 ? 0 : 3;
  return info;
}

std::string read_tail(const std::filesystem::path& path, std::uint64_t size) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t from = size > kTail ? size - kTail : 0;
  file.seekg(static_cast<std::streamoff>(from));
  std::string tail(static_cast<std::size_t>(size - from), '\0');
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  return tail;
}

}  // namespace

ImageInfo read_image_header(std::string_view data, const std::string& what) {
  Bytes bytes(data, what);
  ImageInfo info;
  if (data.empty()) bad_input("{}: is empty", what);
  if (starts_with(data, "\x89PNG\r\n\x1a\n")) {
    info = png_header(bytes, data);
  } else if (starts_with(data, "\xff\xd8\xff")) {
    info = jpeg_header(bytes, data);
  } else if (starts_with(data, "BM")) {
    info = bmp_header(bytes);
  } else if (data.size() > 2 && data[0] == 'P' && data[1] >= '1' && data[1] <= '6') {
    info = pnm_header(bytes, what);
  } else if (starts_with(data, "RIFF") && data.size() > 12 && data.substr(8, 4) == "WEBP") {
    info = webp_header(bytes, data, what);
  } else if (starts_with(data, std::string_view("II*\0", 4)) || starts_with(data, std::string_view("MM\0*", 4))) {
    info = tiff_header(data, what);
  } else {
    bad_input("{}: is not a PNG, JPEG, WebP, TIFF, BMP or PNM image", what);
  }
  if (info.width < 1 || info.height < 1) bad_input("{}: its header says it has no pixels", what);
  if (info.width > kMaxPixels || info.height > kMaxPixels || info.width * info.height > kMaxPixels)
    bad_input("{}: its header says {}x{} pixels, more than the {} million accepted", what, info.width, info.height,
              kMaxPixels >> 20);
  return info;
}

bool ends_whole(const ImageInfo& info, std::string_view tail, std::uint64_t size) {
  // A decoder fills what is missing with gray; a picture cut short should not pass for a whole one.
  if (info.format == "JPEG") return tail.rfind("\xff\xd9") != std::string_view::npos;
  if (info.format == "PNG") return tail.rfind("IEND") != std::string_view::npos;
  return size >= info.least_bytes;
}

ImageInfo look_at_image(const std::filesystem::path& path) {
  std::string what = path.string();
  std::string head = read_head(path, kHead);
  std::uint64_t size = std::filesystem::file_size(path);
  auto whole = [&] {
    if (head.size() < size) head = read_file(path, kMaxImageFile);
  };
  std::optional<ImageInfo> info;
  // WebP has the orientation at its end, TIFF may have all there is to know; a header can be longer than its start.
  bool scattered = starts_with(head, "RIFF") || starts_with(head, "II") || starts_with(head, "MM");
  if (scattered) whole();
  try {
    info = read_image_header(head, what);
  } catch (const Error&) {
    if (head.size() >= size) throw;
    whole();
    info = read_image_header(head, what);
  }
  if (ends_whole(*info, read_tail(path, size), size)) return *info;
  whole();
  if (!ends_whole(*info, head, size)) bad_input("{}: the {} data ends early", what, info->format);
  return *info;
}

}  // namespace galvani
