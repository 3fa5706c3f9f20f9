#include "galvani/report/tsne.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/rng.h"
#include "report/quadtree.h"

namespace galvani {
namespace {

constexpr std::int64_t kMostComponents = 50;
constexpr std::int64_t kRowsOfATask = 64;
constexpr std::int64_t kExaggerated = 250;  // steps, of a thousand
constexpr double kExaggeration = 12;
constexpr double kStart = 1e-4;  // how far apart points are at first
constexpr double kLeastGain = 0.01;

using MapPoints = std::vector<std::array<double, 2>>;

void for_rows(std::int64_t n, const std::function<void(std::int64_t)>& row) {
  workers().run((n + kRowsOfATask - 1) / kRowsOfATask, [&](std::int64_t task, int) {
    for (std::int64_t i = task * kRowsOfATask; i < std::min(n, (task + 1) * kRowsOfATask); ++i) row(i);
  });
}

// The points along their principal components, most important first: [N, k] double.
at::Tensor components(const at::Tensor& points) {
  at::Tensor centred = points.to(at::kDouble);
  centred = centred - centred.mean(0, true);
  std::int64_t n = centred.size(0), d = centred.size(1), k = std::min({kMostComponents, n, d});
  // Of the smaller of the two matrices that have the same eigenvalues.
  bool wide = d > n;
  auto [values, vectors] = at::linalg_eigh(wide ? centred.mm(centred.t()) : centred.t().mm(centred), "L");
  at::Tensor order = at::arange(values.size(0) - 1, values.size(0) - 1 - k, -1, at::kLong);
  at::Tensor axes = vectors.index_select(1, order);
  at::Tensor along = wide ? axes * values.index_select(0, order).clamp_min(0).sqrt() : centred.mm(axes);
  // An axis has two directions: the one in which the farthest point lies.
  at::Tensor farthest = along.gather(0, along.abs().argmax(0, true));
  return (along * at::where(farthest < 0, at::full_like(farthest, -1), at::full_like(farthest, 1))).contiguous();
}

// How much each point is a neighbour of each other, row by row; symmetric, adding up to 1.
struct Neighbourhoods {
  std::vector<std::int64_t> first;  // [N + 1]: where a row begins
  std::vector<std::int64_t> other;
  std::vector<double> share;
};

// Shares of the neighbours at these squared distances, as sharp as makes the perplexity right.
std::vector<double> shares_of(const std::vector<double>& distances, double perplexity) {
  double nearest = *std::min_element(distances.begin(), distances.end());
  double low = 0, high = std::numeric_limits<double>::infinity();
  std::vector<double> shares(distances.size());
  double mean = 0;
  for (double distance : distances) mean += (distance - nearest) / static_cast<double>(distances.size());
  double sharpness = mean > 0 ? 1 / mean : 1;
  for (int tries = 0; tries < 100; ++tries) {
    double sum = 0, moment = 0;
    for (std::size_t j = 0; j < distances.size(); ++j) {
      double beyond = distances[j] - nearest;
      shares[j] = std::exp(-sharpness * beyond);
      sum += shares[j];
      moment += shares[j] * beyond;
    }
    double entropy = std::log(sum) + sharpness * moment / sum;
    for (double& share : shares) share /= sum;
    double off = entropy - std::log(perplexity);
    if (std::abs(off) < 1e-7 || mean == 0) break;
    (off > 0 ? low : high) = sharpness;
    sharpness = std::isinf(high) ? sharpness * 2 : (low + high) / 2;
  }
  return shares;
}

Neighbourhoods neighbourhoods(const at::Tensor& points, std::int64_t count, double perplexity) {
  std::int64_t n = points.size(0);
  std::vector<std::vector<std::pair<std::int64_t, double>>> rows(static_cast<std::size_t>(n));
  at::Tensor lengths = (points * points).sum(1);
  workers().run((n + kRowsOfATask - 1) / kRowsOfATask, [&](std::int64_t task, int) {
    std::int64_t begin = task * kRowsOfATask, rows_here = std::min(kRowsOfATask, n - begin);
    at::Tensor some = points.narrow(0, begin, rows_here);
    at::Tensor distances =
        (lengths.narrow(0, begin, rows_here).unsqueeze(1) + lengths.unsqueeze(0) - 2 * some.mm(points.t()))
            .clamp_min(0)
            .contiguous();
    std::vector<std::int64_t> order;
    for (std::int64_t r = 0; r < rows_here; ++r) {
      const double* of = distances.data_ptr<double>() + r * n;
      order.clear();
      for (std::int64_t j = 0; j < n; ++j) {
        if (j != begin + r) order.push_back(j);
      }
      auto nearer = [of](std::int64_t a, std::int64_t b) { return of[a] != of[b] ? of[a] < of[b] : a < b; };
      if (count < n - 1) {
        std::nth_element(order.begin(), order.begin() + count, order.end(), nearer);
        order.resize(static_cast<std::size_t>(count));
        std::sort(order.begin(), order.end());
      }
      std::vector<double> own;
      for (std::int64_t j : order) own.push_back(of[j]);
      std::vector<double> shares = shares_of(own, perplexity);
      auto& row = rows[static_cast<std::size_t>(begin + r)];
      for (std::size_t j = 0; j < order.size(); ++j) row.emplace_back(order[j], shares[j]);
    }
  });
  // Both directions: p(i|j) + p(j|i), over 2 N.
  std::vector<std::vector<std::pair<std::int64_t, double>>> both = rows;
  for (std::int64_t i = 0; i < n; ++i) {
    for (auto [j, share] : rows[static_cast<std::size_t>(i)]) both[static_cast<std::size_t>(j)].emplace_back(i, share);
  }
  Neighbourhoods result;
  for (auto& row : both) {
    result.first.push_back(static_cast<std::int64_t>(result.other.size()));
    std::sort(row.begin(), row.end());
    for (auto [j, share] : row) {
      bool again = static_cast<std::int64_t>(result.other.size()) > result.first.back() && result.other.back() == j;
      if (again) {
        result.share.back() += share / (2 * static_cast<double>(n));
      } else {
        result.other.push_back(j);
        result.share.push_back(share / (2 * static_cast<double>(n)));
      }
    }
  }
  result.first.push_back(static_cast<std::int64_t>(result.other.size()));
  return result;
}

class MapMaker {
 public:
  MapMaker(const at::Tensor& points, const TsneOptions& options) : options_(options), n_(points.size(0)) {
    map_.exact = n_ <= options.exact;
    map_.perplexity = std::min(options.perplexity, static_cast<double>(n_ - 1) / 3);
    at::Tensor along = components(points);
    auto count = map_.exact ? n_ - 1 : std::min(n_ - 1, static_cast<std::int64_t>(3 * map_.perplexity));
    near_ = neighbourhoods(along, count, map_.perplexity);
    start(along);
  }

