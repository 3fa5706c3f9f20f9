#include "quality/pictures.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"

namespace galvani {
namespace {

// Row by row, then down the columns, in floating point.
void blur_plane(const std::uint8_t* in, std::uint8_t* out, std::int64_t height, std::int64_t width,
                const std::vector<double>& weights) {
  auto reach = static_cast<std::int64_t>(weights.size() / 2);
  std::vector<double> across(static_cast<std::size_t>(height * width));
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      double sum = 0;
      for (std::int64_t i = -reach; i <= reach; ++i)
        sum += weights[static_cast<std::size_t>(i + reach)] *
               in[y * width + std::clamp<std::int64_t>(x + i, 0, width - 1)];
      across[static_cast<std::size_t>(y * width + x)] = sum;
    }
  }
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      double sum = 0;
      for (std::int64_t i = -reach; i <= reach; ++i)
        sum += weights[static_cast<std::size_t>(i + reach)] *
               across[static_cast<std::size_t>(std::clamp<std::int64_t>(y + i, 0, height - 1) * width + x)];
      out[y * width + x] = static_cast<std::uint8_t>(std::clamp(std::lround(sum), 0L, 255L));
    }
  }
}

void compress_image(std::uint8_t* image, std::int64_t channels, std::int64_t height, std::int64_t width, int quality) {
  std::vector<cv::Mat> planes;
  // OpenCV wants blue first.
  for (std::int64_t c = channels - 1; c >= 0; --c)
    planes.emplace_back(static_cast<int>(height), static_cast<int>(width), CV_8UC1, image + c * height * width);
  cv::Mat joined;
  cv::merge(planes, joined);
  std::vector<unsigned char> file;
  bool good = cv::imencode(".jpg", joined, file, {cv::IMWRITE_JPEG_QUALITY, quality});
  cv::Mat read = good ? cv::imdecode(file, channels == 1 ? cv::IMREAD_GRAYSCALE : cv::IMREAD_COLOR) : cv::Mat();
  if (read.size() != joined.size() || read.type() != joined.type())
    fail(ErrorCode::environment, "OpenCV cannot compress an image of {}x{} as JPEG", width, height);
  cv::split(read, planes);
}

// of(first value, channels, height, width) for every image, in place.
template <class Of>
at::Tensor each_image(const at::Tensor& images, const Of& of) {
  at::Tensor result = images.clone(at::MemoryFormat::Contiguous);
  std::int64_t channels = images.size(1), height = images.size(2), width = images.size(3);
  workers().run(images.size(0), [&](std::int64_t i, int) {
    of(result.data_ptr<std::uint8_t>() + i * channels * height * width, channels, height, width);
  });
  return result;
}

}  // namespace

at::Tensor blurred(const at::Tensor& images, double deviation) {
  auto reach = static_cast<std::int64_t>(std::ceil(4 * deviation));
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t i = -reach; i <= reach; ++i) {
    auto distance = static_cast<double>(i);
    weights.push_back(std::exp(-distance * distance / (2 * deviation * deviation)));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return each_image(images, [&](std::uint8_t* image, std::int64_t channels, std::int64_t height, std::int64_t width) {
    std::vector<std::uint8_t> plane(static_cast<std::size_t>(height * width));
    for (std::int64_t c = 0; c < channels; ++c) {
      std::uint8_t* first = image + c * height * width;
      blur_plane(first, plane.data(), height, width, weights);
      std::copy(plane.begin(), plane.end(), first);
    }
  });
}

at::Tensor compressed(const at::Tensor& images, std::int64_t quality) {
  return each_image(images, [&](std::uint8_t* image, std::int64_t channels, std::int64_t height, std::int64_t width) {
    compress_image(image, channels, height, width, static_cast<int>(quality));
  });
}

}  // namespace galvani
