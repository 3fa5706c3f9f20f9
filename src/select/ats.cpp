#include "select/ats.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "galvani/base/error.h"
#include "galvani/base/progress.h"
#include "galvani/base/runtime.h"
#include "select/builtin.h"

namespace galvani {
namespace {

constexpr double kSure = 0.99;      // outputs above are not looked at
constexpr double kRadius = 0.005;   // of the interval that an output covers, times its distance from being sure
constexpr std::int64_t kMany = 30;  // classes, above which only the most probable are paired
constexpr std::int64_t kFew = 8;

// Disjoint intervals of a line.
class CoveredLine {
 public:
  double missing(double low, double high) const {
    double length = high - low;
    auto it = before(low);
    for (; it != parts_.end() && it->first < high; ++it)
      length -= std::max(0.0, std::min(high, it->second) - std::max(low, it->first));
    return std::max(0.0, length);
  }
  void add(double low, double high) {
    auto it = before(low);
    if (it != parts_.end() && it->second < low) ++it;
    while (it != parts_.end() && it->first <= high) {
      low = std::min(low, it->first);
      high = std::max(high, it->second);
      it = parts_.erase(it);
    }
    parts_[low] = high;
  }

 private:
  // The last interval that begins at or before `at`, or the first of all.
  std::map<double, double>::const_iterator before(double at) const {
    auto it = parts_.upper_bound(at);
    return it == parts_.begin() ? it : std::prev(it);
  }
  std::map<double, double>::iterator before(double at) {
    auto it = parts_.upper_bound(at);
    return it == parts_.begin() ? it : std::prev(it);
  }
  std::map<double, double> parts_;
};

struct EdgeInterval {
  std::uint64_t edge;
  double low, high;
};

// What an output covers, edge by edge.
void intervals_of(const float* p, std::int64_t classes, std::int64_t most, std::vector<EdgeInterval>& out) {
  out.clear();
  auto i = std::max_element(p, p + classes) - p;
  std::vector<std::int64_t> others;
  for (std::int64_t c = 0; c < classes; ++c) {
    if (c != i) others.push_back(c);
  }
  if (static_cast<std::int64_t>(others.size()) > most) {
    std::partial_sort(others.begin(), others.begin() + most, others.end(),
                      [&](std::int64_t a, std::int64_t b) { return p[a] != p[b] ? p[a] > p[b] : a < b; });
    others.resize(static_cast<std::size_t>(most));
    std::sort(others.begin(), others.end());
  }
  for (std::size_t x = 0; x < others.size(); ++x) {
    for (std::size_t y = x + 1; y < others.size(); ++y) {
      double own = p[i], first = p[others[x]], second = p[others[y]];
      double top = (2 * own - first - second + 1) / 3;
      double left = (2 * first - own - second + 1) / 3;
      double right = (2 * second - own - first + 1) / 3;
      if (!(left + right > 0)) continue;
      double at = left / (left + right);
      double radius = kRadius * (kSure - top);
      if (!(radius > 0)) continue;
      auto edge = static_cast<std::uint64_t>((i * classes + others[x]) * classes + others[y]);
      out.push_back({edge, std::max(0.0, at - radius), std::min(1.0, at + radius)});
    }
  }
}

}  // namespace

std::vector<std::int64_t> ats_order(const float* probabilities, std::int64_t n, std::int64_t classes, std::int64_t most,
                                    std::vector<double>& lengths) {
  struct Entry {
    double gain;  // at most this
    std::int64_t row;
    bool operator<(const Entry& other) const { return gain != other.gain ? gain < other.gain : row > other.row; }
  };
  std::unordered_map<std::uint64_t, CoveredLine> lines;
  std::vector<EdgeInterval> intervals;
  // Not read from the queue: it is a sum over the edges of the output's own class, which others of that class change.
  auto gain_of = [&](std::int64_t row) {
    intervals_of(probabilities + row * classes, classes, most, intervals);
    double gain = 0;
    for (const EdgeInterval& interval : intervals) {
      auto line = lines.find(interval.edge);
      gain += line == lines.end() ? interval.high - interval.low : line->second.missing(interval.low, interval.high);
    }
    return gain;
  };
  std::vector<char> taken(static_cast<std::size_t>(n), 0), sure(static_cast<std::size_t>(n), 0);
  lengths.assign(static_cast<std::size_t>(n), 0);
  std::priority_queue<Entry> queue;
  for (std::int64_t row = 0; row < n; ++row) {
    const float* p = probabilities + row * classes;
    float largest = *std::max_element(p, p + classes);
    // A row of NaN is above nothing, and covers nothing.
    sure[static_cast<std::size_t>(row)] = largest > static_cast<float>(kSure) ? 1 : 0;
    if (largest <= static_cast<float>(kSure)) queue.push({gain_of(row), row});
  }
  std::vector<std::int64_t> order;
  constexpr double kNothing = 1e-15;
  while (!queue.empty()) {
    Entry top = queue.top();
    queue.pop();
    double gain = gain_of(top.row);
    if (!(gain > kNothing)) continue;
    if (gain < top.gain) {
      queue.push({gain, top.row});
      continue;
    }
    for (const EdgeInterval& interval : intervals) lines[interval.edge].add(interval.low, interval.high);
    taken[static_cast<std::size_t>(top.row)] = 1;
    lengths[static_cast<std::size_t>(top.row)] = gain;
    order.push_back(top.row);
  }
  std::vector<double> gini(static_cast<std::size_t>(n), 1);
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t c = 0; c < classes; ++c) {
      double p = probabilities[row * classes + c];
      gini[static_cast<std::size_t>(row)] -= p * p;
    }
    if (!(gini[static_cast<std::size_t>(row)] >= 0)) gini[static_cast<std::size_t>(row)] = 0;
  }
  auto rest = static_cast<std::ptrdiff_t>(order.size());
  for (std::int64_t row = 0; row < n; ++row) {
    if (taken[static_cast<std::size_t>(row)] == 0) order.push_back(row);
  }
  std::stable_sort(order.begin() + rest, order.end(), [&](std::int64_t a, std::int64_t b) {
    auto x = static_cast<std::size_t>(a), y = static_cast<std::size_t>(b);
    return sure[x] != sure[y] ? sure[x] < sure[y] : gini[x] > gini[y];
  });
  return order;
}