  TsneMap run() {
    Progress progress("t-SNE", options_.iterations, "steps");
    std::int64_t exaggerated = options_.iterations * kExaggerated / 1000;
    for (std::int64_t step = 0; step < options_.iterations; ++step) {
      check_interrupt();
      bool early = step < exaggerated;
      repel();
      move(early ? kExaggeration : 1, early ? 0.5 : 0.8);
      progress.advance();
    }
    repel();
    map_.divergence = divergence();
    return std::move(map_);
  }

 private:
  void start(const at::Tensor& along) {
    const double* values = along.data_ptr<double>();
    std::int64_t k = along.size(1);
    auto size = along.select(1, 0).std().item<double>();
    Rng rng = Rng(options_.seed).derive("t-SNE");
    for (std::int64_t i = 0; i < n_; ++i) {
      // Points that are the same must be able to part.
      std::array<double, 2> at{0.01 * kStart * rng.normal(), 0.01 * kStart * rng.normal()};
      for (std::int64_t axis = 0; axis < std::min<std::int64_t>(2, k) && size > 0; ++axis)
        at[static_cast<std::size_t>(axis)] += kStart * values[i * k + axis] / size;
      map_.points.push_back(at);
    }
    moves_.assign(map_.points.size(), {0, 0});
    gains_.assign(map_.points.size(), {1, 1});
    away_.resize(map_.points.size());
    closeness_.resize(map_.points.size());
  }

