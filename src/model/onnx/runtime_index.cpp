// Operators on elements by index, and reductions.
#include <torch/library.h>
#include <torch/script.h>

#include "model/onnx/runtime.h"

namespace galvani::onnx {

namespace {

using at::IntArrayRef;
using at::Tensor;

// Negative indices count from the end.
Tensor from_start(const Tensor& index, std::int64_t size) {
  Tensor wide = index.to(at::kLong);
  return at::where(wide < 0, wide + size, wide);
}

Tensor gather(const Tensor& x, const Tensor& index, std::int64_t axis) {
  axis = wrap(axis, x.dim());
  std::vector<std::int64_t> shape = x.sizes().slice(0, axis).vec();
  shape.insert(shape.end(), index.sizes().begin(), index.sizes().end());
  shape.insert(shape.end(), x.sizes().begin() + axis + 1, x.sizes().end());
  return x.index_select(axis, from_start(index, x.size(axis)).reshape({-1})).reshape(shape);
}

Tensor gather_elements(const Tensor& x, const Tensor& index, std::int64_t axis) {
  axis = wrap(axis, x.dim());
  return x.gather(axis, from_start(index, x.size(axis)));
}

// Positions in x, flattened, of index tuples in the last axis of `index`.
Tensor flat_positions(IntArrayRef sizes, const Tensor& index) {
  Tensor position = at::zeros(index.sizes().slice(0, index.dim() - 1), at::kLong);
  for (std::int64_t i = 0; i < index.size(-1); ++i) {
    Tensor part = from_start(index.select(-1, i), sizes[i]);
    TORCH_CHECK(
        part.numel() == 0 || (part.min().item<std::int64_t>() >= 0 && part.max().item<std::int64_t>() < sizes[i]),
        "an index is out of range");
    position = position * sizes[i] + part;
  }
  return position;
}

Tensor gather_nd(const Tensor& x, const Tensor& index, std::int64_t batch) {
  TORCH_CHECK(batch >= 0 && batch < x.dim() && batch < index.dim(), "batch_dims of ", batch);
  std::int64_t depth = index.size(-1);
  TORCH_CHECK(batch + depth <= x.dim(), "indices with ", depth, " parts into ", x.dim(), " axes");
  std::int64_t rows = c10::multiply_integers(x.sizes().slice(0, batch));
  std::vector<std::int64_t> outer = {rows};
  outer.insert(outer.end(), x.sizes().begin() + batch, x.sizes().end());
  Tensor flat_index = index.reshape({rows, -1, depth});
  Tensor position = flat_positions(x.sizes().slice(batch, depth), flat_index);
  std::int64_t span = c10::multiply_integers(x.sizes().slice(batch, depth));
  std::int64_t inner = c10::multiply_integers(x.sizes().slice(batch + depth));
  position = (position + at::arange(rows, at::kLong).unsqueeze(1) * span).reshape({-1});
  std::vector<std::int64_t> shape = index.sizes().slice(0, index.dim() - 1).vec();
  shape.insert(shape.end(), x.sizes().begin() + batch + depth, x.sizes().end());
  return x.reshape({rows * span, inner}).index_select(0, position).reshape(shape);
}

enum Reduction { by_replacing, by_adding, by_multiplying, by_maximum, by_minimum };

Tensor scatter_into(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& updates, std::int64_t how) {
  switch (how) {
    case by_replacing:
      return x.scatter(axis, index, updates);
    case by_adding:
      return x.scatter_add(axis, index, updates);
    case by_multiplying:
      return x.scatter_reduce(axis, index, updates, "prod", true);
    case by_maximum:
      return x.scatter_reduce(axis, index, updates, "amax", true);
    default:
      return x.scatter_reduce(axis, index, updates, "amin", true);
  }
}

Tensor scatter_elements(const Tensor& x, const Tensor& index, const Tensor& updates, std::int64_t axis,
                        std::int64_t how) {
  axis = wrap(axis, x.dim());
  return scatter_into(x, axis, from_start(index, x.size(axis)), updates, how);
}

Tensor scatter_nd(const Tensor& x, const Tensor& index, const Tensor& updates, std::int64_t how) {
  std::int64_t depth = index.size(-1);
  TORCH_CHECK(depth <= x.dim(), "indices with ", depth, " parts into ", x.dim(), " axes");
  Tensor position = flat_positions(x.sizes().slice(0, depth), index).reshape({-1, 1});
  std::int64_t span = c10::multiply_integers(x.sizes().slice(0, depth));
  std::int64_t inner = c10::multiply_integers(x.sizes().slice(depth));
  Tensor rows = updates.reshape({-1, inner});
  TORCH_CHECK(rows.size(0) == position.size(0), "updates and indices differ in number");
  Tensor result = scatter_into(x.reshape({span, inner}), 0, position.expand({-1, inner}), rows, how);
  return result.reshape(x.sizes());
}

Tensor compress(const Tensor& x, const Tensor& condition, std::int64_t axis, bool flat) {
  Tensor source = flat ? x.reshape({-1}) : x;
  axis = wrap(flat ? 0 : axis, source.dim());
  Tensor kept = condition.reshape({-1}).to(at::kBool).nonzero().reshape({-1});
  return source.index_select(axis, kept);
}

Tensor one_hot(const Tensor& index, std::int64_t depth, const Tensor& values, std::int64_t axis) {
  TORCH_CHECK(depth > 0 && values.numel() == 2, "a depth and two values are needed");
  axis = wrap(axis, index.dim() + 1);
  Tensor wide = at::where(index < 0, index + depth, index).to(at::kLong).unsqueeze(axis);
  std::vector<std::int64_t> shape(wide.dim(), 1);
  shape[axis] = depth;
  Tensor hot = wide == at::arange(depth, at::kLong).reshape(shape);
  return at::where(hot, values.select(0, 1), values.select(0, 0));
}

Tensor reverse_sequence(const Tensor& x, const Tensor& lengths, std::int64_t batch_axis, std::int64_t time_axis) {
  batch_axis = wrap(batch_axis, x.dim());
  time_axis = wrap(time_axis, x.dim());
  TORCH_CHECK(batch_axis != time_axis, "batch and time are the same axis");
  std::vector<std::int64_t> time_shape(x.dim(), 1), batch_shape(x.dim(), 1);
  time_shape[time_axis] = x.size(time_axis);
  batch_shape[batch_axis] = x.size(batch_axis);
  Tensor step = at::arange(x.size(time_axis), at::kLong).reshape(time_shape);
  Tensor length = lengths.to(at::kLong).reshape(batch_shape);
  Tensor source = at::where(step < length, length - 1 - step, step);
  return x.gather(time_axis, source.expand(x.sizes()));
}

std::tuple<Tensor, Tensor> top_k(const Tensor& x, std::int64_t k, std::int64_t axis, bool largest) {
  axis = wrap(axis, x.dim());
  TORCH_CHECK(k >= 0 && k <= x.size(axis), "the ", k, " largest of ", x.size(axis));
  // A stable sort gives equal elements in the order of their index, as ONNX wants.
  auto [values, indices] = at::sort(x, /*stable=*/true, axis, largest);
  return {values.narrow(axis, 0, k), indices.narrow(axis, 0, k)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> unique(const Tensor& x, std::int64_t axis, bool flat, bool sorted) {
  Tensor source = flat ? x.reshape({-1}) : x;
  axis = wrap(flat ? 0 : axis, source.dim());
  auto [values, inverse, counts] = at::unique_dim(source, axis, true, true, true);
  std::int64_t n = source.size(axis);
  Tensor place = at::arange(n, at::kLong);
  Tensor first = at::full({values.size(axis)}, n, at::kLong).scatter_reduce(0, inverse, place, "amin", true);
  if (!sorted) {
    Tensor order = first.argsort();
    Tensor rank = at::empty_like(order).scatter(0, order, at::arange(order.size(0), at::kLong));
    values = values.index_select(axis, order);
    first = first.index_select(0, order);
    counts = counts.index_select(0, order);
    inverse = rank.index_select(0, inverse);
  }
  return {values, first, inverse, counts};
}

Tensor cum_sum(const Tensor& x, std::int64_t axis, bool exclusive, bool reverse) {
  axis = wrap(axis, x.dim());
  Tensor source = reverse ? x.flip({axis}) : x;
  Tensor sum = source.cumsum(axis, x.scalar_type());
  if (exclusive) sum = sum - source;
  return reverse ? sum.flip({axis}) : sum;
}

Tensor cum_prod(const Tensor& x, std::int64_t axis, bool exclusive, bool reverse) {
  axis = wrap(axis, x.dim());
  TORCH_CHECK(x.dim() > 0, "a product along an axis of a number");
  Tensor source = reverse ? x.flip({axis}) : x;
  if (exclusive && x.size(axis) > 0) {
    Tensor one = at::ones_like(source.slice(axis, 0, 1));
    source = at::cat({one, source.slice(axis, 0, x.size(axis) - 1)}, axis);
  }
  Tensor product = source.cumprod(axis, x.scalar_type());
  return reverse ? product.flip({axis}) : product;
}

std::vector<std::int64_t> all_axes(const Tensor& x, IntArrayRef axes) {
  std::vector<std::int64_t> result;
  if (axes.empty()) {
    for (std::int64_t i = 0; i < x.dim(); ++i) result.push_back(i);
  }
  for (std::int64_t axis : axes) result.push_back(wrap(axis, x.dim()));
  return result;
}

Tensor reduce_sum(const Tensor& x, IntArrayRef axes, bool keep) {
  return x.sum(all_axes(x, axes), keep, x.scalar_type());
}

Tensor reduce_prod(const Tensor& x, IntArrayRef axes, bool keep) {
  std::vector<std::int64_t> order = all_axes(x, axes);
  std::sort(order.rbegin(), order.rend());
  Tensor result = x;
  for (std::int64_t axis : order) result = result.prod(axis, keep, x.scalar_type());
  return result;
}

Tensor reduce_l1(const Tensor& x, IntArrayRef axes, bool keep) {
  return reduce_sum(x.abs(), axes, keep);
}

Tensor reduce_sum_square(const Tensor& x, IntArrayRef axes, bool keep) {
  return reduce_sum(x * x, axes, keep);
}

Tensor reduce_l2(const Tensor& x, IntArrayRef axes, bool keep) {
  return reduce_sum_square(x, axes, keep).sqrt().to(x.scalar_type());
}

Tensor reduce_log_sum(const Tensor& x, IntArrayRef axes, bool keep) {
  return reduce_sum(x, axes, keep).log().to(x.scalar_type());
}

Tensor reduce_log_sum_exp(const Tensor& x, IntArrayRef axes, bool keep) {
  return at::logsumexp(x, all_axes(x, axes), keep);
}

Tensor arg_last(const Tensor& x, std::int64_t axis, bool keep, bool largest) {
  Tensor flipped = x.flip({axis});
  Tensor found = largest ? flipped.argmax(axis, keep) : flipped.argmin(axis, keep);
  return x.size(axis) - 1 - found;
}

Tensor argmax_last(const Tensor& x, std::int64_t axis, bool keep) {
  return arg_last(x, axis, keep, true);
}

Tensor argmin_last(const Tensor& x, std::int64_t axis, bool keep) {
  return arg_last(x, axis, keep, false);
}

}  // namespace

void define_index(torch::Library& library) {
  library.def("gather(Tensor x, Tensor index, int axis) -> Tensor", gather);
  library.def("gather_elements(Tensor x, Tensor index, int axis) -> Tensor", gather_elements);
  library.def("gather_nd(Tensor x, Tensor index, int batch) -> Tensor", gather_nd);
  library.def("scatter_elements(Tensor x, Tensor index, Tensor updates, int axis, int how) -> Tensor",
              scatter_elements);
  library.def("scatter_nd(Tensor x, Tensor index, Tensor updates, int how) -> Tensor", scatter_nd);
  library.def("compress(Tensor x, Tensor condition, int axis, bool flat) -> Tensor", compress);
  library.def("one_hot(Tensor index, int depth, Tensor values, int axis) -> Tensor", one_hot);
  library.def("reverse_sequence(Tensor x, Tensor lengths, int batch_axis, int time_axis) -> Tensor", reverse_sequence);
  library.def("top_k(Tensor x, int k, int axis, bool largest) -> (Tensor, Tensor)", top_k);
  library.def("unique(Tensor x, int axis, bool flat, bool sorted) -> (Tensor, Tensor, Tensor, Tensor)", unique);
  library.def("cum_prod(Tensor x, int axis, bool exclusive, bool reverse) -> Tensor", cum_prod);
  library.def("cum_sum(Tensor x, int axis, bool exclusive, bool reverse) -> Tensor", cum_sum);
  library.def("reduce_sum(Tensor x, int[] axes, bool keep) -> Tensor", reduce_sum);
  library.def("reduce_prod(Tensor x, int[] axes, bool keep) -> Tensor", reduce_prod);
  library.def("reduce_l1(Tensor x, int[] axes, bool keep) -> Tensor", reduce_l1);
  library.def("reduce_l2(Tensor x, int[] axes, bool keep) -> Tensor", reduce_l2);
  library.def("reduce_log_sum(Tensor x, int[] axes, bool keep) -> Tensor", reduce_log_sum);
  library.def("reduce_log_sum_exp(Tensor x, int[] axes, bool keep) -> Tensor", reduce_log_sum_exp);
  library.def("reduce_sum_square(Tensor x, int[] axes, bool keep) -> Tensor", reduce_sum_square);
  library.def("argmax_last(Tensor x, int axis, bool keep) -> Tensor", argmax_last);
  library.def("argmin_last(Tensor x, int axis, bool keep) -> Tensor", argmin_last);
}

}  // namespace galvani::onnx
