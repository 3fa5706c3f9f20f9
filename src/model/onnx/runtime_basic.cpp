// Operators on shapes and arguments.
#include <torch/library.h>
#include <torch/script.h>

#include "model/limits.h"
#include "model/onnx/runtime.h"

namespace galvani::onnx {

std::int64_t wrap(std::int64_t axis, std::int64_t rank) {
  TORCH_CHECK(axis >= -rank && axis < std::max<std::int64_t>(rank, 1), "axis ", axis, " of a tensor with ", rank,
              " axes");
  return axis < 0 ? axis + rank : axis;
}

namespace {

using at::IntArrayRef;
using at::Tensor;

// Axes, sizes and the like; work on tensors of very many axes grows with the square of their number.
constexpr std::int64_t kMostArguments = 4096;

std::vector<std::int64_t> integers(const Tensor& values) {
  TORCH_CHECK(values.numel() <= kMostArguments, values.numel(), " numbers where a few are needed");
  Tensor flat = values.detach().to(at::kLong).reshape({-1}).contiguous();
  const auto* data = flat.data_ptr<std::int64_t>();
  return {data, data + flat.numel()};
}

std::vector<double> reals(const Tensor& values) {
  Tensor flat = values.detach().to(at::kDouble).reshape({-1}).contiguous();
  const auto* data = flat.data_ptr<double>();
  return {data, data + flat.numel()};
}

std::int64_t integer(const Tensor& value) {
  TORCH_CHECK(value.numel() == 1, "one number is needed where there are ", value.numel());
  return value.detach().to(at::kLong).reshape({-1})[0].item<std::int64_t>();
}

double real(const Tensor& value) {
  TORCH_CHECK(value.numel() == 1, "one number is needed where there are ", value.numel());
  return value.detach().to(at::kDouble).reshape({-1})[0].item<double>();
}

// LibTorch divides integers without looking: the least one of a type by minus one ends the process.
Tensor minus_ones(const Tensor& divisor) {
  TORCH_CHECK(!divisor.eq(0).any().item<bool>(), "an integer is divided by zero");
  bool is_signed = at::isSignedType(divisor.scalar_type());
  return is_signed ? divisor.eq(-1) : at::zeros_like(divisor, at::kBool);
}

// As C does it; what has no place in the type wraps.
Tensor divide_integers(const Tensor& a, const Tensor& b) {
  Tensor minus = minus_ones(b);
  return at::where(minus, a.neg(), at::div(a, b.masked_fill(minus, 1), "trunc"));
}

// Another divisor with the same remainders.
Tensor modulus(const Tensor& b) {
  return b.masked_fill(minus_ones(b), 1);
}

// Gives `b` trailing axes of size one until its axes line up with those of `a` from `axis` on.
Tensor align(const Tensor& b, const Tensor& a, std::int64_t axis) {
  std::int64_t missing = a.dim() - wrap(axis, a.dim()) - b.dim();
  Tensor result = b;
  for (std::int64_t i = 0; i < missing; ++i) result = result.unsqueeze(-1);
  return result;
}

Tensor reshape(const Tensor& x, IntArrayRef shape, bool allow_zero) {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> stated;  // without the one that torch is to find
  for (std::size_t i = 0; i < shape.size(); ++i) {
    sizes.push_back(shape[i] == 0 && !allow_zero ? x.size(static_cast<std::int64_t>(i)) : shape[i]);
    if (sizes.back() != -1) stated.push_back(sizes.back());
  }
  check_made(stated);
  return x.reshape(sizes);
}

Tensor flatten(const Tensor& x, std::int64_t axis) {
  std::int64_t rank = x.dim();
  TORCH_CHECK(axis >= -rank && axis <= rank, "axis ", axis, " of a tensor with ", rank, " axes");
  if (axis < 0) axis += rank;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  for (std::int64_t i = 0; i < rank; ++i) (i < axis ? rows : columns) *= x.size(i);
  return x.reshape({rows, columns});
}

Tensor reverse_axes(const Tensor& x) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = x.dim() - 1; i >= 0; --i) order.push_back(i);
  return x.permute(order);
}

Tensor squeeze(const Tensor& x, IntArrayRef axes) {
  if (axes.empty()) return x.squeeze();
  std::vector<std::int64_t> order;
  for (std::int64_t axis : axes) order.push_back(wrap(axis, x.dim()));
  std::sort(order.rbegin(), order.rend());
  Tensor result = x;
  for (std::int64_t axis : order) {
    TORCH_CHECK(x.size(axis) == 1, "an axis of size ", x.size(axis), " cannot be squeezed");
    result = result.squeeze(axis);
  }
  return result;
}

