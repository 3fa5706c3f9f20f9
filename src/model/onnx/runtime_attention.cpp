// Attention, and what goes with it in transformers.
#include <torch/library.h>
#include <torch/script.h>

#include <cmath>

#include "model/onnx/runtime.h"

namespace galvani::onnx {

namespace {

using at::Tensor;
using OptionalTensor = c10::optional<Tensor>;

// [b, s, heads · d] → [b, heads, s, d]
Tensor divide_heads(const Tensor& x, std::int64_t heads) {
  if (x.dim() != 3) return x;
  TORCH_CHECK(heads > 0 && x.size(2) % heads == 0, x.size(2), " values do not divide into ", heads, " heads");
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

// Which keys a query may see for its place: [s, t], or [b, 1, s, t] if `lengths` say how many keys of each sample
// count.
Tensor visible(std::int64_t queries, std::int64_t keys, std::int64_t past, const OptionalTensor& lengths, bool causal,
               std::int64_t left, std::int64_t right) {
  Tensor place = at::arange(keys);
  Tensor allowed = at::ones({queries, keys}, at::kBool);
  Tensor own = at::arange(queries).unsqueeze(-1) + past;
  if (lengths) {
    Tensor count = lengths->reshape({-1, 1, 1, 1});
    own = at::arange(queries).unsqueeze(-1) + (count - queries);
    allowed = allowed.logical_and(place < count);
  }
  if (causal) allowed = allowed.logical_and(place <= own);
  if (left >= 0) allowed = allowed.logical_and(own - place <= left);
  if (right >= 0) allowed = allowed.logical_and(place - own <= right);
  return allowed;
}

// 0 where the mask is true, minus infinity elsewhere.
Tensor as_bias(const Tensor& mask, const Tensor& like) {
  return at::zeros(mask.sizes(), like.options()).masked_fill(mask.logical_not(), -INFINITY);
}

// The file's mask as what is added to the scores; keys that it does not reach are not seen.
Tensor mask_bias(const Tensor& mask, const Tensor& scores) {
  Tensor bias = mask.scalar_type() == at::kBool ? as_bias(mask, scores) : mask.to(scores.scalar_type());
  std::int64_t missing = scores.size(3) - bias.size(-1);
  return missing > 0 && bias.size(-1) != 1 ? at::constant_pad_nd(bias, {0, missing}, -INFINITY) : bias;
}

// ONNX Attention: result, keys and values with the past ones before them, scores at the stage that `stage` says.
std::tuple<Tensor, Tensor, Tensor, Tensor> attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                                     const OptionalTensor& mask, const OptionalTensor& past_key,
                                                     const OptionalTensor& past_value, const OptionalTensor& lengths,
                                                     std::int64_t query_heads, std::int64_t key_heads,
                                                     c10::optional<double> scale, bool causal, double cap,
                                                     std::int64_t stage, std::int64_t left, std::int64_t right,
                                                     std::int64_t precision) {
  Tensor q = divide_heads(query, query_heads);
  Tensor all_keys = divide_heads(key, key_heads);
  Tensor all_values = divide_heads(value, key_heads);
  TORCH_CHECK(q.dim() == 4 && all_keys.dim() == 4 && all_values.dim() == 4, "queries, keys or values of ", q.dim(),
              ", ", all_keys.dim(), " and ", all_values.dim(), " axes");
  std::int64_t past = past_key ? past_key->size(2) : 0;
  if (past_key) all_keys = at::cat({*past_key, all_keys}, 2);
  if (past_value) all_values = at::cat({*past_value, all_values}, 2);
  Tensor k = all_keys, v = all_values;
  if (q.size(1) != k.size(1)) {
    TORCH_CHECK(k.size(1) > 0 && q.size(1) % k.size(1) == 0, q.size(1), " heads of queries for ", k.size(1),
                " of keys");
    k = k.repeat_interleave(q.size(1) / k.size(1), 1);
    v = v.repeat_interleave(q.size(1) / v.size(1), 1);
  }
  // The root goes to both sides, so that large products do not overflow.
  double root = std::sqrt(scale ? *scale : 1.0 / std::sqrt(static_cast<double>(q.size(3))));
  Tensor scores = at::matmul(q * root, k.transpose(-1, -2) * root);
  Tensor shown = scores;
  if (cap > 0) scores = at::tanh(scores / cap) * cap;
  if (stage == 1) shown = scores;
  Tensor bias;
  if (mask) bias = mask_bias(*mask, scores);
  if (causal || left >= 0 || right >= 0 || lengths) {
    Tensor placed = as_bias(visible(q.size(2), k.size(2), past, lengths, causal, left, right), scores);
    bias = bias.defined() ? bias + placed : placed;
  }
  if (bias.defined()) scores = scores + bias;
  if (stage == 2) shown = scores;
  if (precision >= 0) scores = scores.to(static_cast<at::ScalarType>(precision));
  Tensor weights = at::softmax(scores, -1).to(q.scalar_type());
  // A query that sees nothing takes nothing.
  if (bias.defined()) weights = weights.masked_fill((bias == -INFINITY).all(-1, true), 0);
  if (stage == 3) shown = weights;
  Tensor result = at::matmul(weights, v);
  if (query.dim() == 3) result = result.transpose(1, 2).flatten(2);
  return {result, all_keys, all_values, shown};
}

// Turns pairs of values by angles whose cosines and sines are given: halves of the head against each other, or
// neighbours if `interleaved`.
Tensor rotary_embedding(const Tensor& x, const Tensor& cosines, const Tensor& sines, const OptionalTensor& positions,
                        std::int64_t heads, std::int64_t turned, bool interleaved) {
  Tensor parts = x.dim() == 3 ? divide_heads(x, heads) : x;
  TORCH_CHECK(parts.dim() == 4, "a tensor of ", x.dim(), " axes");
  if (turned == 0) turned = parts.size(3);
  TORCH_CHECK(turned > 0 && turned % 2 == 0 && turned <= parts.size(3), "turns ", turned, " of ", parts.size(3),
              " values");
  // [b, s, turned / 2] → [b, 1, s, turned / 2]
  auto cache = [&](const Tensor& from) { return (positions ? from.index({*positions}) : from).unsqueeze(1); };
  Tensor c = cache(cosines), s = cache(sines);
  Tensor moving = parts.slice(3, 0, turned), still = parts.slice(3, turned);
  Tensor a = interleaved ? moving.slice(3, 0, turned, 2) : moving.slice(3, 0, turned / 2);
  Tensor b = interleaved ? moving.slice(3, 1, turned, 2) : moving.slice(3, turned / 2);
  TORCH_CHECK(c.size(-1) == turned / 2 && s.size(-1) == turned / 2, "angles for ", c.size(-1), " pairs of ",
              turned / 2);
  Tensor real = c * a - s * b;
  Tensor imaginary = s * a + c * b;
  Tensor done = interleaved ? at::stack({real, imaginary}, -1).flatten(-2) : at::cat({real, imaginary}, -1);
  done = at::cat({done, still}, -1);
  return x.dim() == 3 ? done.transpose(1, 2).flatten(2) : done;
}

// Writes `update` into the cache along the axis, each sample from its own index on.
Tensor tensor_scatter(const Tensor& cache, const Tensor& update, const OptionalTensor& indices, std::int64_t axis,
                      bool circular) {
  axis = wrap(axis, cache.dim());
  TORCH_CHECK(axis > 0 && update.dim() == cache.dim(), "an update of ", update.dim(), " axes for ", cache.dim());
  Tensor first = indices ? indices->reshape({-1, 1}) : at::zeros({cache.size(0), 1}, at::kLong);
  Tensor at = first + at::arange(update.size(axis));
  if (circular) at = at::remainder(at, cache.size(axis));
  std::vector<std::int64_t> shape(cache.dim(), 1);
  shape[0] = at.size(0);
  shape[axis] = at.size(1);
  return cache.scatter(axis, at.reshape(shape).expand(update.sizes()), update);
}

}  // namespace

void define_attention(torch::Library& library) {
  library.def(
      "attention(Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor? past_key, Tensor? past_value, "
      "Tensor? lengths, int query_heads, int key_heads, float? scale, bool causal, float cap, int stage, int left, "
      "int right, int precision) -> (Tensor, Tensor, Tensor, Tensor)",
      attention);
  library.def(
      "rotary_embedding(Tensor x, Tensor cosines, Tensor sines, Tensor? positions, int heads, int turned, "
      "bool interleaved) -> Tensor",
      rotary_embedding);
  library.def("tensor_scatter(Tensor cache, Tensor update, Tensor? indices, int axis, bool circular) -> Tensor",
              tensor_scatter);
}

}  // namespace galvani::onnx
