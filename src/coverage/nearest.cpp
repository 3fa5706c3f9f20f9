#include "galvani/coverage/nearest.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace galvani {
namespace {

// Products at a time: what stays in the cache between being computed and being looked at.
constexpr std::int64_t kProducts = 1 << 17;

std::int64_t block_size(std::size_t rows) {
  return std::clamp<std::int64_t>(kProducts / static_cast<std::int64_t>(rows), 256, 4096);
}

// |a|²+|b|²-2ab in single precision is off by at most this times |a|²+|b|², for vectors of that width.
float error_share(std::int64_t width) {
  return 4 * std::numeric_limits<float>::epsilon() * (static_cast<float>(width) + 8);
}

// Rows of up to this width are not worth a matrix product, most of whose time would go into storing the products.
constexpr std::int64_t kNarrow = 32;
constexpr std::int64_t kGroup = 16;

constexpr std::int64_t kAtOnce = 4;  // queries that share what is read of a group

using Lanes = float __attribute__((vector_size(64)));

// What some queries ask of a block of groups: rows stored column by column, sixteen at a time.
struct NarrowQueries {
  const float* columns;  // [groups, width, kGroup]
  const float* norms;    // [groups, kGroup], lowered by their possible error
  std::int64_t groups;
  std::int64_t width;
  const float* twice;  // [kAtOnce, width]: the queries, times two
  const float* own;    // [kAtOnce]: their norms, lowered likewise
};

// The smaller of each lane and the one of that number.
template <int... Numbers>
[[gnu::always_inline]] inline void take_less(Lanes& values) {
  Lanes other = __builtin_shufflevector(values, values, Numbers...);
  values = values < other ? values : other;
}

// The smallest lower bound of squared distances in each group, [kAtOnce, groups].
[[gnu::always_inline]] inline void least_of_groups(const NarrowQueries& q, float* out) {
  for (std::int64_t g = 0; g < q.groups; ++g) {
    const float* column = q.columns + g * q.width * kGroup;
    Lanes norms, row, sums[kAtOnce];
    std::memcpy(&norms, q.norms + g * kGroup, sizeof norms);
    for (Lanes& sum : sums) sum = norms;
    for (std::int64_t j = 0; j < q.width; ++j, column += kGroup) {
      std::memcpy(&row, column, sizeof row);
      for (std::int64_t i = 0; i < kAtOnce; ++i) sums[i] -= q.twice[i * q.width + j] * row;
    }
    for (std::int64_t i = 0; i < kAtOnce; ++i) {
      take_less<8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7>(sums[i]);
      take_less<4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11>(sums[i]);
      take_less<2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13>(sums[i]);
      take_less<1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14>(sums[i]);
      out[i * q.groups + g] = sums[i][0] + q.own[i];
    }
  }
}

void least_of_groups_anywhere(const NarrowQueries& q, float* out) {
  least_of_groups(q, out);
}

[[gnu::target("avx2")]] void least_of_groups_wide(const NarrowQueries& q, float* out) {
  least_of_groups(q, out);
}

[[gnu::target("avx512f")]] void least_of_groups_widest(const NarrowQueries& q, float* out) {
  least_of_groups(q, out);
}

using LeastOfGroups = void (*)(const NarrowQueries&, float*);

LeastOfGroups best_loop() {
  if (__builtin_cpu_supports("avx512f") != 0) return least_of_groups_widest;
  return __builtin_cpu_supports("avx2") != 0 ? least_of_groups_wide : least_of_groups_anywhere;
}

}  // namespace

double squared_distance(const float* a, const float* b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t j = 0; j < width; ++j) {
    double difference = static_cast<double>(a[j]) - static_cast<double>(b[j]);
    sum += difference * difference;
  }
  return sum;
}

std::vector<char> rows_within(const std::vector<const float*>& rows, const std::vector<float>& stored,
                              std::int64_t width, double radius) {
  std::vector<char> within(rows.size(), 0);
  auto n = static_cast<std::int64_t>(stored.size()) / width;
  if (n == 0) return within;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < rows.size(); ++i) open.push_back(i);
  at::Tensor all = at::from_blob(const_cast<float*>(stored.data()), {n, width}, at::kFloat);
  // Newest first: an input often resembles one that was kept lately.
  std::int64_t size = block_size(rows.size());
  for (std::int64_t end = n; end > 0 && !open.empty(); end -= size) {
    std::int64_t begin = std::max<std::int64_t>(0, end - size);
    at::Tensor block = all.narrow(0, begin, end - begin);
    at::Tensor norms = block.square().sum(1);
    at::Tensor queries = at::empty({static_cast<std::int64_t>(open.size()), width});
    for (std::size_t i = 0; i < open.size(); ++i)
      std::copy_n(rows[open[i]], width, queries.data_ptr<float>() + static_cast<std::int64_t>(i) * width);
    at::Tensor query_norms = queries.square().sum(1);
    at::Tensor products = at::mm(queries, block.t());
    std::vector<std::size_t> still_open;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const float* product = products.data_ptr<float>() + static_cast<std::int64_t>(i) * (end - begin);
      const float* norm = norms.data_ptr<float>();
      float own = query_norms.data_ptr<float>()[i];
      bool found = false;
      for (std::int64_t j = 0; j < end - begin && !found; ++j) {
        float norm_sum = own + norm[j];
        float distance = norm_sum - 2 * product[j];
        if (distance > static_cast<float>(radius) + error_share(width) * norm_sum) continue;
        found = squared_distance(rows[open[i]], stored.data() + (begin + j) * width, width) <= radius;
      }
      if (found) {
        within[open[i]] = 1;
      } else {
        still_open.push_back(open[i]);
      }
    }
    open = std::move(still_open);
  }
  return within;
}

