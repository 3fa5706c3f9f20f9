// Resampling and regions of interest.
#include <torch/library.h>
#include <torch/script.h>

#include <cmath>

#include "model/limits.h"
#include "model/onnx/runtime.h"

namespace galvani::onnx {

namespace {

using at::IntArrayRef;
using at::Tensor;

constexpr std::int64_t kLongestAxis = 1 << 20;

enum Coordinates {
  half_pixel,
  torch_half_pixel,
  align_corners,
  asymmetric,
  crop_and_resize,
  half_pixel_nearest,
  half_pixel_symmetric
};
enum Rounding { prefer_floor, prefer_ceil, always_floor, always_ceil };

// How one axis is resampled.
struct Axis {
  std::int64_t from;
  std::int64_t to;
  double scale;
  double start = 0;  // the region of tf_crop_and_resize
  double end = 1;
};

struct Method {
  std::int64_t mode;  // 0 nearest, 1 linear, 2 cubic
  std::int64_t coordinates;
  std::int64_t rounding;
  double cubic;
  bool exclude_outside;
};

double source_position(const Axis& axis, std::int64_t coordinates, std::int64_t i) {
  auto at = static_cast<double>(i);
  auto last = static_cast<double>(axis.from - 1);
  // The exact width, of which the output's size is the always_floor, as the ONNX reference has it.
  double width = axis.scale * static_cast<double>(axis.from);
  switch (coordinates) {
    case align_corners:
      return width == 1 ? 0 : at * last / (width - 1);
    case asymmetric:
      return at / axis.scale;
    case crop_and_resize: {
      double span = (axis.end - axis.start) * last;
      return axis.start * last + (width == 1 ? span / 2 : at * span / (width - 1));
    }
    case torch_half_pixel:
      return width == 1 ? -0.5 : (at + 0.5) / axis.scale - 0.5;
    case half_pixel_nearest:
      return (at + 0.5) / axis.scale;
    case half_pixel_symmetric: {
      double centre = static_cast<double>(axis.from) / 2;
      double offset = centre * (1 - static_cast<double>(axis.to) / width);
      return offset + (at + 0.5) / axis.scale - 0.5;
    }
    default:
      return (at + 0.5) / axis.scale - 0.5;
  }
}

std::vector<double> cubic_weights(double r, double a) {
  return {((a * (r + 1) - 5 * a) * (r + 1) + 8 * a) * (r + 1) - 4 * a, ((a + 2) * r - (a + 3)) * r * r + 1,
          ((a + 2) * (1 - r) - (a + 3)) * (1 - r) * (1 - r) + 1,
          ((a * (2 - r) - 5 * a) * (2 - r) + 8 * a) * (2 - r) - 4 * a};
}

double round_to(double x, std::int64_t rounding) {
  switch (rounding) {
    case prefer_floor:
      return std::ceil(x - 0.5);
    case prefer_ceil:
      return std::floor(x + 0.5);
    case always_floor:
      return std::floor(x);
    default:
      return std::ceil(x);
  }
}

// Every output element of the axis is a weighted sum of a few input elements; `outside` marks the extrapolated ones.
Tensor resample(const Tensor& x, std::int64_t dim, const Axis& axis, const Method& method, Tensor& outside) {
  int taps = method.mode == 0 ? 1 : method.mode == 1 ? 2 : 4;
  Tensor indices = at::empty({taps, axis.to}, at::kLong);
  Tensor weights = at::empty({taps, axis.to}, at::kDouble);
  outside = at::zeros({axis.to}, at::kBool);
  auto index = indices.accessor<std::int64_t, 2>();
  auto weight = weights.accessor<double, 2>();
  auto is_outside = outside.accessor<bool, 1>();
  for (std::int64_t i = 0; i < axis.to; ++i) {
    double position = source_position(axis, method.coordinates, i);
    is_outside[i] = position < 0 || position > static_cast<double>(axis.from - 1);
    // Positions far out are all alike; bound them before they become integers.
    position = std::min(std::max(position, -1e9), 1e9);
    double base = method.mode == 0 ? round_to(position, method.rounding) : std::floor(position);
    double ratio = position - std::floor(position);
    std::vector<double> share = taps == 1   ? std::vector<double>{1}
                                : taps == 2 ? std::vector<double>{1 - ratio, ratio}
                                            : cubic_weights(ratio, method.cubic);
    double total = 0;
    for (int k = 0; k < taps; ++k) {
      std::int64_t source = static_cast<std::int64_t>(base) + k - (taps == 4 ? 1 : 0);
      if (method.exclude_outside && (source < 0 || source >= axis.from)) share[k] = 0;
      index[k][i] = std::min(std::max<std::int64_t>(source, 0), axis.from - 1);
      total += share[k];
    }
    for (int k = 0; k < taps; ++k) weight[k][i] = method.exclude_outside ? share[k] / total : share[k];
  }
  if (taps == 1) return x.index_select(dim, indices[0]);
  std::vector<std::int64_t> shape(x.dim(), 1);
  shape[dim] = axis.to;
  Tensor result;
  for (int k = 0; k < taps; ++k) {
    Tensor term = x.index_select(dim, indices[k]) * weights[k].to(x.scalar_type()).reshape(shape);
    result = result.defined() ? result + term : term;
  }
  return result;
}

Tensor resize(const Tensor& x, const std::vector<double>& scales, IntArrayRef sizes, const std::vector<double>& region,
              IntArrayRef axes, std::int64_t mode, std::int64_t coordinates, std::int64_t rounding, double cubic,
              bool exclude_outside, double extrapolation) {
  std::size_t n = axes.empty() ? static_cast<std::size_t>(x.dim()) : axes.size();
  TORCH_CHECK(scales.size() == n || sizes.size() == n, "a scale or a size for each of ", n, " axes is needed");
  bool crop = coordinates == crop_and_resize;
  TORCH_CHECK(!crop || region.size() == 2 * n, "a region with a start and an end for each axis is needed");
  Method method{mode, coordinates, rounding, cubic, exclude_outside};
  Tensor result = x;
  Tensor extrapolated;
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t dim = axes.empty() ? static_cast<std::int64_t>(i) : at::maybe_wrap_dim(axes[i], x.dim());
    Axis axis{x.size(dim), 0, 1};
    TORCH_CHECK(axis.from > 0, "an empty axis cannot be resized");
    if (sizes.empty()) {
      axis.scale = scales[i];
      TORCH_CHECK(axis.scale > 0 && std::isfinite(axis.scale), "a scale of ", axis.scale);
      double size = std::floor(axis.scale * static_cast<double>(axis.from));
      TORCH_CHECK(size <= kLongestAxis, "a size of ", size);
      axis.to = static_cast<std::int64_t>(size);
    } else {
      axis.to = sizes[i];
      TORCH_CHECK(axis.to >= 0 && axis.to <= kLongestAxis, "a size of ", axis.to);
      axis.scale = static_cast<double>(axis.to) / static_cast<double>(axis.from);
    }
    TORCH_CHECK(result.numel() / axis.from <= kMostElements / std::max<std::int64_t>(axis.to, 1),
                "a resized tensor of more than ", kMostElements, " elements");
    if (crop) {
      axis.start = region[i];
      axis.end = region[n + i];
    }
    if (axis.scale == 1 && !(crop && (axis.start != 0 || axis.end != 1))) continue;
    Tensor outside;
    result = resample(result, dim, axis, method, outside);
    if (!crop) continue;
    std::vector<std::int64_t> shape(x.dim(), 1);
    shape[dim] = axis.to;
    outside = outside.reshape(shape);
    extrapolated = extrapolated.defined() ? at::logical_or(extrapolated, outside) : outside;
  }
  return extrapolated.defined() ? result.masked_fill(extrapolated, extrapolation) : result;
}

// Bilinear samples of planes [C, H, W] at rows y and columns x: the four weighted corners, each [C, rows, columns].
std::vector<Tensor> corners(const Tensor& planes, const Tensor& y, const Tensor& x) {
  std::int64_t height = planes.size(1), width = planes.size(2);
  auto part = [](const Tensor& at, std::int64_t size) {
    Tensor inside = (at >= -1).logical_and(at <= size).to(at::kDouble);
    Tensor position = at.clamp(0, static_cast<double>(size - 1));
    Tensor low = position.floor();
    Tensor high = (low + 1).clamp_max(static_cast<double>(size - 1));
    Tensor ratio = position - low;
    return std::vector<Tensor>{low.to(at::kLong), high.to(at::kLong), (1 - ratio) * inside, ratio * inside};
  };
  auto rows = part(y, height);
  auto columns = part(x, width);
  std::vector<Tensor> result;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      Tensor values = planes.index_select(1, rows[i]).index_select(2, columns[j]);
      result.push_back(values * (rows[2 + i].unsqueeze(1) * columns[2 + j].unsqueeze(0)).to(planes.scalar_type()));
    }
  }
  return result;
}