Tensor unsqueeze(const Tensor& x, IntArrayRef axes) {
  std::int64_t rank = x.dim() + static_cast<std::int64_t>(axes.size());
  std::vector<std::int64_t> order;
  for (std::int64_t axis : axes) order.push_back(wrap(axis, rank));
  std::sort(order.begin(), order.end());
  Tensor result = x;
  for (std::int64_t axis : order) result = result.unsqueeze(axis);
  return result;
}

std::vector<Tensor> split(const Tensor& x, IntArrayRef sizes, std::int64_t axis, std::int64_t parts) {
  if (!sizes.empty()) {
    TORCH_CHECK(static_cast<std::int64_t>(sizes.size()) == parts, sizes.size(), " sizes for ", parts, " parts");
    return x.split_with_sizes(sizes, axis);
  }
  // The last part is the smaller one where the size does not divide.
  std::int64_t size = x.size(axis);
  std::int64_t each = (size + parts - 1) / parts;
  std::vector<std::int64_t> even;
  for (std::int64_t i = 0; i < parts; ++i) even.push_back(std::min(each, std::max<std::int64_t>(size - i * each, 0)));
  return x.split_with_sizes(even, axis);
}

Tensor slice(const Tensor& x, IntArrayRef starts, IntArrayRef ends, IntArrayRef axes, IntArrayRef steps) {
  TORCH_CHECK(starts.size() == ends.size() && (axes.empty() || axes.size() == starts.size()) &&
                  (steps.empty() || steps.size() == starts.size()),
              "starts, ends, axes and steps differ in number");
  Tensor result = x;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    std::int64_t axis = wrap(axes.empty() ? static_cast<std::int64_t>(i) : axes[i], x.dim());
    std::int64_t step = steps.empty() ? 1 : steps[i];
    TORCH_CHECK(step != 0 && step != std::numeric_limits<std::int64_t>::min(), "a step of ", step);
    if (step > 0) {
      result = result.slice(axis, starts[i], ends[i], step);
      continue;
    }
    // Backwards: torch has no negative steps, so take the elements from the flipped axis.
    std::int64_t size = result.size(axis);
    auto from_end = [&](std::int64_t position) {
      if (position < 0) position = position < -size ? -1 : position + size;
      return size - 1 - std::min(position, size - 1);
    };
    std::int64_t first = from_end(starts[i]);
    std::int64_t last = from_end(ends[i]);
    result = result.flip({axis}).slice(axis, first, std::max(first, last), -step);
  }
  return result;
}

Tensor expand(const Tensor& x, IntArrayRef shape) {
  std::vector<std::int64_t> sizes = at::infer_size(x.sizes(), shape);
  // The view itself takes no memory, but whoever reads it takes the time, and mostly the memory, of all its elements.
  check_made(sizes);
  return x.expand(sizes);
}

Tensor full(IntArrayRef sizes, const at::Scalar& fill, std::int64_t type) {
  check_made(sizes);
  return at::full(sizes, fill, static_cast<at::ScalarType>(type));
}

Tensor tile(const Tensor& x, IntArrayRef repeats) {
  std::vector<std::int64_t> factors = x.sizes().vec();
  factors.insert(factors.end(), repeats.begin(), repeats.end());
  check_made(factors);
  return at::tile(x, repeats);
}

Tensor shape(const Tensor& x, std::int64_t start, std::int64_t end) {
  std::int64_t rank = x.dim();
  auto clamp = [&](std::int64_t position) {
    if (position < 0) position += rank;
    return std::min(std::max<std::int64_t>(position, 0), rank);
  };
  start = clamp(start);
  end = std::max(start, clamp(end));
  return at::tensor(x.sizes().slice(start, end - start), at::kLong);
}

Tensor size(const Tensor& x) {
  return at::scalar_tensor(x.numel(), at::kLong);
}

Tensor pad(const Tensor& x, IntArrayRef pads, IntArrayRef axes, std::int64_t mode, const at::Scalar& fill) {
  std::size_t n = axes.empty() ? static_cast<std::size_t>(x.dim()) : axes.size();
  TORCH_CHECK(pads.size() == 2 * n, pads.size(), " amounts of padding for ", n, " axes");
  Tensor result = x;
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t axis = axes.empty() ? static_cast<std::int64_t>(i) : wrap(axes[i], x.dim());
    std::int64_t before = pads[i];
    std::int64_t after = pads[n + i];
    TORCH_CHECK(
        before >= -kMostElements && before <= kMostElements && after >= -kMostElements && after <= kMostElements,
        before, " and ", after, " elements of padding");
    std::vector<std::int64_t> sizes = result.sizes().vec();
    sizes[static_cast<std::size_t>(axis)] += std::max<std::int64_t>(before, 0) + std::max<std::int64_t>(after, 0);
    check_made(sizes);
    if (before < 0) result = result.slice(axis, -before, result.size(axis));
    if (after < 0) result = result.slice(axis, 0, std::max<std::int64_t>(result.size(axis) + after, 0));
    before = std::max<std::int64_t>(before, 0);
    after = std::max<std::int64_t>(after, 0);
    if (before == 0 && after == 0) continue;
    std::int64_t length = result.size(axis);
    if (mode == 0) {
      std::vector<std::int64_t> amounts(2 * static_cast<std::size_t>(x.dim() - axis), 0);
      amounts[amounts.size() - 2] = before;
      amounts[amounts.size() - 1] = after;
      result = at::constant_pad_nd(result, amounts, fill);
      continue;
    }
    TORCH_CHECK(length > 0, "nothing to pad with");
    // Every other mode copies elements of the axis: gather them by index.
    Tensor index = at::arange(-before, length + after, at::kLong);
    if (mode == 1) {
      std::int64_t period = std::max<std::int64_t>(2 * (length - 1), 1);
      index = at::remainder(index, period);
      index = at::where(index >= length, period - index, index);
    } else if (mode == 2) {
      index = index.clamp(0, length - 1);
    } else {
      index = at::remainder(index, length);
    }
    result = result.index_select(axis, index);
  }
  return result;
}

