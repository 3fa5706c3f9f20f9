// The front end of networks of sounds, inside the graph, so that gradients reach the samples.
#include <algorithm>
#include <cmath>

#include "model/onnx/writer.h"
#include "model/zoo/builder.h"
#include "model/zoo/builder_impl.h"

namespace galvani::zoo {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kWindowSeconds = 0.025;
constexpr double kHopSeconds = 0.010;
constexpr double kLowestHz = 20;
// Added before the logarithm. Samples are from -1 to 1; this is the power of the last bit of 16 in a window of 25 ms.
constexpr float kFloor = 1e-6F;

double to_mel(double hz) {
  return 2595 * std::log10(1 + hz / 700);
}
double to_hz(double mel) {
  return 700 * (std::pow(10, mel / 2595) - 1);
}

// [mels, bins]: triangles that overlap by half; each is 1 at its top.
std::vector<float> mel_bands(std::int64_t mels, std::int64_t bins, std::int64_t transform, double rate) {
  double low = to_mel(kLowestHz);
  double step = (to_mel(rate / 2) - low) / static_cast<double>(mels + 1);
  std::vector<float> bands(static_cast<std::size_t>(mels * bins));
  for (std::int64_t m = 0; m < mels; ++m) {
    double left = to_hz(low + step * static_cast<double>(m));
    double top = to_hz(low + step * static_cast<double>(m + 1));
    double right = to_hz(low + step * static_cast<double>(m + 2));
    for (std::int64_t k = 0; k < bins; ++k) {
      double hz = static_cast<double>(k) * rate / static_cast<double>(transform);
      double height = std::min((hz - left) / (top - left), (right - hz) / (right - top));
      bands[static_cast<std::size_t>(m * bins + k)] = static_cast<float>(std::max(0.0, height));
    }
  }
  return bands;
}

// [bins, 1, window]: cosines or sines under a Hann window.
std::vector<float> transform_kernels(std::int64_t bins, std::int64_t window, std::int64_t transform, bool sine) {
  std::vector<float> kernels(static_cast<std::size_t>(bins * window));
  for (std::int64_t k = 0; k < bins; ++k) {
    for (std::int64_t n = 0; n < window; ++n) {
      double hann = 0.5 - 0.5 * std::cos(2 * kPi * static_cast<double>(n) / static_cast<double>(window));
      // Whole turns are taken off before the cosine, exactly.
      double angle = 2 * kPi * static_cast<double>(k * n % transform) / static_cast<double>(transform);
      kernels[static_cast<std::size_t>(k * window + n)] =
          static_cast<float>(hann * (sine ? std::sin(angle) : std::cos(angle)));
    }
  }
  return kernels;
}

}  // namespace

Value GraphBuilder::log_mel(const std::string& name, const Value& x, std::int64_t mels) {
  auto window = static_cast<std::int64_t>(std::lround(kWindowSeconds * static_cast<double>(rate())));
  auto hop = static_cast<std::int64_t>(std::lround(kHopSeconds * static_cast<double>(rate())));
  std::int64_t transform = 1;
  while (transform < window) transform *= 2;
  std::int64_t bins = transform / 2 + 1;
  std::int64_t frames = (x.shape[1] - window) / hop + 1;
  std::vector<std::int64_t> dims = {bins, 1, window};
  std::vector<std::string> squares;
  for (const char* part : {"cos", "sin"}) {
    std::string own = name + "." + part;
    std::string kernel = impl_->writer.constant(own + ".kernel", dims,
                                                transform_kernels(bins, window, transform, std::string(part) == "sin"));
    ::onnx::NodeProto& node = impl_->add_node("Conv", own, {x.name, kernel});
    onnx::set_ints(node, "kernel_shape", {window});
    onnx::set_ints(node, "strides", {hop});
    Value projected = impl_->give(own, {bins, frames});
    impl_->add_node("Mul", own + ".square", {projected.name, projected.name});
    squares.push_back(impl_->give(own + ".square", {bins, frames}).name);
  }
  impl_->add_node("Add", name + ".power", squares);
  Value power = impl_->give(name + ".power", {bins, frames});
  std::string bands = impl_->writer.constant(name + ".bands", {mels, bins},
                                             mel_bands(mels, bins, transform, static_cast<double>(rate())));
  impl_->add_node("MatMul", name + ".mel", {bands, power.name});
  Value mel = impl_->give(name + ".mel", {mels, frames});
  impl_->add_node("Add", name + ".floor", {mel.name, impl_->writer.constant(name + ".least", kFloor)});
  Value above = impl_->give(name + ".floor", {mels, frames});
  impl_->add_node("Log", name, {above.name});
  return impl_->give(name, {mels, frames});
}

}  // namespace galvani::zoo
