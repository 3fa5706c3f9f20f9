#include "galvani/coverage/nearest.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
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
      finite_(norms_.isfinite().all().item<bool>()) {}

template <class Bound, class Offer>
void NearestSearch::scan(const at::Tensor& queries, const Ranges& ranges, const Bound& bound,
                         const Offer& offer) const {
  auto m = static_cast<std::size_t>(queries.size(0));
  at::Tensor centred = queries - mean_;
  at::Tensor query_norms = centred.square().sum(1);
  const float* norm = norms_.data_ptr<float>();
  float slack = error_share(rows_.size(1));
  std::int64_t size = block_size(m);
  for (auto [range_begin, range_end] : ranges) {
    for (std::int64_t begin = range_begin; begin < range_end; begin += size) {
      std::int64_t count = std::min(size, range_end - begin);
      at::Tensor products = at::mm(centred, centred_.narrow(0, begin, count).t());
      for (std::size_t i = 0; i < m; ++i) {
        const float* product = products.data_ptr<float>() + static_cast<std::int64_t>(i) * count;
        float own = query_norms.data_ptr<float>()[i];
        if (!std::isfinite(own) || !finite_) {
          // Too large for single precision: every row is a candidate.
          for (std::int64_t j = 0; j < count; ++j) offer(i, Candidate{begin + j, 0}, std::numeric_limits<float>::max());
          continue;
        }
        // Most rows are far away: a group is looked at one by one only if its smallest lower bound says so.
        constexpr std::int64_t kGroup = 16;
        float least[kGroup];
        for (std::int64_t j = 0; j < count; j += kGroup) {
          std::int64_t group = std::min(kGroup, count - j);
          float smallest = std::numeric_limits<float>::max();
          for (std::int64_t lane = 0; lane < group; ++lane) {
            least[lane] = (own + norm[begin + j + lane]) * (1 - slack) - 2 * product[j + lane];
            smallest = std::min(smallest, least[lane]);
          }
          if (smallest > bound(i)) continue;
          for (std::int64_t lane = 0; lane < group; ++lane) {
            if (least[lane] > bound(i)) continue;
            offer(i, Candidate{begin + j + lane, least[lane]},
                  least[lane] + 2 * slack * (own + norm[begin + j + lane]));
          }
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
