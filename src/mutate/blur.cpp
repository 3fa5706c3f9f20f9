#include <fmt/format.h>

#include <array>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "mutate/families.h"
#include "mutate/planes.h"

namespace galvani::mutate {
namespace {

enum BlurKind { box_blur, gaussian_blur, median_blur, bilateral_blur };

// Mirrored at the border (the median repeats the border), as OpenCV does by default.
class Blur : public ImageMutator {
 public:
  Blur() : ImageMutator({MutatorGroup::non_differentiable, false, 2}) {}

 private:
  std::string objection(const double* v) const override {
    auto size = static_cast<int>(v[1]);
    bool odd_wanted = v[0] == gaussian_blur || v[0] == median_blur;
    if (odd_wanted && size % 2 == 0)
      return fmt::format("a {} blur has an odd size, not {}", v[0] == median_blur ? "median" : "gaussian", size);
    return "";
  }

  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    auto size = static_cast<int>(v[1]);
    if (v[0] == bilateral_blur && shape.channels == 3) {
      // Colours are compared as a whole, so the planes must come together.
      thread_local cv::Mat colour, filtered;
      interleave(in, shape, colour);
      cv::bilateralFilter(colour, filtered, size, v[2], v[2]);
      separate(filtered, shape, out);
      return;
    }
    for (int c = 0; c < shape.channels; ++c) {
      cv::Mat from = plane_of(in, shape, c);
      cv::Mat to = plane_of(out, shape, c);
      if (v[0] == box_blur) cv::blur(from, to, {size, size});
      if (v[0] == gaussian_blur) cv::GaussianBlur(from, to, {size, size}, 0);
      if (v[0] == median_blur) cv::medianBlur(from, to, size);
      if (v[0] == bilateral_blur) cv::bilateralFilter(from, to, size, v[2], v[2]);
    }
  }
};

}  // namespace

Made make_blur(const Options&, const MutationContext&) {
  // Threads are ours, and a filter's result must not depend on how many there are.
  cv::setNumThreads(0);
  return std::make_unique<Blur>();
}

}  // namespace galvani::mutate
