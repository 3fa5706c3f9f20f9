// Neural coverage (Yuan et al. 2023): how widely, and how much together, the neurons of a tap vary.
#include <algorithm>
#include <cmath>

#include "coverage/builtin.h"
#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/runtime.h"

namespace galvani {
namespace {

// Mean and covariance of one tap, and the mean size of the covariance's entries. Only the upper triangle is kept.
struct Moments {
  double count = 0;
  double norm = 0;
  std::vector<double> mean;
  std::vector<double> covariance;  // row by row from the diagonal on, over `count`
};

class NeuralCoverage : public Criterion {
 public:
  NeuralCoverage(const Options& options, const CriterionContext& context)
      : Criterion(context.layout), free_(options.text("order") == "free") {
    double bytes = 0;
    for (const TraceBlock& block : context.layout.blocks)
      bytes += static_cast<double>(block.count) * static_cast<double>(block.count) * 4;
    if (bytes > static_cast<double>(available_memory()) / 2)
      bad_usage(
          "nlc keeps the covariances of every tap, here {}: more than half of the free memory; observe fewer or "
          "smaller taps (--taps, --neurons channel)",
          format_bytes(static_cast<std::uint64_t>(bytes)));
    run_reset();
  }

  CriterionTraits traits() const override { return {free_, free_, !free_, !free_}; }

  Covered covered() const override {
    double sum = 0;
    for (const Moments& tap : taps_) sum += tap.norm;
    return {sum, 0};
  }

  std::vector<TapCovered> by_tap() const override {
    std::vector<TapCovered> result;
    for (std::size_t i = 0; i < taps_.size(); ++i) result.push_back({layout().blocks[i].tap, {taps_[i].norm, 0}});
    return result;
  }

 private:
  static std::size_t triangle(std::size_t width) { return width * (width + 1) / 2; }

  // (1-w)·(C + w·δδᵀ) for the upper triangle, w = 1/(n+1): what the covariance becomes with one more input, whose
  // distance from the mean is δ. Returns the mean |entry| of the whole matrix; writes to `out` unless it is null.
  static double with_one_more(const Moments& tap, const std::vector<double>& delta, double* out) {
    double w = 1 / (tap.count + 1);
    std::size_t width = delta.size();
    const double* c = tap.covariance.data();
    double off_diagonal = 0;
    double diagonal = 0;
    for (std::size_t i = 0; i < width; ++i) {
      double scaled = w * delta[i];
      double first = (1 - w) * (c[0] + scaled * delta[i]);
      diagonal += std::abs(first);
      if (out != nullptr) out[0] = first;
      // Four sums, so that the compiler may use vectors without changing the order of additions.
      double sums[4] = {0, 0, 0, 0};
      std::size_t n = width - i;
      const double* d = delta.data() + i;
      std::size_t j = 1;
      for (; j + 4 <= n; j += 4) {
        for (std::size_t lane = 0; lane < 4; ++lane) {
          double entry = (1 - w) * (c[j + lane] + scaled * d[j + lane]);
          sums[lane] += std::abs(entry);
          if (out != nullptr) out[j + lane] = entry;
        }
      }
      for (; j < n; ++j) {
        double entry = (1 - w) * (c[j] + scaled * d[j]);
        sums[0] += std::abs(entry);
        if (out != nullptr) out[j] = entry;
      }
      off_diagonal += (sums[0] + sums[1]) + (sums[2] + sums[3]);
      c += n;
      if (out != nullptr) out += n;
    }
    return (diagonal + 2 * off_diagonal) / (static_cast<double>(width) * static_cast<double>(width));
  }

  // Whether the tap's estimate took the input in.
  void add_to(Moments& tap, const float* row, double& gain) const {
    std::size_t width = tap.mean.size();
    thread_local std::vector<double> delta;
    delta.resize(width);
    for (std::size_t j = 0; j < width; ++j) delta[j] = row[j] - tap.mean[j];
    double norm = with_one_more(tap, delta, nullptr);
    // The authors' rule: an estimate is replaced only if it grows. The first input has nothing to grow from and is
    // taken.
    if (!free_ && tap.count > 0 && !(norm > tap.norm)) return;
    with_one_more(tap, delta, tap.covariance.data());
    for (std::size_t j = 0; j < width; ++j) tap.mean[j] += delta[j] / (tap.count + 1);
    gain = norm - tap.norm;
    tap.norm = norm;
    tap.count += 1;
  }