Tensor eye_like(const Tensor& x, std::int64_t k, std::int64_t type) {
  TORCH_CHECK(x.dim() == 2, "a matrix is needed");
  Tensor rows = at::arange(x.size(0), at::kLong).unsqueeze(1);
  Tensor columns = at::arange(x.size(1), at::kLong).unsqueeze(0);
  return (columns - rows == k).to(static_cast<at::ScalarType>(type));
}

Tensor depth_to_space(const Tensor& x, std::int64_t block, bool column_first) {
  TORCH_CHECK(x.dim() == 4 && x.size(1) % (block * block) == 0, "channels do not divide into blocks");
  std::int64_t b = x.size(0), c = x.size(1) / (block * block), h = x.size(2), w = x.size(3);
  Tensor parts = column_first ? x.reshape({b, c, block, block, h, w}).permute({0, 1, 4, 2, 5, 3})
                              : x.reshape({b, block, block, c, h, w}).permute({0, 3, 4, 1, 5, 2});
  return parts.reshape({b, c, h * block, w * block});
}

Tensor space_to_depth(const Tensor& x, std::int64_t block, bool) {
  TORCH_CHECK(x.dim() == 4 && x.size(2) % block == 0 && x.size(3) % block == 0,
              "the image does not divide into blocks");
  std::int64_t b = x.size(0), c = x.size(1), h = x.size(2) / block, w = x.size(3) / block;
  return x.reshape({b, c, h, block, w, block}).permute({0, 3, 5, 1, 2, 4}).reshape({b, c * block * block, h, w});
}

Tensor bit_cast(const Tensor& x, std::int64_t type) {
  return x.contiguous().view(static_cast<at::ScalarType>(type));
}

}  // namespace

void define_basic(torch::Library& library) {
  library.def("integers(Tensor values) -> int[]", integers);
  library.def("reals(Tensor values) -> float[]", reals);
  library.def("integer(Tensor value) -> int", integer);
  library.def("real(Tensor value) -> float", real);
  library.def("align(Tensor b, Tensor a, int axis) -> Tensor", align);
  library.def("divide_integers(Tensor a, Tensor b) -> Tensor", divide_integers);
  library.def("bit_cast(Tensor x, int type) -> Tensor", bit_cast);
  library.def("modulus(Tensor b) -> Tensor", modulus);
  library.def("reshape(Tensor x, int[] shape, bool allow_zero) -> Tensor", reshape);
  library.def("flatten(Tensor x, int axis) -> Tensor", flatten);
  library.def("reverse_axes(Tensor x) -> Tensor", reverse_axes);
  library.def("squeeze(Tensor x, int[] axes) -> Tensor", squeeze);
  library.def("unsqueeze(Tensor x, int[] axes) -> Tensor", unsqueeze);
  library.def("split(Tensor x, int[] sizes, int axis, int parts) -> Tensor[]", split);
  library.def("slice(Tensor x, int[] starts, int[] ends, int[] axes, int[] steps) -> Tensor", slice);
  library.def("expand(Tensor x, int[] shape) -> Tensor", expand);
  library.def("full(int[] sizes, Scalar fill, int type) -> Tensor", full);
  library.def("tile(Tensor x, int[] repeats) -> Tensor", tile);
  library.def("shape(Tensor x, int start, int end) -> Tensor", shape);
  library.def("size(Tensor x) -> Tensor", size);
  library.def("pad(Tensor x, int[] pads, int[] axes, int mode, Scalar fill) -> Tensor", pad);
  library.def("eye_like(Tensor x, int k, int type) -> Tensor", eye_like);
  library.def("depth_to_space(Tensor x, int block, bool column_first) -> Tensor", depth_to_space);
  library.def("space_to_depth(Tensor x, int block, bool column_first) -> Tensor", space_to_depth);
}

}  // namespace galvani::onnx
