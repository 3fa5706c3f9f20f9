#include "semantics/concepts/planes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

namespace galvani {
namespace {

cv::Mat blurred(const cv::Mat& plane, double sigma) {
  cv::Mat result;
  cv::GaussianBlur(plane, result, cv::Size(), sigma, sigma, cv::BORDER_REPLICATE);
  return result;
}

// Central difference.
cv::Mat slope(const cv::Mat& plane, bool along_x) {
  cv::Mat result;
  cv::Mat kernel = along_x ? (cv::Mat_<float>(1, 3) << -0.5F, 0, 0.5F) : (cv::Mat_<float>(3, 1) << -0.5F, 0, 0.5F);
  cv::filter2D(plane, result, CV_32F, kernel, cv::Point(-1, -1), 0, cv::BORDER_REPLICATE);
  return result;
}

std::vector<float> numbers(const cv::Mat& plane) {
  cv::Mat whole = plane.isContinuous() ? plane : plane.clone();
  return {whole.ptr<float>(), whole.ptr<float>() + whole.total()};
}

cv::Mat channel(const at::Tensor& pixels, std::int64_t c, const Grid& grid) {
  at::Tensor plane = pixels[c].contiguous();
  cv::Mat all(static_cast<int>(plane.size(0)), static_cast<int>(plane.size(1)), CV_8U, plane.data_ptr());
  cv::Mat scaled;
  all.convertTo(scaled, CV_32F, 1.0 / 255);
  if (scaled.rows == grid.height && scaled.cols == grid.width) return scaled;
  cv::Mat small;
  cv::resize(scaled, small, cv::Size(static_cast<int>(grid.width), static_cast<int>(grid.height)), 0, 0,
             cv::INTER_AREA);
  return small;
}

// The root of the energy of a band, averaged around each position.
cv::Mat energy(const cv::Mat& band, double around) {
  cv::Mat result;
  cv::sqrt(cv::max(blurred(band.mul(band), around), 0), result);
  return result;
}

void set_curvature(const cv::Mat& light, double sigma, std::vector<float>& xx, std::vector<float>& xy,
                   std::vector<float>& yy) {
  cv::Mat smooth = blurred(light, sigma);
  cv::Mat x = slope(smooth, true);
  cv::Mat y = slope(smooth, false);
  xx = numbers(slope(x, true));
  xy = numbers(slope(x, false));
  yy = numbers(slope(y, false));
}

}  // namespace

Grid Grid::of(std::int64_t image_height, std::int64_t image_width) {
  std::int64_t longest = std::max(image_height, image_width);
  if (longest <= kLongestSide) return {image_height, image_width};
  auto side = [&](std::int64_t n) {
    return std::max<std::int64_t>(1,
                                  std::llround(static_cast<double>(n) * kLongestSide / static_cast<double>(longest)));
  };
  return {side(image_height), side(image_width)};
}

Planes make_planes(const at::Tensor& image, const Grid& grid) {
  Planes planes;
  planes.grid = grid;
  planes.colour = image.size(0) == 3;
  std::vector<cv::Mat> channels;
  for (std::int64_t c = 0; c < image.size(0); ++c) channels.push_back(channel(image, c, grid));
  cv::Mat light;
  if (planes.colour) {
    planes.red = numbers(channels[0]);
    planes.green = numbers(channels[1]);
    planes.blue = numbers(channels[2]);
    light = channels[0] * 0.299 + channels[1] * 0.587 + channels[2] * 0.114;
  } else {
    light = channels[0].clone();
    for (std::size_t c = 1; c < channels.size(); ++c) light += channels[c];
    light /= static_cast<double>(channels.size());
  }
  planes.light = numbers(light);
  cv::Mat smooth = blurred(light, 1);
  cv::Mat x = slope(smooth, true);
  cv::Mat y = slope(smooth, false);
  planes.gradient_x = numbers(x);
  planes.gradient_y = numbers(y);
  cv::Mat length;
  cv::sqrt(x.mul(x) + y.mul(y), length);
  planes.change = numbers(blurred(length, 2));
  set_curvature(light, 1.5, planes.curve_xx, planes.curve_xy, planes.curve_yy);
  set_curvature(light, 3, planes.wide_xx, planes.wide_xy, planes.wide_yy);
  cv::Mat a = blurred(x.mul(x), 1.5);
  cv::Mat b = blurred(x.mul(y), 1.5);
  cv::Mat c = blurred(y.mul(y), 1.5);
  constexpr double kHarris = 0.05;
  cv::Mat trace = a + c;
  cv::Mat harris = a.mul(c) - b.mul(b) - trace.mul(trace) * kHarris;
  planes.corner = numbers(harris);
  planes.fine = numbers(energy(light - smooth, 2));
  planes.coarse = numbers(energy(smooth - blurred(light, 4), 4));
  return planes;
}

}  // namespace galvani