  void run(const Traces& traces, std::vector<double>& gains) override {
    std::vector<std::vector<double>> gains_of(taps_.size(), std::vector<double>(gains.size(), 0.0));
    workers().run(static_cast<std::int64_t>(taps_.size()), [&](std::int64_t index, int) {
      auto tap = static_cast<std::size_t>(index);
      for (std::size_t i = 0; i < gains.size(); ++i) {
        if (traces.usable[i])
          add_to(taps_[tap], traces.row(static_cast<std::int64_t>(i)) + layout().blocks[tap].first, gains_of[tap][i]);
      }
    });
    for (const auto& tap : gains_of) {
      for (std::size_t i = 0; i < gains.size(); ++i) gains[i] += tap[i];
    }
  }

  void run_reset() override {
    taps_.clear();
    for (const TraceBlock& block : layout().blocks) {
      auto width = static_cast<std::size_t>(block.count);
      taps_.push_back({0, 0, std::vector<double>(width, 0.0), std::vector<double>(triangle(width), 0.0)});
    }
  }

  // Pooled moments of both states.
  void run_merge(const Criterion& other) override {
    const auto& that = dynamic_cast<const NeuralCoverage&>(other);
    for (std::size_t t = 0; t < taps_.size(); ++t) {
      Moments& a = taps_[t];
      const Moments& b = that.taps_[t];
      if (b.count == 0) continue;
      if (a.count == 0) {
        a = b;
        continue;
      }
      double n = a.count + b.count;
      double w = b.count / n;
      std::vector<double> delta(a.mean.size());
      for (std::size_t j = 0; j < delta.size(); ++j) delta[j] = b.mean[j] - a.mean[j];
      std::size_t at = 0;
      for (std::size_t i = 0; i < delta.size(); ++i) {
        for (std::size_t j = i; j < delta.size(); ++j, ++at)
          a.covariance[at] = (1 - w) * a.covariance[at] + w * b.covariance[at] + w * (1 - w) * delta[i] * delta[j];
      }
      for (std::size_t j = 0; j < delta.size(); ++j) a.mean[j] += w * delta[j];
      a.count = n;
      a.norm = norm_of(a);
    }
  }

  static double norm_of(const Moments& tap) {
    std::size_t width = tap.mean.size();
    double sum = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t j = i; j < width; ++j, ++at) sum += std::abs(tap.covariance[at]) * (i == j ? 1 : 2);
    }
    return sum / (static_cast<double>(width) * static_cast<double>(width));
  }

  void run_save(ArchiveWriter& out) const override {
    for (const Moments& tap : taps_) {
      out.put(tap.count);
      out.put(tap.norm);
      out.put(tap.mean);
      out.put(tap.covariance);
    }
  }

  void run_load(ArchiveReader& in) override {
    for (Moments& tap : taps_) {
      tap.count = in.get<double>();
      tap.norm = in.get<double>();
      tap.mean = in.get_vector<double>(tap.mean.size());
      tap.covariance = in.get_vector<double>(tap.covariance.size());
      double sum = tap.norm;
      for (double v : tap.mean) sum += v;
      for (double v : tap.covariance) sum += v;
      bool whole = tap.count >= 0 && std::floor(tap.count) == tap.count;
      if (!whole || !std::isfinite(sum)) in.broken("holds moments that are not numbers");
    }
  }

  bool free_;
  std::vector<Moments> taps_;
};

}  // namespace

CriterionEntry nlc_entry() {
  return {"nlc",
          "mean size of each tap's covariances",
          {{"order",
            std::string("kept"),
            "kept: an estimate is replaced only if it grows, as its authors do; free: all inputs are pooled",
            {},
            {},
            {"kept", "free"}}},
          [](const Options& options, const CriterionContext& context) {
            return std::make_unique<NeuralCoverage>(options, context);
          }};
}

}  // namespace galvani