NearestSearch::NearestSearch(const at::Tensor& rows)
    : rows_(rows.contiguous()),
      mean_(rows.size(0) > 0 ? rows.mean(0) : at::zeros({rows.size(1)})),
      centred_((rows_ - mean_).contiguous()),
      norms_(centred_.square().sum(1)),
      finite_(norms_.isfinite().all().item<bool>()) {
  std::int64_t n = rows_.size(0), width = rows_.size(1);
  if (width > kNarrow || !finite_ || n == 0) return;
  // Filled up with rows that are farther away than any.
  std::int64_t groups = (n + kGroup - 1) / kGroup;
  at::Tensor padded = at::zeros({groups * kGroup, width});
  padded.narrow(0, 0, n).copy_(centred_);
  columns_ = padded.view({groups, kGroup, width}).transpose(1, 2).contiguous();
  lowered_ = at::full({groups * kGroup}, std::numeric_limits<float>::max());
  lowered_.narrow(0, 0, n).copy_(norms_ * (1 - error_share(width)));
}

template <class Bound, class Offer>
void NearestSearch::scan(const at::Tensor& queries, const Ranges& ranges, const Bound& bound,
                         const Offer& offer) const {
  auto m = static_cast<std::size_t>(queries.size(0));
  at::Tensor centred = queries - mean_;
  at::Tensor query_norms = centred.square().sum(1);
  const float* norm = norms_.data_ptr<float>();
  float slack = error_share(rows_.size(1));
  std::int64_t size = block_size(m);
  auto offer_row = [&](std::size_t i, float own, std::int64_t row, float product) {
    // Too large for single precision: every row is a candidate.
    if (!std::isfinite(own) || !finite_) return offer(i, Candidate{row, 0}, std::numeric_limits<float>::max());
    float least = (own + norm[row]) * (1 - slack) - 2 * product;
    if (least <= bound(i)) offer(i, Candidate{row, least}, least + 2 * slack * (own + norm[row]));
  };
  for (auto [range_begin, range_end] : ranges) {
    for (std::int64_t begin = range_begin; begin < range_end; begin += size) {
      std::int64_t count = std::min(size, range_end - begin);
      if (columns_.defined()) {
        scan_narrow(centred, query_norms, begin, begin + count, bound, offer_row);
        continue;
      }
      at::Tensor products = at::mm(centred, centred_.narrow(0, begin, count).t());
      for (std::size_t i = 0; i < m; ++i) {
        const float* product = products.data_ptr<float>() + static_cast<std::int64_t>(i) * count;
        float own = query_norms.data_ptr<float>()[i];
        // Most rows are far away: a group is looked at one by one only if its smallest lower bound says so.
        for (std::int64_t j = 0; j < count; j += kGroup) {
          std::int64_t group = std::min(kGroup, count - j);
          float smallest = std::numeric_limits<float>::max();
          for (std::int64_t lane = 0; lane < group; ++lane)
            smallest = std::min(smallest, (own + norm[begin + j + lane]) * (1 - slack) - 2 * product[j + lane]);
          if (std::isfinite(own) && finite_ && smallest > bound(i)) continue;
          for (std::int64_t lane = 0; lane < group; ++lane) offer_row(i, own, begin + j + lane, product[j + lane]);
        }
      }
    }
  }
}

