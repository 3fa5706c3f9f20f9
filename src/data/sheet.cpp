#include "galvani/data/sheet.h"

#include <algorithm>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/data/picture.h"

namespace galvani {
namespace {

constexpr int kMargin = 28;
constexpr int kGap = 6;
constexpr int kTitleHeight = 54;
constexpr int kTile = 64;  // images are enlarged or reduced to about this
constexpr std::size_t kColumns = 16;
constexpr std::size_t kMaxRows = 100;
constexpr double kFontScale = 0.5;
constexpr double kTitleScale = 0.62;
const cv::Scalar kPaper(250, 248, 247);
const cv::Scalar kInk(60, 50, 45);
const cv::Scalar kFaint(150, 140, 135);

struct Row {
  std::string name;
  std::string detail;
  std::vector<std::int64_t> images;
};

// `most` of them at even distances, so that a sorted set shows its breadth.
std::vector<std::int64_t> spread(const std::vector<std::int64_t>& all, std::size_t most) {
  std::size_t n = std::min(all.size(), most);
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < n; ++i) result.push_back(all[i * all.size() / n]);
  return result;
}

// Pictures of sounds are wide.
std::size_t columns_of(const SampleType& type) {
  return type.kind == SampleKind::image ? kColumns : kColumns / 2;
}

std::vector<Row> arrange(const DataView& data) {
  auto classes = static_cast<std::size_t>(data.classes());
  std::vector<std::vector<std::int64_t>> by_class(classes);
  std::vector<std::int64_t> unlabelled;
  auto labels = data.labels.accessor<std::int64_t, 1>();
  for (std::int64_t i = 0; i < data.size(); ++i) {
    if (labels[i] < 0) {
      unlabelled.push_back(i);
    } else {
      by_class[static_cast<std::size_t>(labels[i])].push_back(i);
    }
  }
  std::vector<Row> rows;
  for (std::size_t c = 0; c < classes && rows.size() < kMaxRows; ++c) {
    if (by_class[c].empty()) continue;
    rows.push_back({printable(data.class_name(static_cast<std::int64_t>(c)), 24),
                    format_count(static_cast<std::int64_t>(by_class[c].size())),
                    spread(by_class[c], columns_of(data.type()))});
  }
  std::size_t columns = columns_of(data.type());
  // Without labels there is one group, which may use several rows.
  std::vector<std::int64_t> shown = spread(unlabelled, columns * (rows.empty() ? 10 : 1));
  for (std::size_t i = 0; i < shown.size(); i += columns) {
    auto first = shown.begin() + static_cast<std::ptrdiff_t>(i);
    auto last = shown.begin() + static_cast<std::ptrdiff_t>(std::min(shown.size(), i + columns));
    bool named = !rows.empty() && i == 0;
    rows.push_back({named ? "unlabelled" : "",
                    named ? format_count(static_cast<std::int64_t>(unlabelled.size())) : "",
                    {first, last}});
  }
  return rows;
}

// Of an image [C, H, W].
cv::Mat tile(const at::Tensor& image, cv::Size size) {
  std::int64_t channels = image.size(0);
  std::vector<cv::Mat> planes;
  for (std::int64_t c = 0; c < 3; ++c) {
    // BGR for OpenCV; one channel stands for all three, and of others the first three are shown.
    std::int64_t from = channels >= 3 ? 2 - c : 0;
    planes.emplace_back(static_cast<int>(image.size(1)), static_cast<int>(image.size(2)), CV_8UC1,
                        image[from].data_ptr<std::uint8_t>());
  }
  cv::Mat merged;
  cv::merge(planes, merged);
  bool enlarge = size.height > image.size(1);
  cv::Mat result;
  cv::resize(merged, result, size, 0, 0, enlarge ? cv::INTER_NEAREST : cv::INTER_AREA);
  return result;
}

// Whole-number enlargement keeps pixels square and equal.
cv::Size tile_size(std::int64_t height, std::int64_t width) {
  auto longest = static_cast<double>(std::max(height, width));
  double scale = kTile / longest;
  if (scale > 1) scale = std::max(1.0, std::floor(scale + 0.25));
  return {std::max(1, static_cast<int>(std::lround(static_cast<double>(width) * scale))),
          std::max(1, static_cast<int>(std::lround(static_cast<double>(height) * scale)))};
}

int text_width(const std::string& text, double scale) {
  int baseline = 0;
  return cv::getTextSize(text, cv::FONT_HERSHEY_SIMPLEX, scale, 1, &baseline).width;
}

void write_text(cv::Mat& page, const std::string& text, cv::Point at, double scale, const cv::Scalar& colour) {
  cv::putText(page, text, at, cv::FONT_HERSHEY_SIMPLEX, scale, colour, 1, cv::LINE_AA);
}

}  // namespace

