// Classic machine learning: trees, support vectors, what comes before and after them.
#include <torch/library.h>
#include <torch/script.h>

#include <cmath>
#include <limits>

#include "galvani/base/limits.h"
#include "model/onnx/runtime.h"
#include "model/onnx/trees.h"

namespace galvani::onnx {

namespace {

using at::Tensor;

// Follows a tree from its root to a leaf, whose place it gives. A tree has no cycle; one that has all the same ends.
std::int64_t leaf_of(const std::int64_t* nodes, const double* splits, const double* members, std::int64_t count,
                     std::int64_t at, const double* row) {
  for (std::int64_t steps = 0; steps <= count; ++steps) {
    const std::int64_t* node = nodes + at * kTreeColumns;
    if (node[kTreeMode] == kTreeLeaf) return at;
    double x = row[node[kTreeFeature]];
    bool yes = false;
    switch (node[kTreeMode]) {
      case 0:
        yes = x <= splits[at];
        break;
      case 1:
        yes = x < splits[at];
        break;
      case 2:
        yes = x >= splits[at];
        break;
      case 3:
        yes = x > splits[at];
        break;
      case 4:
        yes = x == splits[at];
        break;
      case 5:
        yes = x != splits[at];
        break;
      default:
        yes = std::find(members + node[kTreeBegin], members + node[kTreeEnd], x) != members + node[kTreeEnd];
    }
    if (std::isnan(x) && node[kTreeMissing] != 0) yes = true;
    at = yes ? node[kTreeYes] : node[kTreeNo];
  }
  TORCH_CHECK(false, "a tree has a cycle");
}

// [n, features] → [n, targets]: what the leaves give, put together by the function that `how` says.
Tensor trees(const Tensor& x, const Tensor& nodes, const Tensor& splits, const Tensor& members, const Tensor& roots,
             const Tensor& targets, const Tensor& weights, std::int64_t outputs, std::int64_t features,
             std::int64_t how) {
  TORCH_CHECK(x.dim() == 2 && x.size(1) >= features, "trees that read ", features, " features of a tensor of shape ",
              x.sizes());
  check_made({x.size(0), outputs});
  Tensor rows = x.to(at::kDouble).contiguous();
  Tensor result = at::zeros({x.size(0), outputs}, at::kDouble);
  const auto* node = nodes.data_ptr<std::int64_t>();
  const auto* target = targets.data_ptr<std::int64_t>();
  const auto* weight = weights.data_ptr<double>();
  const auto* root = roots.data_ptr<std::int64_t>();
  std::vector<bool> met(static_cast<std::size_t>(outputs));
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    check_step();
    double* sums = result.data_ptr<double>() + i * outputs;
    std::fill(met.begin(), met.end(), false);
    for (std::int64_t tree = 0; tree < roots.numel(); ++tree) {
      const double* row = rows.data_ptr<double>() + i * rows.size(1);
      std::int64_t leaf =
          leaf_of(node, splits.data_ptr<double>(), members.data_ptr<double>(), nodes.size(0), root[tree], row);
      const std::int64_t* entry = node + leaf * kTreeColumns;
      for (std::int64_t vote = entry[kTreeBegin]; vote < entry[kTreeEnd]; ++vote) {
        std::int64_t to = target[vote];
        if (how <= kTreesSum)
          sums[to] += weight[vote];
        else if (!met[to])
          sums[to] = weight[vote];
        else
          sums[to] = how == kTreesMin ? std::min(sums[to], weight[vote]) : std::max(sums[to], weight[vote]);
        met[to] = true;
      }
    }
  }
  if (how == kTreesAverage && roots.numel() > 0) result = result / static_cast<double>(roots.numel());
  return result;
}

// Products of rows with support vectors in the space of the kernel: 0 linear, 1 polynomial, 2 radial, 3 sigmoid.
Tensor kernel_products(const Tensor& x, const Tensor& vectors, std::int64_t kernel, double gamma, double shift,
                       double degree) {
  if (kernel == 2) {
    Tensor distances = (x.unsqueeze(1) - vectors.unsqueeze(0)).square().sum(-1);
    return at::exp(distances * -gamma);
  }
  Tensor products = at::matmul(x, vectors.t());
  if (kernel == 0) return products;
  products = products * gamma + shift;
  return kernel == 1 ? at::pow(products, degree) : at::tanh(products);
}

// Softmax that leaves zeros zero.
Tensor softmax_zero(const Tensor& x) {
  Tensor high = x.amax(1, true);
  Tensor zero = x.abs() <= 1e-7;
  Tensor powers = at::where(zero, x * at::exp(-high), at::exp(x - high));
  Tensor sum = powers.sum(1, true);
  return at::where(sum == 0, at::full_like(x, 0.5), powers / sum);
}

// Each value looked up among sorted keys.
Tensor look_up(const Tensor& x, const Tensor& keys, const Tensor& values, const Tensor& fallback) {
  if (keys.numel() == 0) return fallback.expand(x.sizes()).contiguous();
  Tensor place = at::searchsorted(keys, x.contiguous()).clamp_max(keys.numel() - 1);
  Tensor same = keys.index_select(0, place.reshape({-1})).reshape(x.sizes()) == x;
  // NaN comes last and is equal to itself here.
  if (at::isFloatingType(x.scalar_type()) && keys[-1].isnan().item<bool>()) {
    place = at::where(x.isnan(), at::full_like(place, keys.numel() - 1), place);
    same = same.logical_or(x.isnan());
  }
  return at::where(same, values.index_select(0, place.reshape({-1})).reshape(x.sizes()), fallback);
}

Tensor normalize_rows(const Tensor& x, std::int64_t norm) {
  Tensor divisor = norm == 0 ? x.amax(-1, true) : norm == 1 ? x.abs().sum(-1, true) : x.square().sum(-1, true).sqrt();
  return x / at::where(divisor == 0, at::ones_like(divisor), divisor);
}

Tensor pick_features(const Tensor& x, const Tensor& indices) {
  Tensor rows = x.dim() == 1 ? x.unsqueeze(0) : x;
  return rows.index_select(-1, indices.reshape({-1}));
}

Tensor join_features(const std::vector<Tensor>& parts) {
  std::vector<Tensor> rows;
  for (const Tensor& part : parts) rows.push_back(part.dim() == 1 ? part.unsqueeze(-1) : part.flatten(1));
  return at::cat(rows, 1);
}

}  // namespace

void define_ml(torch::Library& library) {
  library.def(
      "trees(Tensor x, Tensor nodes, Tensor splits, Tensor members, Tensor roots, Tensor targets, Tensor weights, "
      "int outputs, int features, int how) -> Tensor",
      trees);
  library.def("kernel_products(Tensor x, Tensor vectors, int kernel, float gamma, float shift, float degree) -> Tensor",
              kernel_products);
  library.def("softmax_zero(Tensor x) -> Tensor", softmax_zero);
  library.def("look_up(Tensor x, Tensor keys, Tensor values, Tensor fallback) -> Tensor", look_up);
  library.def("normalize_rows(Tensor x, int norm) -> Tensor", normalize_rows);
  library.def("pick_features(Tensor x, Tensor indices) -> Tensor", pick_features);
  library.def("join_features(Tensor[] parts) -> Tensor", join_features);
}

}  // namespace galvani::onnx
