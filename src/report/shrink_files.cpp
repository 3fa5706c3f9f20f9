#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "galvani/base/error.h"
#include "galvani/base/output_file.h"
#include "galvani/base/text.h"
#include "galvani/data/image.h"
#include "galvani/data/picture.h"
#include "galvani/report/shrink.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostRows = 24;
constexpr int kTile = 84;
constexpr int kMargin = 24;
constexpr int kGap = 8;
constexpr int kTextWidth = 420;
constexpr double kScale = 0.42;
const cv::Scalar kPaper(250, 248, 247);
const cv::Scalar kInk(60, 50, 45);
const cv::Scalar kSoft(125, 115, 110);

cv::Mat tile(const at::Tensor& image, cv::Size size) {
  at::Tensor planes = image.contiguous();
  std::vector<cv::Mat> bgr;
  for (std::int64_t c = 0; c < 3; ++c) {
    std::int64_t from = planes.size(0) == 3 ? 2 - c : 0;
    bgr.emplace_back(static_cast<int>(planes.size(1)), static_cast<int>(planes.size(2)), CV_8UC1,
                     planes.data_ptr<std::uint8_t>() + from * planes.size(1) * planes.size(2));
  }
  cv::Mat merged, result;
  cv::merge(bgr, merged);
  cv::resize(merged, result, size, 0, 0, size.height > merged.rows ? cv::INTER_NEAREST : cv::INTER_AREA);
  return result;
}

// What is left of the change, lifted so that small ones can be seen; white where nothing changed.
at::Tensor picture_of_change(const at::Tensor& seed, const at::Tensor& image, const SampleType& type) {
  if (type.kind == SampleKind::audio) {
    at::Tensor change = image.to(at::kInt) - seed.to(at::kInt);
    return picture_of(change.clamp(type.low(), type.high()).to(type.dtype()), type);
  }
  at::Tensor size = (image.to(at::kFloat) - seed.to(at::kFloat)).abs().amax(0) / 255;
  return ((1 - size.pow(0.6)) * 255).round().to(at::kByte).unsqueeze(0).contiguous();
}

void write_text(cv::Mat& page, const std::string& text, cv::Point at, const cv::Scalar& colour) {
  // The font knows ASCII alone.
  std::string plain;
  for (char c : printable(text, 66)) plain += static_cast<unsigned char>(c) < 0x80 ? c : '?';
  cv::putText(page, plain, at, cv::FONT_HERSHEY_SIMPLEX, kScale, colour, 1, cv::LINE_AA);
}

std::string sheet_png(const CampaignReader& reader, const std::vector<ShrunkFault>& faults) {
  std::size_t rows = std::min(kMostRows, faults.size());
  const SampleType type = reader.type();
  PictureSize picture_is = picture_size(type);
  double scale = kTile / static_cast<double>(std::max(picture_is.height, picture_is.width));
  if (scale > 1 || type.kind == SampleKind::audio) scale = std::max(1.0, std::floor(scale));
  cv::Size size(std::max(1, static_cast<int>(static_cast<double>(picture_is.width) * scale)),
                std::max(1, static_cast<int>(static_cast<double>(picture_is.height) * scale)));
  int height = 2 * kMargin + 20 + static_cast<int>(rows) * (size.height + kGap);
  cv::Mat page(height, 2 * kMargin + 4 * (size.width + kGap) + kTextWidth, CV_8UC3, kPaper);
  const char* titles[] = {"original", "fault", "minimised", "change"};
  for (int i = 0; i < 4; ++i) write_text(page, titles[i], {kMargin + i * (size.width + kGap), kMargin + 8}, kSoft);
  int y = kMargin + 20;
  for (std::size_t i = 0; i < rows; ++i) {
    const ShrunkFault& f = faults[i];
    const at::Tensor pictures[] = {picture_of(f.seed, type), picture_of(f.original, type), picture_of(f.image, type),
                                   picture_of_change(f.seed, f.image, type)};
    int x = kMargin;
    for (const at::Tensor& picture : pictures) {
      cv::Rect place({x, y}, size);
      tile(picture, size).copyTo(page(place));
      cv::rectangle(page, place, cv::Scalar(225, 220, 216), 1);
      x += size.width + kGap;
    }
    auto rules = [](const std::vector<std::string>& all) { return fmt::format("{}", fmt::join(all, ", ")); };
    write_text(page,
               fmt::format("{}: {} -> {} ({:.0f}%)", f.fault.id, reader.class_name(f.fault.label),
                           reader.class_name(f.predicted), f.confidence * 100),
               {x + 4, y + 16}, kInk);
    write_text(page, fmt::format("{} -> {} steps: {}", f.rules_before.size(), f.rules.size(), rules(f.rules)),
               {x + 4, y + 36}, kSoft);
    write_text(page,
               fmt::format("{} -> {} {}, at most {} -> {}", f.before.pixels, f.after.pixels,
                           type.kind == SampleKind::image ? "pixels" : "samples", f.before.largest, f.after.largest),
               {x + 4, y + 56}, kSoft);
    y += size.height + kGap;
  }
  std::vector<cv::Mat> bgr;
  cv::split(page, bgr);
  std::vector<std::uint8_t> planes;
  for (int c : {2, 1, 0})
    planes.insert(planes.end(), bgr[static_cast<std::size_t>(c)].datastart, bgr[static_cast<std::size_t>(c)].dataend);
  return encode_png(planes.data(), 3, page.rows, page.cols);
}

}  // namespace

void write_shrunk(const fs::path& folder, const CampaignReader& reader, const std::vector<ShrunkFault>& faults) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(ErrorCode::environment, "{}: cannot be made: {}", folder.string(), error.message());
  std::string csv =
      "file,fault,true,predicted,minimised_predicted,confidence,steps,minimised_steps,pixels,minimised_pixels,largest,"
      "minimised_largest,rules,minimised_rules\n";
  const SampleType type = reader.type();
  for (const ShrunkFault& f : faults) {
    std::string name = fault_name(f.fault.id, f.fault.label, f.predicted, type);
    write_over(folder / name, type.encode(f.image));
    csv += fmt::format("{},{},{},{},{},{:.6f},{},{},{},{},{},{},{},{}\n", name, f.fault.id, f.fault.label,
                       f.fault.predicted, f.predicted, f.confidence, f.rules_before.size(), f.rules.size(),
                       f.before.pixels, f.after.pixels, f.before.largest, f.after.largest,
                       csv_cell(fmt::format("{}", fmt::join(f.rules_before, " "))),
                       csv_cell(fmt::format("{}", fmt::join(f.rules, " "))));
  }
  write_over(folder / "minimised.csv", csv);
  if (!faults.empty()) write_over(folder / "sheet.png", sheet_png(reader, faults));
}

}  // namespace galvani