namespace {

class AdaptiveSelector : public Selector {
 public:
  explicit AdaptiveSelector(const SelectContext& context)
      : pool_(context.pool), classes_(context.network.info().classes) {}

  std::vector<std::string> notes() const override {
    if (classes_ <= kMany) return {};
    return {fmt::format("of {} classes the pairs of the {} most probable beside the verdict were looked at", classes_,
                        kFew)};
  }

 private:
  void run(const PoolPart& part, double*) override {
    if (!probabilities_.defined()) {
      auto bytes = static_cast<std::uint64_t>(pool_) * static_cast<std::uint64_t>(classes_) * 4;
      if (bytes > available_memory())
        bad_usage("ats needs the probabilities of a whole pool, {} of {} inputs: take fewer", format_bytes(bytes),
                  pool_);
      probabilities_ = at::empty({pool_, classes_});
    }
    probabilities_.narrow(0, part.rows[0], part.seen.size()).copy_(part.seen.probabilities);
  }
  std::vector<std::int64_t> run_order(std::vector<double>& scores) override {
    if (!probabilities_.defined()) return {};
    return ats_order(probabilities_.data_ptr<float>(), pool_, classes_, classes_ > kMany ? kFew : classes_, scores);
  }

  std::int64_t pool_;
  std::int64_t classes_;
  at::Tensor probabilities_;  // [pool, classes]
};

}  // namespace

SelectorEntry ats_entry() {
  return {"ats", "outputs that are far from those already taken (ATS)", {}, [](const Options&, const SelectContext& c) {
            return std::make_unique<AdaptiveSelector>(c);
          }};
}

}  // namespace galvani