Tensor roi_align(const Tensor& x, const Tensor& rois, const Tensor& batch, std::int64_t height, std::int64_t width,
                 std::int64_t sampling, double scale, bool shifted, bool maximum) {
  TORCH_CHECK(x.dim() == 4 && rois.dim() == 2 && rois.size(1) == 4 && batch.numel() == rois.size(0),
              "images and regions do not fit");
  TORCH_CHECK(height > 0 && width > 0 && height < 65536 && width < 65536, "an output of ", height, " x ", width);
  TORCH_CHECK(sampling >= 0 && sampling < 65536, sampling, " samples");
  Tensor boxes = rois.detach().to(at::kDouble).contiguous();
  Tensor owners = batch.to(at::kLong).contiguous();
  auto box = boxes.accessor<double, 2>();
  std::vector<Tensor> results;
  for (std::int64_t r = 0; r < rois.size(0); ++r) {
    double offset = shifted ? 0.5 : 0;
    double left = box[r][0] * scale - offset, top = box[r][1] * scale - offset;
    double roi_width = box[r][2] * scale - offset - left, roi_height = box[r][3] * scale - offset - top;
    if (!shifted) {
      roi_width = std::max(roi_width, 1.0);
      roi_height = std::max(roi_height, 1.0);
    }
    auto samples = [&](double size, std::int64_t bins) {
      double adaptive = std::ceil(size / static_cast<double>(bins));
      TORCH_CHECK(adaptive < 65536, "a region of ", size);
      return sampling > 0 ? sampling : std::max<std::int64_t>(static_cast<std::int64_t>(adaptive), 1);
    };
    std::int64_t ny = samples(roi_height, height), nx = samples(roi_width, width);
    auto positions = [](double start, double size, std::int64_t bins, std::int64_t each) {
      double step = size / static_cast<double>(bins * each);
      return (at::arange(bins * each, at::kDouble) + 0.5) * step + start;
    };
    Tensor planes = x.select(0, owners[r].item<std::int64_t>());
    auto parts = corners(planes, positions(top, roi_height, height, ny), positions(left, roi_width, width, nx));
    auto bins = [&](const Tensor& values) { return values.reshape({x.size(1), height, ny, width, nx}); };
    if (maximum) {
      Tensor best = bins(parts[0]).amax({2, 4});
      for (int i = 1; i < 4; ++i) best = at::maximum(best, bins(parts[i]).amax({2, 4}));
      results.push_back(best);
    } else {
      results.push_back(bins(parts[0] + parts[1] + parts[2] + parts[3]).mean({2, 4}));
    }
  }
  if (results.empty()) return at::zeros({0, x.size(1), height, width}, x.options());
  return at::stack(results);
}

