// Colour statistics and Fourier amplitudes taken from another image.
#include <ATen/ATen.h>

#include <array>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "galvani/base/error.h"
#include "mutate/families.h"
#include "mutate/planes.h"
#include "mutate/tone.h"

namespace galvani::mutate {
namespace {

// A mutator that has images to take a style from.
class StyleTransfer : public ImageMutator {
 public:
  explicit StyleTransfer(const MutationContext& context) : ImageMutator({MutatorGroup::style, false, 2}) {
    if (context.type.kind != SampleKind::image) return;
    if (!context.style_images.defined() || context.style_images.size(0) == 0) return;
    const at::Tensor& images = context.style_images;
    if (images.dim() != 4 || images.scalar_type() != at::kByte) bad_usage("style images must be [N, C, H, W] uint8");
    shape_ = shape_of(images[0]);
    images_ = images.contiguous();
  }

  std::string missing() const override {
    return images_.defined() ? "" : "needs images to take a style from, a folder or a data set";
  }

 protected:
  std::int64_t style_count() const override { return images_.defined() ? images_.size(0) : 0; }
  const ImageShape& style_shape() const { return shape_; }

  // A plane of a style image that stands for channel c of an image with `channels` of them.
  void style_plane(double image, int c, int channels, cv::Mat& result) const {
    const auto* pixels =
        static_cast<const std::uint8_t*>(images_.data_ptr()) + static_cast<std::size_t>(image) * shape_.bytes();
    if (shape_.channels == channels || shape_.channels == 1) {
      result = plane_of(pixels, shape_, shape_.channels == 1 ? 0 : c);
      return;
    }
    // A coloured style for a gray image: its luminance.
    thread_local cv::Mat colour, gray;
    interleave(pixels, shape_, colour);
    cv::cvtColor(colour, gray, cv::COLOR_RGB2GRAY);
    result = gray;
  }

 private:
  at::Tensor images_;
  ImageShape shape_;
};

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments moments_of(const cv::Mat& plane) {
  std::array<std::int64_t, 256> histogram{};
  for (int y = 0; y < plane.rows; ++y) {
    const std::uint8_t* row = plane.ptr(y);
    for (int x = 0; x < plane.cols; ++x) ++histogram[row[x]];
  }
  double n = static_cast<double>(plane.total()), sum = 0, squares = 0;
  for (std::size_t v = 0; v < histogram.size(); ++v) {
    auto value = static_cast<double>(v);
    sum += static_cast<double>(histogram[v]) * value;
    squares += static_cast<double>(histogram[v]) * value * value;
  }
  double mean = sum / n;
  return {mean, std::sqrt(std::max(0.0, squares / n - mean * mean))};
}

// Each channel gets the style's mean and deviation (Reinhard et al. 2001, without their colour space: gray images have
// none).
class ColourTransfer : public StyleTransfer {
 public:
  using StyleTransfer::StyleTransfer;

 private:
  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    double strength = v[1];
    for (int c = 0; c < shape.channels; ++c) {
      cv::Mat style;
      style_plane(v[0], c, shape.channels, style);
      Moments from = moments_of(plane_of(in, shape, c));
      Moments to = moments_of(style);
      double gain = to.deviation / std::max(from.deviation, 1.0);
      std::size_t first = static_cast<std::size_t>(c) * shape.plane();
      map_tones(in + first, out + first, shape.plane(), [&](double value) {
        return (1 - strength) * value + strength * (to.mean + gain * (value - from.mean));
      });
    }
  }
};

// Low frequencies keep their phase and take the style's amplitude (Yang and Soatto 2020).
class FourierTransfer : public StyleTransfer {
 public:
  using StyleTransfer::StyleTransfer;

 private:
  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    double strength = v[1];
    auto reach = static_cast<int>(v[2] * std::min(shape.height, shape.width));
    thread_local cv::Mat sized, values, spectrum, style_spectrum;
    for (int c = 0; c < shape.channels; ++c) {
      cv::Mat style;
      style_plane(v[0], c, shape.channels, style);
      bool fits = style.rows == shape.height && style.cols == shape.width;
      if (!fits) cv::resize(style, sized, {shape.width, shape.height}, 0, 0, cv::INTER_AREA);
      (fits ? style : sized).convertTo(values, CV_32F);
      cv::dft(values, style_spectrum, cv::DFT_COMPLEX_OUTPUT);
      plane_of(in, shape, c).convertTo(values, CV_32F);
      cv::dft(values, spectrum, cv::DFT_COMPLEX_OUTPUT);
      for (int row = 0; row < shape.height; ++row) {
        if (std::min(row, shape.height - row) > reach) continue;
        auto* line = spectrum.ptr<cv::Vec2f>(row);
        const auto* style_line = style_spectrum.ptr<cv::Vec2f>(row);
        for (int column = 0; column < shape.width; ++column) {
          if (std::min(column, shape.width - column) > reach) continue;
          double own = std::hypot(line[column][0], line[column][1]);
          double wanted = std::hypot(style_line[column][0], style_line[column][1]);
          double amplitude = (1 - strength) * own + strength * wanted;
          // What has no phase stays without amplitude: any phase would do, and none is right.
          if (own > 1e-3) line[column] *= static_cast<float>(amplitude / own);
        }
      }
      cv::dft(spectrum, values, cv::DFT_INVERSE | cv::DFT_REAL_OUTPUT | cv::DFT_SCALE);
      cv::Mat result = plane_of(out, shape, c);
      values.convertTo(result, CV_8U);
    }
  }
};

}  // namespace

Made make_colour_transfer(const Options&, const MutationContext& context) {
  return std::make_unique<ColourTransfer>(context);
}
Made make_fourier_transfer(const Options&, const MutationContext& context) {
  return std::make_unique<FourierTransfer>(context);
}

}  // namespace galvani::mutate
