#include "galvani/mutate/sheet.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/data/picture.h"
#include "galvani/data/snr.h"
#include "mutate/planes.h"

namespace galvani {
namespace {

constexpr int kMargin = 28;
constexpr int kGap = 10;
constexpr int kCaption = 34;  // two lines below a tile
constexpr int kTitle = 56;
constexpr int kTile = 84;
constexpr double kNameScale = 0.5;
constexpr double kCaptionScale = 0.36;
const cv::Scalar kPaper(250, 248, 247);
const cv::Scalar kInk(60, 50, 45);
const cv::Scalar kFaint(125, 115, 110);
const cv::Scalar kLine(225, 220, 216);
const cv::Scalar kRefused(80, 80, 220);

int text_width(const std::string& text, double scale) {
  int baseline = 0;
  return cv::getTextSize(text, cv::FONT_HERSHEY_SIMPLEX, scale, 1, &baseline).width;
}

void write_text(cv::Mat& page, const std::string& text, cv::Point at, double scale, const cv::Scalar& colour) {
  cv::putText(page, text, at, cv::FONT_HERSHEY_SIMPLEX, scale, colour, 1, cv::LINE_AA);
}

// The values of a rule, without the seed: "gaussian 5".
std::string caption(const Mutator& mutator, const Rule& rule) {
  std::string result;
  for (const auto& [key, value] : Spec::parse(mutator.text(rule)).settings) {
    if (key == "seed" || key == "model") continue;
    result += (result.empty() ? "" : " ") + (key == "image" ? "#" + value : value);
  }
  return result.empty() ? rule_value_text(mutator.parameters().front(), rule.values.front()) : result;
}

void write_caption(cv::Mat& page, const std::string& text, cv::Point at, int width, const cv::Scalar& colour) {
  std::string first = text, second;
  if (text_width(text, kCaptionScale) > width) {
    std::size_t space = text.find(' ');
    first = text.substr(0, space);
    second = space == std::string::npos ? "" : text.substr(space + 1);
  }
  write_text(page, first, at, kCaptionScale, colour);
  write_text(page, second, {at.x, at.y + 13}, kCaptionScale, colour);
}

cv::Mat tile(const at::Tensor& image, cv::Size size) {
  at::Tensor pixels = image.contiguous();
  ImageShape shape = shape_of(pixels);
  cv::Mat colour, result;
  if (shape.channels == 3) {
    mutate::interleave(pixels.data_ptr<std::uint8_t>(), shape, colour);
    cv::cvtColor(colour, colour, cv::COLOR_RGB2BGR);
  } else {
    cv::cvtColor(mutate::plane_of(pixels.data_ptr<std::uint8_t>(), shape, 0), colour, cv::COLOR_GRAY2BGR);
  }
  cv::resize(colour, result, size, 0, 0, size.height > shape.height ? cv::INTER_NEAREST : cv::INTER_AREA);
  return result;
}

// Whole-number enlargement keeps pixels square and equal.
cv::Size tile_size(const Dataset& data) {
  PictureSize size = picture_size(data.type());
  if (data.type().kind == SampleKind::audio) return {static_cast<int>(size.width), static_cast<int>(size.height)};
  auto longest = static_cast<double>(std::max(size.height, size.width));
  double scale = kTile / longest;
  if (scale > 1) scale = std::max(1.0, std::round(scale));
  return {std::max(1, static_cast<int>(std::lround(static_cast<double>(size.width) * scale))),
          std::max(1, static_cast<int>(std::lround(static_cast<double>(size.height) * scale)))};
}

// As the engine would decide: an affine step takes the reference along.
bool holds(const Mutator& mutator, const Rule& rule, const at::Tensor& image, const at::Tensor& mutant) {
  if (mutator.affine()) {
    SampleType type = SampleType::of(image.sizes().vec(), 0);
    return leaves_enough(mutator, rule, type, image.data_ptr(), mutant.data_ptr());
  }
  if (mutator.kind() == SampleKind::audio)
    return signal_to_noise(image.data_ptr<std::int16_t>(), mutant.data_ptr<std::int16_t>(),
                           static_cast<std::size_t>(image.numel())) >= Validity().snr;
  ImageShape shape = shape_of(image);
  const auto* before = static_cast<const std::uint8_t*>(image.data_ptr());
  const auto* after = static_cast<const std::uint8_t*>(mutant.data_ptr());
  return is_valid({}, measure_change(shape, before, after), count_non_zero(shape, before));
}

}  // namespace

std::vector<SheetRow> arrange_mutants(const MutatorSet& set, const Dataset& data, std::size_t columns, Rng rng) {
  if (data.size() == 0) bad_usage("{}: there is nothing to mutate", data.name);
  std::vector<SheetRow> rows;
  for (const Family& family : set.families()) {
    SheetRow row;
    row.image = static_cast<std::int64_t>(rows.size()) % data.size();
    row.mutator = family.mutator->name();
    Rng own = rng.derive(rows.size());
    row.rules = family.examples(columns, own);
    at::Tensor image = data.images[row.image].contiguous();
    for (const Rule& rule : row.rules) row.valid.push_back(holds(*family.mutator, rule, image, set.apply(rule, image)));
    rows.push_back(std::move(row));
  }
  return rows;
}

void write_mutant_sheet(const MutatorSet& set, const Dataset& data, const std::vector<SheetRow>& rows,
                        const std::filesystem::path& path) {
  cv::Size size = tile_size(data);
  int label_width = 0;
  std::size_t columns = 0;
  bool refused = false;
  for (const SheetRow& row : rows) {
    label_width = std::max(label_width, text_width(row.mutator, kNameScale));
    columns = std::max(columns, row.rules.size());
    refused = refused || std::find(row.valid.begin(), row.valid.end(), false) != row.valid.end();
  }
  label_width += 20;
  int step = std::max(size.width, 60) + kGap;
  int row_height = std::max(size.height + kCaption, 48);
  std::string title = "mutators: " + printable(set.spec(), 60);
  std::string source = printable(data.name, 60);
  std::string note = refused ? "framed: too far from the original to be valid" : "";
  int grid_width = label_width + step + kGap + static_cast<int>(columns) * step;
  int title_width = text_width(title, 0.62) + 24 + text_width(source, kNameScale);
  int width = 2 * kMargin + std::max({grid_width, title_width + 24 + text_width(note, 0.42)});
  int height = 2 * kMargin + kTitle + static_cast<int>(rows.size()) * (row_height + kGap / 2);
  constexpr int kMostRows = 30000;  // of pixels; PNG writers stop somewhere above
  if (height > kMostRows) bad_usage("{} mutators of that size do not fit one sheet", rows.size());
  cv::Mat page(height, width, CV_8UC3, kPaper);
  int pen = kMargin + 18;
  write_text(page, title, {kMargin, pen}, 0.62, kInk);
  write_text(page, source, {kMargin + text_width(title, 0.62) + 24, pen}, kNameScale, kFaint);
  write_text(page, note, {width - kMargin - text_width(note, 0.42), pen}, 0.42, kRefused);
  cv::line(page, {kMargin, pen + 16}, {width - kMargin, pen + 16}, kLine, 1);
  int y = kMargin + kTitle;
  for (const SheetRow& row : rows) {
    write_text(page, row.mutator, {kMargin, y + size.height / 2 + 5}, kNameScale, kInk);
    int x = kMargin + label_width;
    at::Tensor image = data.images[row.image];
    tile(picture_of(image, data.type()), size).copyTo(page(cv::Rect({x, y}, size)));
    write_caption(page, "original", {x, y + size.height + 14}, size.width, kFaint);
    x += step + kGap;
    for (std::size_t i = 0; i < row.rules.size(); ++i, x += step) {
      tile(picture_of(set.apply(row.rules[i], image), data.type()), size).copyTo(page(cv::Rect({x, y}, size)));
      if (!row.valid[i]) cv::rectangle(page, {x - 2, y - 2}, {x + size.width + 1, y + size.height + 1}, kRefused, 2);
      write_caption(page, caption(set.mutator(row.rules[i]), row.rules[i]), {x, y + size.height + 14}, step - 4,
                    row.valid[i] ? kFaint : kRefused);
    }
    y += row_height + kGap / 2;
  }
  std::vector<unsigned char> encoded;
  // Enlarged pixels repeat, which the encoder's usual strategy does not look for.
  const std::vector<int> small = {cv::IMWRITE_PNG_COMPRESSION, 9, cv::IMWRITE_PNG_STRATEGY,
                                  cv::IMWRITE_PNG_STRATEGY_DEFAULT};
  if (!cv::imencode(".png", page, encoded, small)) fail(ErrorCode::internal, "{}: cannot be encoded", path.string());
  write_file(path, {reinterpret_cast<const char*>(encoded.data()), encoded.size()});
}

}  // namespace galvani
