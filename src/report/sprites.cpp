#include "report/sprites.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <opencv2/imgproc.hpp>

#include "galvani/data/image.h"

namespace galvani {
namespace {

constexpr int kSheetRows = kTilesInSheet / kSheetColumns;
constexpr int kCompression = 9;

std::size_t index(int value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

Tile tile_of(std::int64_t height, std::int64_t width) {
  double scale = std::min(1.0, kLongestTile / static_cast<double>(std::max(height, width)));
  auto scaled = [scale](std::int64_t n) {
    return std::max(1, static_cast<int>(std::lround(static_cast<double>(n) * scale)));
  };
  return {scaled(width), scaled(height)};
}

SheetMaker::SheetMaker(Tile tile, std::int64_t channels) : tile_(tile), channels_(channels == 3 ? 3 : 1) {}

std::int64_t SheetMaker::add(const at::Tensor& image) {
  std::size_t at = static_cast<std::size_t>(size_) % kTilesInSheet;
  int sheet_width = tile_.width * kSheetColumns;
  std::size_t sheet_plane = index(sheet_width) * index(tile_.height * kSheetRows);
  if (at == 0) sheet_.assign(index(channels_) * sheet_plane, 0);
  auto left = static_cast<int>(at % kSheetColumns) * tile_.width;
  auto top = static_cast<int>(at / kSheetColumns) * tile_.height;
  at::Tensor planes = image.contiguous();
  for (int c = 0; c < channels_; ++c) {
    cv::Mat from(static_cast<int>(planes.size(1)), static_cast<int>(planes.size(2)), CV_8UC1,
                 planes.data_ptr<std::uint8_t>() + c * planes.size(1) * planes.size(2));
    cv::Mat reduced = from;
    if (from.cols != tile_.width || from.rows != tile_.height)
      cv::resize(from, reduced, {tile_.width, tile_.height}, 0, 0, cv::INTER_AREA);
    for (int y = 0; y < tile_.height; ++y) {
      std::uint8_t* to = sheet_.data() + index(c) * sheet_plane + index(top + y) * index(sheet_width) + index(left);
      std::memcpy(to, reduced.ptr(y), index(tile_.width));
    }
  }
  if (at + 1 == kTilesInSheet) close_sheet();
  return size_++;
}

void SheetMaker::close_sheet() {
  done_.push_back(base64(
      encode_png(sheet_.data(), channels_, tile_.height * kSheetRows, tile_.width * kSheetColumns, kCompression)));
  sheet_.clear();
}

std::vector<std::string> SheetMaker::finish() {
  if (!sheet_.empty()) close_sheet();
  return std::move(done_);
}

std::string base64(std::string_view bytes) {
  static constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  result.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k) three = three << 8 | (k < left ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) result += k <= left ? kDigits[three >> (18 - 6 * k) & 63U] : '=';
  }
  return result;
}

}  // namespace galvani
