#include "image_file.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "galvani/base/error.h"

namespace galvani {
namespace {

constexpr std::int64_t kMaxPixels = std::int64_t{1} << 27;

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

 private:
  std::string_view data_;
  const std::string& what_;
};

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

ImageInfo png_header(const Bytes& bytes, const std::string& what) {
  if (bytes.byte(24) == 16) bad_input("{}: has 16 bits a sample; convert it to 8 bits first", what);
  std::int64_t colour_type = bytes.byte(25);
  return {"PNG", bytes.big32(16), bytes.big32(20), colour_type == 0 || colour_type == 4};
}

// Walks the segments up to the frame header, which has the size.
ImageInfo jpeg_header(const Bytes& bytes, std::string_view data, const std::string& what) {
  // A decoder fills what is missing with gray; a picture cut short should not pass for a whole one.
  if (data.rfind("\xff\xd9") == std::string_view::npos) bad_input("{}: the JPEG data ends early", what);
  std::size_t at = 2;
  while (true) {
    while (bytes.byte(at) != 0xff) ++at;
    while (bytes.byte(at) == 0xff) ++at;
    std::int64_t marker = bytes.byte(at++);
    bool is_frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (is_frame) return {"JPEG", bytes.big16(at + 5), bytes.big16(at + 3), bytes.byte(at + 7) == 1};
    bool has_no_length = marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    if (!has_no_length) at += static_cast<std::size_t>(std::max<std::int64_t>(2, bytes.big16(at)));
  }
}

ImageInfo bmp_header(const Bytes& bytes) {
  if (bytes.little32(14) == 12) return {"BMP", bytes.little16(18), bytes.little16(20), false};
  auto height = static_cast<std::int32_t>(bytes.little32(22));
  // A negative height means top row first.
  return {"BMP", bytes.little32(18), std::abs(static_cast<std::int64_t>(height)), false};
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
  ImageInfo info{"PNM", number(), number(), false};
  bool is_bitmap = kind == 1 || kind == 4;
  if (!is_bitmap && number() > 255) bad_input("{}: has 16 bits a sample; convert it to 8 bits first", what);
  info.gray = kind != 3 && kind != 6;
  return info;
}

int quiet_depth = 0;
int saved_stderr = -1;
std::mutex quiet_mutex;

}  // namespace

ImageInfo read_image_header(std::string_view data, const std::string& what) {
  Bytes bytes(data, what);
  ImageInfo info;
  if (starts_with(data, "\x89PNG\r\n\x1a\n")) {
    info = png_header(bytes, what);
  } else if (starts_with(data, "\xff\xd8\xff")) {
    info = jpeg_header(bytes, data, what);
  } else if (starts_with(data, "BM")) {
    info = bmp_header(bytes);
  } else if (data.size() > 2 && data[0] == 'P' && data[1] >= '1' && data[1] <= '6') {
    info = pnm_header(bytes, what);
  } else {
    bad_input("{}: is not a PNG, JPEG, BMP or PNM image", what);
  }
  if (info.width < 1 || info.height < 1) bad_input("{}: its header says it has no pixels", what);
  if (info.width > kMaxPixels || info.height > kMaxPixels || info.width * info.height > kMaxPixels)
    bad_input("{}: its header says {}x{} pixels, more than the {} million accepted", what, info.width, info.height,
              kMaxPixels >> 20);
  return info;
}

Image decode_image(std::string_view bytes, const std::string& what) {
  ImageInfo info = read_image_header(bytes, what);
  cv::Mat decoded;
  try {
    cv::Mat raw(1, static_cast<int>(bytes.size()), CV_8UC1, const_cast<char*>(bytes.data()));
    int mode = info.gray ? cv::IMREAD_GRAYSCALE : cv::IMREAD_ANYCOLOR;
    decoded = cv::imdecode(raw, mode | cv::IMREAD_IGNORE_ORIENTATION);
  } catch (const cv::Exception&) {
    decoded.release();
  }
  if (decoded.empty()) bad_input("{}: the {} data is damaged", what, info.format);
  if (decoded.depth() != CV_8U || (decoded.channels() != 1 && decoded.channels() != 3) || decoded.rows != info.height ||
      decoded.cols != info.width)
    bad_input("{}: the {} data does not fit its header", what, info.format);
  Image image{decoded.channels(), decoded.rows, decoded.cols, {}};
  std::size_t plane = decoded.total();
  image.pixels.resize(plane * static_cast<std::size_t>(image.channels));
  std::vector<cv::Mat> planes;
  for (std::int64_t c = 0; c < image.channels; ++c) {
    // OpenCV decodes to BGR.
    std::size_t to = static_cast<std::size_t>(image.channels - 1 - c) * plane;
    planes.emplace_back(decoded.rows, decoded.cols, CV_8UC1, image.pixels.data() + to);
  }
  cv::split(decoded, planes);
  return image;
}

std::string encode_png(const unsigned char* pixels, std::int64_t channels, std::int64_t height, std::int64_t width,
                       int level) {
  std::vector<cv::Mat> planes;
  for (std::int64_t c = channels - 1; c >= 0; --c) {
    auto* plane = const_cast<unsigned char*>(pixels) + c * height * width;
    planes.emplace_back(static_cast<int>(height), static_cast<int>(width), CV_8UC1, plane);
  }
  cv::Mat merged;
  cv::merge(planes, merged);
  std::vector<unsigned char> encoded;
  std::vector<int> settings;
  if (level >= 0) settings = {cv::IMWRITE_PNG_COMPRESSION, level};
  if (!cv::imencode(".png", merged, encoded, settings)) fail(ErrorCode::internal, "an image cannot be encoded as PNG");
  return {encoded.begin(), encoded.end()};
}

std::string encode_png(const at::Tensor& image, int level) {
  at::Tensor bytes = image.contiguous();
  return encode_png(bytes.data_ptr<std::uint8_t>(), bytes.size(0), bytes.size(1), bytes.size(2), level);
}

at::Tensor decode_image_tensor(std::string_view bytes, const std::string& what) {
  Image image = decode_image(bytes, what);
  at::Tensor result = at::empty({image.channels, image.height, image.width}, at::kByte);
  std::memcpy(result.data_ptr<std::uint8_t>(), image.pixels.data(), image.pixels.size());
  return result;
}

bool has_image_extension(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  static const std::vector<std::string> known = {".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm", ".pnm", ".pbm"};
  return std::find(known.begin(), known.end(), extension) != known.end();
}

QuietDecoders::QuietDecoders() {
  std::lock_guard<std::mutex> lock(quiet_mutex);
  if (quiet_depth++ > 0) return;
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  std::fflush(stderr);
  int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  saved_stderr = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (nowhere >= 0 && saved_stderr >= 0) ::dup2(nowhere, STDERR_FILENO);
  if (nowhere >= 0) ::close(nowhere);
}

QuietDecoders::~QuietDecoders() {
  std::lock_guard<std::mutex> lock(quiet_mutex);
  if (--quiet_depth > 0 || saved_stderr < 0) return;
  std::fflush(stderr);
  ::dup2(saved_stderr, STDERR_FILENO);
  ::close(saved_stderr);
  saved_stderr = -1;
}

}  // namespace galvani
