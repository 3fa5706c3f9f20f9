#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "galvani/base/files.h"
#include "galvani/data/image.h"
#include "galvani/generate/examples.h"

namespace galvani {
namespace {

constexpr std::int64_t kMostImages = 40;
constexpr std::int64_t kGroups = 4;  // side by side
constexpr std::int64_t kTileSide = 56;
constexpr std::int64_t kTileGap = 4;
constexpr std::int64_t kGroupGap = 24;
constexpr std::int64_t kHead = 44;
constexpr float kPaperGrey = 247;
constexpr double kStronger = 4;  // differences are shown so many times as strong

// [C, H, W] uint8 → [3, H * factor, W * factor].
at::Tensor enlarged(const at::Tensor& image, std::int64_t factor) {
  at::Tensor colour = image.size(0) == 3 ? image : image.narrow(0, 0, 1).expand({3, -1, -1});
  return colour.repeat_interleave(factor, 1).repeat_interleave(factor, 2);
}

void write_on(at::Tensor& page, const std::string& text, std::int64_t x, std::int64_t y, double scale) {
  for (std::int64_t c = 0; c < 3; ++c) {
    at::Tensor plane = page[c];
    cv::Mat canvas(static_cast<int>(page.size(1)), static_cast<int>(page.size(2)), CV_8UC1,
                   plane.data_ptr<std::uint8_t>());
    cv::putText(canvas, text, {static_cast<int>(x), static_cast<int>(y)}, cv::FONT_HERSHEY_SIMPLEX, scale,
                cv::Scalar(60), 1, cv::LINE_AA);
  }
}

}  // namespace

void write_example_sheet(const at::Tensor& originals, const at::Tensor& transformed, const at::Tensor& examples,
                         const std::string& title, const std::filesystem::path& path) {
  std::int64_t n = std::min(kMostImages, originals.size(0));
  std::int64_t factor = std::max<std::int64_t>(1, kTileSide / std::max(originals.size(2), originals.size(3)));
  std::int64_t height = originals.size(2) * factor, width = originals.size(3) * factor;
  std::int64_t rows = (n + kGroups - 1) / kGroups;
  std::int64_t group = 4 * (width + kTileGap) - kTileGap + kGroupGap;
  at::Tensor page =
      at::full({3, kHead + rows * (height + kTileGap) + kTileGap, kGroupGap + kGroups * group}, kPaperGrey)
          .to(at::kByte)
          .contiguous();
  const at::Tensor difference =
      ((examples.to(at::kFloat) - originals.to(at::kFloat)).abs() * kStronger).clamp(0, 255).to(at::kByte);
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t y = kHead + i / kGroups * (height + kTileGap);
    std::int64_t x = kGroupGap + i % kGroups * group;
    for (const at::Tensor* column : {&originals, &transformed, &examples, &difference}) {
      page.narrow(1, y, height).narrow(2, x, width).copy_(enlarged((*column)[i], factor));
      x += width + kTileGap;
    }
  }
  write_on(page, title, kGroupGap, 16, 0.45);
  for (std::int64_t g = 0; g < std::min(kGroups, n); ++g) {
    std::int64_t x = kGroupGap + g * group;
    for (const char* head : {"original", "there", "and back", "change x4"}) {
      write_on(page, head, x, kHead - 8, 0.34);
      x += width + kTileGap;
    }
  }
  write_file(path, encode_png(page, 9));
}

}  // namespace galvani