// Rows [begin, end), groups that reach beyond included where they are only counted out.
template <class Bound, class OfferRow>
void NearestSearch::scan_narrow(const at::Tensor& centred, const at::Tensor& query_norms, std::int64_t begin,
                                std::int64_t end, const Bound& bound, const OfferRow& offer_row) const {
  static const LeastOfGroups least_of = best_loop();
  std::int64_t width = rows_.size(1), queries = centred.size(0);
  std::int64_t first = begin / kGroup, groups = (end + kGroup - 1) / kGroup - first;
  const float* all_queries = centred.data_ptr<float>();
  const float* all_norms = query_norms.data_ptr<float>();
  const float* all_rows = centred_.data_ptr<float>();
  float lowering = 1 - error_share(width);
  std::vector<float> least(static_cast<std::size_t>(kAtOnce * groups)),
      twice(static_cast<std::size_t>(kAtOnce * width));
  float own[kAtOnce] = {};
  for (std::int64_t some = 0; some < queries; some += kAtOnce) {
    std::int64_t count = std::min(kAtOnce, queries - some);
    for (std::int64_t i = 0; i < count; ++i) own[i] = all_norms[some + i] * lowering;
    std::transform(all_queries + some * width, all_queries + (some + count) * width, twice.begin(),
                   [](float x) { return 2 * x; });
    least_of({columns_.data_ptr<float>() + first * width * kGroup, lowered_.data_ptr<float>() + first * kGroup, groups,
              width, twice.data(), own},
             least.data());
    for (std::int64_t i = some; i < some + count; ++i) {
      auto at = static_cast<std::size_t>(i);
      bool finite = std::isfinite(all_norms[i]);
      const float* query = all_queries + i * width;
      const float* least_of_query = least.data() + (i - some) * groups;
      for (std::int64_t g = 0; g < groups; ++g) {
        if (finite && least_of_query[g] > bound(at)) continue;
        std::int64_t last = std::min(end, (first + g + 1) * kGroup);
        for (std::int64_t row = std::max(begin, (first + g) * kGroup); row < last; ++row) {
          float product = 0;
          for (std::int64_t j = 0; j < width; ++j) product += query[j] * all_rows[row * width + j];
          offer_row(at, all_norms[i], row, product);
        }
      }
    }
  }
}

std::vector<Nearest> NearestSearch::nearest(const at::Tensor& queries, const Ranges& ranges) const {
  std::int64_t width = rows_.size(1);
  auto m = static_cast<std::size_t>(queries.size(0));
  at::Tensor exact = queries.contiguous();
  std::vector<std::vector<Candidate>> candidates(m);
  std::vector<float> bound(m, std::numeric_limits<float>::max());  // the smallest distance is at most this
  scan(
      exact, ranges, [&](std::size_t i) { return bound[i]; },
      [&](std::size_t i, const Candidate& candidate, float most) {
        candidates[i].push_back(candidate);
        bound[i] = std::min(bound[i], most);
      });
  std::vector<Nearest> result(m);
  for (std::size_t i = 0; i < m; ++i) {
    const float* query = exact.data_ptr<float>() + static_cast<std::int64_t>(i) * width;
    double best = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : candidates[i]) {
      if (candidate.least > bound[i]) continue;
      double distance = squared_distance(query, rows_.data_ptr<float>() + candidate.index * width, width);
      if (distance < best) {
        best = distance;
        result[i] = {candidate.index, distance};
      }
    }
  }
  return result;
}

std::vector<std::vector<Nearest>> NearestSearch::nearest_k(const at::Tensor& queries, std::int64_t k) const {
  std::int64_t width = rows_.size(1);
  auto m = static_cast<std::size_t>(queries.size(0));
  auto most_wanted = static_cast<std::size_t>(std::min(k, rows_.size(0)));
  std::vector<std::vector<Nearest>> result(m);
  if (most_wanted == 0) return result;
  at::Tensor exact = queries.contiguous();
  std::vector<std::vector<Candidate>> candidates(m);
  // The k smallest of what distances are at most, the largest of them in front: no other row needs to be nearer.
  std::vector<std::vector<float>> heaps(m);
  auto bound = [&](std::size_t i) {
    return heaps[i].size() < most_wanted ? std::numeric_limits<float>::max() : heaps[i].front();
  };
  scan(exact, {{0, rows_.size(0)}}, bound, [&](std::size_t i, const Candidate& candidate, float most) {
    candidates[i].push_back(candidate);
    std::vector<float>& heap = heaps[i];
    if (heap.size() == most_wanted) {
      if (most >= heap.front()) return;
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
    }
    heap.push_back(most);
    std::push_heap(heap.begin(), heap.end());
  });
  for (std::size_t i = 0; i < m; ++i) {
    const float* query = exact.data_ptr<float>() + static_cast<std::int64_t>(i) * width;
    std::vector<Nearest>& found = result[i];
    for (const Candidate& candidate : candidates[i]) {
      if (candidate.least > bound(i)) continue;
      found.push_back(
          {candidate.index, squared_distance(query, rows_.data_ptr<float>() + candidate.index * width, width)});
    }
    auto nearer = [](const Nearest& a, const Nearest& b) {
      return a.squared_distance != b.squared_distance ? a.squared_distance < b.squared_distance : a.index < b.index;
    };
    std::size_t kept = std::min(most_wanted, found.size());
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kept), found.end(), nearer);
    found.resize(kept);
  }
  return result;
}

}  // namespace galvani
