// Images as OpenCV wants them.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>

#include "galvani/mutate/mutator.h"

namespace galvani::mutate {

// One plane, not copied. OpenCV has no read-only matrix: what is made from a const pointer must not be written to.
inline cv::Mat plane_of(const std::uint8_t* image, const ImageShape& shape, int channel) {
  auto* first = const_cast<std::uint8_t*>(image) + static_cast<std::size_t>(channel) * shape.plane();
  return {shape.height, shape.width, CV_8UC1, first};
}

inline void interleave(const std::uint8_t* image, const ImageShape& shape, cv::Mat& result) {
  std::array<cv::Mat, 3> planes;
  for (int c = 0; c < 3; ++c) planes[static_cast<std::size_t>(c)] = plane_of(image, shape, c);
  cv::merge(planes.data(), planes.size(), result);
}

inline void separate(const cv::Mat& image, const ImageShape& shape, std::uint8_t* result) {
  std::array<cv::Mat, 3> planes;
  for (int c = 0; c < 3; ++c) planes[static_cast<std::size_t>(c)] = plane_of(result, shape, c);
  cv::split(image, planes.data());
}

}  // namespace galvani::mutate
