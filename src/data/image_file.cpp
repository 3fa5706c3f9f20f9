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

int quiet_depth = 0;
int saved_stderr = -1;
std::mutex quiet_mutex;

}  // namespace

Image decode_image(std::string_view bytes, const std::string& what) {
  ImageInfo info = read_image_header(bytes, what);
  if (!ends_whole(info, bytes, bytes.size())) bad_input("{}: the {} data ends early", what, info.format);
  cv::Mat decoded;
  try {
    cv::Mat raw(1, static_cast<int>(bytes.size()), CV_8UC1, const_cast<char*>(bytes.data()));
    int mode = info.channels == 1 ? cv::IMREAD_GRAYSCALE : cv::IMREAD_ANYCOLOR;
    if (info.deep) mode |= cv::IMREAD_ANYDEPTH;
    decoded = cv::imdecode(raw, mode | cv::IMREAD_IGNORE_ORIENTATION);
    if (decoded.depth() == CV_16U) decoded.convertTo(decoded, CV_8U, 1.0 / 257);
  } catch (const cv::Exception&) {
    decoded.release();
  }
  if (decoded.empty()) bad_input("{}: the {} data is damaged", what, info.format);
  bool as_stated = decoded.rows == info.height && decoded.cols == info.width;
  // The decoder of TIFF turns images by itself.
  bool turned = info.format == "TIFF" && decoded.rows == info.width && decoded.cols == info.height;
  if (decoded.depth() != CV_8U || (decoded.channels() != 1 && decoded.channels() != 3) || !(as_stated || turned))
    bad_input("{}: the {} data does not fit its header", what, info.format);
  Image image{decoded.channels(), decoded.rows, decoded.cols, info.orientation, {}};
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
  static const std::vector<std::string> known = {".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm",
                                                 ".pnm", ".pbm", ".webp", ".tif", ".tiff"};
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