  // Where all others push a point, and the sum of 1/(1 + d²) of it.
  void repel() {
    const MapPoints& at = map_.points;
    std::optional<QuadTree> tree;
    if (!map_.exact) tree.emplace(at);
    for_rows(n_, [&](std::int64_t row) {
      auto i = static_cast<std::size_t>(row);
      QuadTree::Push push;
      if (tree) {
        push = tree->push(i, options_.theta);
      } else {
        for (std::size_t j = 0; j < at.size(); ++j) {
          if (j != i) push.add(at[i], at[j], 1);
        }
      }
      away_[i] = push.force;
      closeness_[i] = push.closeness;
    });
    total_ = 0;
    for (double own : closeness_) total_ += own;
  }

  void move(double exaggeration, double momentum) {
    const MapPoints at = map_.points;
    double rate = std::max(static_cast<double>(n_) / kExaggeration / 4, 50.0);
    for_rows(n_, [&](std::int64_t row) {
      auto i = static_cast<std::size_t>(row);
      std::array<double, 2> pull{0, 0};
      for (std::int64_t e = near_.first[i]; e < near_.first[i + 1]; ++e) {
        const auto& other = at[static_cast<std::size_t>(near_.other[static_cast<std::size_t>(e)])];
        double x = at[i][0] - other[0], y = at[i][1] - other[1];
        double weight = near_.share[static_cast<std::size_t>(e)] / (1 + x * x + y * y);
        pull[0] += weight * x;
        pull[1] += weight * y;
      }
      for (std::size_t axis = 0; axis < 2; ++axis) {
        double slope = 4 * (exaggeration * pull[axis] - away_[i][axis] / total_);
        double& gain = gains_[i][axis];
        gain = (slope > 0) != (moves_[i][axis] > 0) ? gain + 0.2 : std::max(kLeastGain, gain * 0.8);
        moves_[i][axis] = momentum * moves_[i][axis] - rate * gain * slope;
        map_.points[i][axis] += moves_[i][axis];
      }
    });
    std::array<double, 2> centre{0, 0};
    for (const auto& point : map_.points) {
      for (std::size_t axis = 0; axis < 2; ++axis) centre[axis] += point[axis] / static_cast<double>(n_);
    }
    for (auto& point : map_.points) {
      for (std::size_t axis = 0; axis < 2; ++axis) point[axis] -= centre[axis];
    }
  }

  double divergence() const {
    double sum = 0;
    for (std::size_t i = 0; i < map_.points.size(); ++i) {
      for (std::int64_t e = near_.first[i]; e < near_.first[i + 1]; ++e) {
        const auto& other = map_.points[static_cast<std::size_t>(near_.other[static_cast<std::size_t>(e)])];
        double x = map_.points[i][0] - other[0], y = map_.points[i][1] - other[1];
        double share = near_.share[static_cast<std::size_t>(e)];
        if (share > 0) sum += share * std::log(share * total_ * (1 + x * x + y * y));
      }
    }
    return sum;
  }

  const TsneOptions& options_;
  std::int64_t n_;
  Neighbourhoods near_;
  TsneMap map_;
  MapPoints moves_, gains_, away_;
  std::vector<double> closeness_;
  double total_ = 0;
};

}  // namespace

TsneMap tsne(const at::Tensor& points, const TsneOptions& options) {
  if (points.dim() != 2 || points.size(0) < 4 || points.size(1) < 1) bad_usage("t-SNE needs four points at least");
  if (!points.isfinite().all().item<bool>()) bad_input("t-SNE needs points of finite numbers");
  if (!(options.perplexity >= 1)) bad_usage("a perplexity is 1 at least");
  return MapMaker(points, options).run();
}

}  // namespace galvani
