#include <torch/library.h>
#include <torch/script.h>

#include <cmath>

#include "model/onnx/runtime.h"

namespace galvani::onnx {

namespace {

using at::Tensor;

constexpr std::int64_t kMaxBins = 1 << 20;

Tensor window(std::int64_t size, bool periodic, double a0, double a1, double a2, std::int64_t type) {
  TORCH_CHECK(size >= 0, "a window of ", size, " samples");
  auto period = static_cast<double>(periodic ? size : size - 1);
  Tensor angle = at::arange(size, at::kDouble) * (2 * M_PI / period);
  return (a0 - a1 * angle.cos() + a2 * (2 * angle).cos()).to(static_cast<at::ScalarType>(type));
}

// The last axis holds a real number, or a complex one's two parts. Doubles keep the bins that should be 0 near it.
Tensor as_complex(const Tensor& values) {
  TORCH_CHECK(values.dim() >= 1 && (values.size(-1) == 1 || values.size(-1) == 2),
              "the last axis holds one or two parts of a number");
  Tensor x = values.to(at::kDouble);
  if (x.size(-1) == 2) return at::view_as_complex(x.contiguous());
  return at::complex(x.squeeze(-1), at::zeros_like(x.squeeze(-1)));
}

Tensor dft(const Tensor& x, c10::optional<std::int64_t> length, std::int64_t axis, bool inverse, bool one_sided) {
  if (axis < 0) axis += x.dim();
  TORCH_CHECK(axis >= 0 && axis < x.dim() - 1, "axis ", axis, " of a tensor with ", x.dim(), " axes");
  Tensor signal = as_complex(x);
  Tensor spectrum = inverse ? at::fft_ifft(signal, length, axis) : at::fft_fft(signal, length, axis);
  if (one_sided) spectrum = spectrum.narrow(axis, 0, spectrum.size(axis) / 2 + 1);
  return at::view_as_real(spectrum.resolve_conj()).to(x.scalar_type());
}

Tensor stft(const Tensor& signal, std::int64_t step, const c10::optional<Tensor>& shape,
            c10::optional<std::int64_t> length, bool one_sided) {
  TORCH_CHECK(step > 0, "a step of ", step, " samples");
  std::int64_t size = length ? *length : shape->numel();
  Tensor values = signal.dim() == 2 ? signal.unsqueeze(-1) : signal;
  Tensor frames = as_complex(values).unfold(1, size, step);
  if (shape) frames = frames * *shape;
  Tensor spectrum = at::fft_fft(frames, c10::nullopt, -1);
  if (one_sided) spectrum = spectrum.narrow(-1, 0, size / 2 + 1);
  return at::view_as_real(spectrum.resolve_conj()).to(signal.scalar_type());
}

Tensor mel_weights(std::int64_t mels, std::int64_t length, std::int64_t rate, double low, double high,
                   std::int64_t type) {
  TORCH_CHECK(mels >= 0 && mels <= kMaxBins && length > 0 && length <= kMaxBins && rate > 0, "no such filter bank");
  std::int64_t bins = length / 2 + 1;
  auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double step = (to_mel(high) - to_mel(low)) / static_cast<double>(mels + 2);
  auto edge = [&](std::int64_t i) {
    double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + to_mel(low)) / 2595) - 1);
    double bin = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    TORCH_CHECK(bin >= 0 && bin < static_cast<double>(bins), "a filter reaches beyond the spectrum");
    return static_cast<std::int64_t>(bin);
  };
  Tensor weights = at::zeros({bins, mels}, at::kDouble);
  auto cell = weights.accessor<double, 2>();
  // Triangles from one edge over the next to the one after.
  for (std::int64_t i = 0; i < mels; ++i) {
    std::int64_t lower = edge(i), centre = edge(i + 1), upper = edge(i + 2);
    if (centre == lower) cell[centre][i] = 1;
    for (std::int64_t j = lower; centre > lower && j <= centre; ++j)
      cell[j][i] = static_cast<double>(j - lower) / static_cast<double>(centre - lower);
    for (std::int64_t j = centre; j < upper; ++j)
      cell[j][i] = static_cast<double>(upper - j) / static_cast<double>(upper - centre);
  }
  return weights.to(static_cast<at::ScalarType>(type));
}

}  // namespace

void define_signal(torch::Library& library) {
  library.def("window(int size, bool periodic, float a0, float a1, float a2, int type) -> Tensor", window);
  library.def("dft(Tensor x, int? length, int axis, bool inverse, bool one_sided) -> Tensor", dft);
  library.def("stft(Tensor signal, int step, Tensor? shape, int? length, bool one_sided) -> Tensor", stft);
  library.def("mel_weights(int mels, int length, int rate, float low, float high, int type) -> Tensor", mel_weights);
}

}  // namespace galvani::onnx