void write_sheet(const DataView& data, const std::filesystem::path& path) {
  const SampleType& type = data.type();
  bool images_shown = type.kind == SampleKind::image;
  PictureSize picture = picture_size(type);
  std::vector<Row> rows = arrange(data);
  if (rows.empty()) bad_usage("{}: there is nothing to show", data.name);
  cv::Size size = tile_size(picture.height, picture.width);
  // A sound's picture has the size it is meant to be seen in.
  if (!images_shown) size = {static_cast<int>(picture.width), static_cast<int>(picture.height)};
  int label_width = 0;
  std::size_t columns = 0;
  for (const Row& row : rows) {
    label_width = std::max({label_width, text_width(row.name, kFontScale), text_width(row.detail, kFontScale * 0.8)});
    columns = std::max(columns, row.images.size());
  }
  if (label_width > 0) label_width += 2 * kGap + 8;
  std::string shape = images_shown ? fmt::format("{}, {} x {}, {}", counted(data.size(), "image"), picture.width,
                                                 picture.height, type.shape[0] == 1 ? "gray" : "colour")
                                   : fmt::format("{}, {}", counted(data.size(), "clip"), type.shape_text());
  std::string title = printable(data.name, 60);
  int title_width = text_width(title, kTitleScale) + 24 + text_width(shape, kFontScale);
  int grid_width = static_cast<int>(columns) * (size.width + kGap) - kGap;
  int width = 2 * kMargin + std::max(title_width, label_width + grid_width);
  int height = kMargin + kTitleHeight + static_cast<int>(rows.size()) * (size.height + kGap) - kGap + kMargin;
  cv::Mat page(height, width, CV_8UC3, kPaper);
  cv::Point pen(kMargin, kMargin + 18);
  write_text(page, title, pen, kTitleScale, kInk);
  write_text(page, shape, {kMargin + text_width(title, kTitleScale) + 24, pen.y}, kFontScale, kFaint);
  cv::line(page, {kMargin, pen.y + 16}, {width - kMargin, pen.y + 16}, cv::Scalar(225, 220, 216), 1);
  int y = kMargin + kTitleHeight;
  for (const Row& row : rows) {
    int middle = y + size.height / 2;
    write_text(page, row.name, {kMargin, middle - 1}, kFontScale, kInk);
    write_text(page, row.detail, {kMargin, middle + 16}, kFontScale * 0.8, kFaint);
    int x = kMargin + label_width;
    at::Tensor images = data.fetch(row.images);
    for (std::int64_t i = 0; i < images.size(0); ++i) {
      tile(picture_of(images[i], type), size).copyTo(page(cv::Rect({x, y}, size)));
      x += size.width + kGap;
    }
    y += size.height + kGap;
  }
  std::vector<unsigned char> encoded;
  if (!cv::imencode(".png", page, encoded)) fail(ErrorCode::internal, "{}: cannot be encoded", path.string());
  write_file(path, {reinterpret_cast<const char*>(encoded.data()), encoded.size()});
}

}  // namespace galvani