Tensor non_max_suppression(const Tensor& boxes, const Tensor& scores, std::int64_t most, double overlap,
                           c10::optional<double> least_score, bool centred) {
  TORCH_CHECK(boxes.dim() == 3 && boxes.size(2) == 4 && scores.dim() == 3 && scores.size(0) == boxes.size(0) &&
                  scores.size(2) == boxes.size(1),
              "boxes and scores do not fit");
  Tensor corners = boxes.detach().to(at::kDouble);
  if (centred) {
    Tensor half = corners.slice(2, 2, 4) / 2;
    Tensor centre = corners.slice(2, 0, 2);
    corners = at::cat({centre - half, centre + half}, 2);
  } else {
    // Any two opposite corners may be given.
    Tensor a = corners.slice(2, 0, 2), b = corners.slice(2, 2, 4);
    corners = at::cat({at::minimum(a, b), at::maximum(a, b)}, 2);
  }
  corners = corners.contiguous();
  auto box = corners.accessor<double, 3>();
  auto area = [&](std::int64_t n, std::int64_t i) {
    return (box[n][i][2] - box[n][i][0]) * (box[n][i][3] - box[n][i][1]);
  };
  auto iou = [&](std::int64_t n, std::int64_t i, std::int64_t j) {
    double h = std::min(box[n][i][2], box[n][j][2]) - std::max(box[n][i][0], box[n][j][0]);
    double w = std::min(box[n][i][3], box[n][j][3]) - std::max(box[n][i][1], box[n][j][1]);
    double shared = std::max(h, 0.0) * std::max(w, 0.0);
    return shared > 0 ? shared / (area(n, i) + area(n, j) - shared) : 0.0;
  };
  Tensor values = scores.detach().to(at::kDouble).contiguous();
  auto score = values.accessor<double, 3>();
  Tensor orders = at::argsort(values, /*stable=*/true, 2, /*descending=*/true).contiguous();
  auto order = orders.accessor<std::int64_t, 3>();
  std::vector<std::int64_t> chosen;
  for (std::int64_t n = 0; n < scores.size(0); ++n) {
    for (std::int64_t c = 0; c < scores.size(1); ++c) {
      std::vector<std::int64_t> kept;
      for (std::int64_t k = 0; k < scores.size(2) && static_cast<std::int64_t>(kept.size()) < most; ++k) {
        std::int64_t i = order[n][c][k];
        if (least_score && score[n][c][i] <= *least_score) break;
        bool free = std::none_of(kept.begin(), kept.end(), [&](std::int64_t j) { return iou(n, i, j) > overlap; });
        if (!free) continue;
        kept.push_back(i);
        chosen.insert(chosen.end(), {n, c, i});
      }
    }
  }
  return at::tensor(chosen, at::kLong).reshape({-1, 3});
}

Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners) {
  TORCH_CHECK(size.size() == 4 || size.size() == 5, "a grid of ", size.size(), " axes");
  check_made(size);
  return at::affine_grid_generator(theta, size, align_corners);
}

