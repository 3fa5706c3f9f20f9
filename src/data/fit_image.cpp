#include "fit_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <opencv2/imgproc.hpp>

#include "galvani/base/error.h"

namespace galvani {
namespace {

using Resize = Intake::Resize;
constexpr double kMaxScaled = 1 << 27;  // pixels
using Planes = std::vector<cv::Mat>;    // one a channel, CV_8UC1

// EXIF's orientation n: how the stored pixels are turned and mirrored to be upright.
void make_upright(Planes& planes, int orientation) {
  for (cv::Mat& plane : planes) {
    if (orientation >= 5) plane = plane.t();
    switch (orientation) {
      case 2:
      case 6:
        cv::flip(plane, plane, 1);
        break;
      case 3:
      case 7:
        cv::flip(plane, plane, -1);
        break;
      case 4:
      case 8:
        cv::flip(plane, plane, 0);
        break;
      default:
        break;
    }
  }
}

// What the image is scaled to before anything is cut off or added.
cv::Size scaled_size(cv::Size from, const Intake& intake, cv::Size target) {
  double x = static_cast<double>(target.width) / from.width;
  double y = static_cast<double>(target.height) / from.height;
  auto by = [&](double factor) {
    return cv::Size(std::max(1, static_cast<int>(std::lround(from.width * factor))),
                    std::max(1, static_cast<int>(std::lround(from.height * factor))));
  };
  switch (intake.resize) {
    case Resize::exact:
      return target;
    case Resize::pad: {
      cv::Size size = by(std::min(x, y));
      return {std::min(size.width, target.width), std::min(size.height, target.height)};
    }
    case Resize::short_side: {
      // The long side is rounded down, as others do.
      auto side = static_cast<int>(intake.side);
      bool wide = from.width > from.height;
      auto longer =
          static_cast<int>(intake.side * std::max(from.width, from.height) / std::min(from.width, from.height));
      return wide ? cv::Size(longer, side) : cv::Size(side, longer);
    }
    case Resize::automatic:
      if (intake.crop != 0) return from;
      [[fallthrough]];
    case Resize::fit: {
      cv::Size size = by(std::max(x, y));
      return {std::max(size.width, target.width), std::max(size.height, target.height)};
    }
  }
  return target;
}

cv::Mat scaled(const cv::Mat& plane, cv::Size size) {
  if (plane.size() == size) return plane;
  bool smaller = size.width <= plane.cols && size.height <= plane.rows;
  cv::Mat result;
  cv::resize(plane, result, size, 0, 0, smaller ? cv::INTER_AREA : cv::INTER_LINEAR);
  return result;
}

// The centre of `plane`, or `plane` in the centre of black.
cv::Mat centred(const cv::Mat& plane, cv::Size size) {
  if (plane.size() == size) return plane;
  cv::Mat result = cv::Mat::zeros(size, CV_8UC1);
  int width = std::min(size.width, plane.cols);
  int height = std::min(size.height, plane.rows);
  cv::Rect from((plane.cols - width) / 2, (plane.rows - height) / 2, width, height);
  cv::Rect to((size.width - width) / 2, (size.height - height) / 2, width, height);
  plane(from).copyTo(result(to));
  return result;
}

void to_channels(Planes& planes, std::size_t wanted) {
  if (planes.size() == 1 && wanted == 3) planes = {planes[0], planes[0], planes[0]};
  if (planes.size() != 3 || wanted != 1) return;
  cv::Mat colour;
  cv::merge(planes, colour);
  cv::Mat gray;
  cv::cvtColor(colour, gray, cv::COLOR_RGB2GRAY);
  planes = {gray};
}

}  // namespace

std::string Intake::resize_text() const {
  switch (resize) {
    case Resize::automatic:
      return "";
    case Resize::short_side:
      return std::to_string(side);
    case Resize::exact:
      return "exact";
    case Resize::fit:
      return "fit";
    case Resize::pad:
      return "pad";
  }
  return "";
}

std::string Intake::str() const {
  std::string text;
  if (resize == Resize::short_side) text = fmt::format("short side to {}", side);
  if (resize == Resize::exact) text = "stretched to the input";
  if (resize == Resize::fit) text = "short side, then centre crop";
  if (resize == Resize::pad) text = "long side, then black borders";
  if (crop != 0) text += fmt::format("{}centre {}x{}", text.empty() ? "" : ", ", crop, crop);
  return text;
}

void check_intake(const Intake& intake, const std::vector<std::int64_t>& shape) {
  std::int64_t height = shape[1];
  std::int64_t width = shape[2];
  if (intake.crop != 0 && intake.resize != Resize::automatic && intake.resize != Resize::short_side)
    bad_usage("a crop goes with a resize to a number, such as --resize 256 --crop 224, not with '{}'",
              intake.resize_text());
  if (intake.crop != 0 && (intake.crop != height || intake.crop != width))
    bad_usage("a crop of {} gives images of {}x{}, but the model takes {}x{}", intake.crop, intake.crop, intake.crop,
              width, height);
  if (intake.resize == Resize::short_side && intake.side < std::max(height, width))
    bad_usage("a resize to {} gives less than the {}x{} that the model takes; --resize fit goes by the model",
              intake.side, width, height);
}

void fit_image(const Image& image, const Intake& intake, const std::vector<std::int64_t>& shape, std::uint8_t* out,
               const std::string& what) {
  cv::Size target(static_cast<int>(shape[2]), static_cast<int>(shape[1]));
  Planes planes;
  auto plane_size = static_cast<std::size_t>(image.height * image.width);
  for (std::int64_t c = 0; c < image.channels; ++c) {
    auto* pixels = const_cast<char*>(image.pixels.data()) + static_cast<std::size_t>(c) * plane_size;
    planes.emplace_back(static_cast<int>(image.height), static_cast<int>(image.width), CV_8UC1, pixels);
  }
  bool sized = planes[0].size() == target;
  // Nothing was asked for, so what already has the size is taken as it is stored.
  bool upright = image.orientation == 1 || (sized && !intake.stated());
  if (!upright) {
    // Pixels that belong to the caller are not turned in place.
    for (cv::Mat& plane : planes) plane = plane.clone();
    make_upright(planes, image.orientation);
  }
  if (planes[0].size() != target) {
    int shorter = std::min(planes[0].cols, planes[0].rows);
    int longer = std::max(planes[0].cols, planes[0].rows);
    double side = static_cast<double>(std::max({std::int64_t{target.width}, std::int64_t{target.height}, intake.side}));
    if (side * side * longer / shorter > kMaxScaled)
      bad_input("{}: is {}x{}, too narrow to be resized", what, planes[0].cols, planes[0].rows);
    cv::Size size = scaled_size(planes[0].size(), intake, target);
    bool too_small = size.width < target.width || size.height < target.height;
    if (too_small && intake.resize != Resize::pad)
      bad_input("{}: is {}x{}, too small to cut {}x{} out of it; --resize makes it larger", what, planes[0].cols,
                planes[0].rows, target.width, target.height);
    for (cv::Mat& plane : planes) plane = centred(scaled(plane, size), target);
  }
  to_channels(planes, static_cast<std::size_t>(shape[0]));
  std::size_t bytes = static_cast<std::size_t>(target.width) * static_cast<std::size_t>(target.height);
  for (std::size_t c = 0; c < planes.size(); ++c)
    std::memcpy(out + c * bytes, (planes[c].isContinuous() ? planes[c] : planes[c].clone()).data, bytes);
}

}  // namespace galvani