// Cuts or fills with zeros on both sides alike, what is odd at the end.
Tensor center_crop_pad(const Tensor& x, IntArrayRef shape, IntArrayRef listed) {
  std::vector<std::int64_t> axes = listed.vec();
  if (axes.empty()) {
    for (std::int64_t i = 0; i < x.dim(); ++i) axes.push_back(i);
  }
  TORCH_CHECK(axes.size() == shape.size(), axes.size(), " axes for ", shape.size(), " sizes");
  Tensor y = x;
  std::vector<std::int64_t> sizes = x.sizes().vec(), amounts(2 * static_cast<std::size_t>(x.dim()), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::int64_t axis = wrap(axes[i], x.dim()), size = x.size(axis), wanted = shape[i];
    TORCH_CHECK(wanted >= 0, "a size of ", wanted);
    sizes[axis] = wanted;
    if (wanted < size) {
      y = y.slice(axis, (size - wanted) / 2, (size - wanted) / 2 + wanted);
    } else {
      std::size_t at = 2 * static_cast<std::size_t>(x.dim() - 1 - axis);
      amounts[at] = (wanted - size) / 2;
      amounts[at + 1] = wanted - size - amounts[at];
    }
  }
  check_made(sizes);
  return at::constant_pad_nd(y, amounts);
}

// Sums blocks of columns back into images. With padding that differs between the sides the padded image is made first.
Tensor col2im(const Tensor& x, IntArrayRef image, IntArrayRef block, IntArrayRef dilations, IntArrayRef pads,
              IntArrayRef strides) {
  TORCH_CHECK(image.size() == 2 && block.size() == 2, "images of ", image.size(), " axes; only two are supported");
  auto list = [](IntArrayRef given, std::size_t count, std::int64_t fallback) {
    TORCH_CHECK(given.empty() || given.size() == count, given.size(), " numbers instead of ", count);
    return given.empty() ? std::vector<std::int64_t>(count, fallback) : given.vec();
  };
  std::vector<std::int64_t> around = list(pads, 4, 0);
  for (std::int64_t size : {image[0], image[1], block[0], block[1]})
    TORCH_CHECK(size > 0 && size <= kLongestAxis, "a size of ", size);
  for (std::int64_t pad : around) TORCH_CHECK(pad >= 0 && pad <= kLongestAxis, "padding of ", pad);
  std::vector<std::int64_t> whole{image[0] + around[0] + around[2], image[1] + around[1] + around[3]};
  check_made({x.size(0), x.size(1) / (block[0] * block[1]), whole[0], whole[1]});
  Tensor y = at::col2im(x, whole, block, list(dilations, 2, 1), {0, 0}, list(strides, 2, 1));
  return y.slice(2, around[0], around[0] + image[0]).slice(3, around[1], around[1] + image[1]);
}

}  // namespace

void define_image(torch::Library& library) {
  library.def("affine_grid(Tensor theta, int[] size, bool align_corners) -> Tensor", affine_grid);
  library.def("center_crop_pad(Tensor x, int[] shape, int[] axes) -> Tensor", center_crop_pad);
  library.def("col2im(Tensor x, int[] image, int[] block, int[] dilations, int[] pads, int[] strides) -> Tensor",
              col2im);
  library.def(
      "resize(Tensor x, float[] scales, int[] sizes, float[] region, int[] axes, int mode, int coordinates, "
      "int rounding, float cubic, bool exclude_outside, float extrapolation) -> Tensor",
      resize);
  library.def(
      "roi_align(Tensor x, Tensor rois, Tensor batch, int height, int width, int sampling, float scale, bool shifted, "
      "bool maximum) -> Tensor",
      roi_align);
  library.def(
      "non_max_suppression(Tensor boxes, Tensor scores, int most, float overlap, float? least_score, bool centred) -> "
      "Tensor",
      non_max_suppression);
}

}  // namespace galvani::onnx
