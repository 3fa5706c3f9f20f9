// NNS: the network's probabilities, smoothed over the most similar inputs of the pool, then DeepGini.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "galvani/base/error.h"
#include "galvani/base/progress.h"
#include "galvani/base/runtime.h"
#include "select/builtin.h"
#include "select/neighbours.h"

namespace galvani {
namespace {

class SmoothedSelector : public Selector {
 public:
  SmoothedSelector(const Options& options, const SelectContext& context)
      : need_(feature_of(context.network, options.text("layer"))),
        pool_(context.pool),
        k_(options.integer("k")),
        own_(options.real("own")) {}

  SelectorNeeds needs() const override {
    SelectorNeeds needs;
    needs.features = {need_};
    return needs;
  }

 private:
  void run(const PoolPart& part, double*) override {
    const at::Tensor& features = part.seen.features[0];
    const at::Tensor& p = part.seen.probabilities;
    if (!features_.defined()) {
      // Rows, the same centred, and their probabilities.
      std::uint64_t bytes =
          static_cast<std::uint64_t>(pool_) * static_cast<std::uint64_t>(8 * features.size(1) + 4 * p.size(1));
      if (bytes > available_memory())
        bad_usage("nns compares the inputs of a pool with each other, which needs {} for {} of them: take fewer",
                  format_bytes(bytes), pool_);
      features_ = at::empty({pool_, features.size(1)});
      probabilities_ = at::empty({pool_, p.size(1)});
    }
    FiniteRows rows = finite_unit_rows(features);
    features_.narrow(0, part.rows[0], rows.values.size(0)).copy_(rows.values);
    probabilities_.narrow(0, part.rows[0], p.size(0)).copy_(p);
  }

  std::vector<std::int64_t> run_order(std::vector<double>& scores) override {
    if (!features_.defined()) return {};
    NearestSearch search(features_);
    constexpr std::int64_t kRows = 8192;
    std::int64_t classes = probabilities_.size(1);
    const auto* p = probabilities_.data_ptr<float>();
    for (std::int64_t first = 0; first < pool_; first += kRows) {
      std::int64_t n = std::min(kRows, pool_ - first);
      auto near = neighbours_of(search, features_.narrow(0, first, n), k_ + 1);
      for (std::int64_t i = 0; i < n; ++i) {
        std::vector<double> sum(static_cast<std::size_t>(classes), 0);
        std::int64_t asked = 0;
        for (const Nearest& neighbour : near[static_cast<std::size_t>(i)]) {
          if (neighbour.index == first + i || asked == k_) continue;
          asked += 1;
          for (std::int64_t c = 0; c < classes; ++c)
            sum[static_cast<std::size_t>(c)] += p[neighbour.index * classes + c];
        }
        double gini = 1;
        for (std::int64_t c = 0; c < classes; ++c) {
          double own = p[(first + i) * classes + c];
          double mean = asked > 0 ? sum[static_cast<std::size_t>(c)] / static_cast<double>(asked) : own;
          double smoothed = own_ * own + (1 - own_) * mean;
          gini -= smoothed * smoothed;
        }
        scores[static_cast<std::size_t>(first + i)] = gini;
      }
    }
    return {};
  }

  FeatureNeed need_;
  std::int64_t pool_;
  std::int64_t k_;
  double own_;
  at::Tensor features_;       // [pool, width]
  at::Tensor probabilities_;  // [pool, classes]
};

}  // namespace

SelectorEntry nns_entry() {
  return {"nns",
          "gini of probabilities that are smoothed over the most similar inputs of the pool (NNS)",
          {{"k", std::int64_t{10}, "similar inputs", 1, 1e6, {}},
           {"own", 0.5, "weight of an input's own probabilities", 0, 1, {}},
           {"layer", std::string("penultimate"), "encoder, penultimate, or the name of a tap", {}, {}, {}}},
          [](const Options& options, const SelectContext& context) {
            return std::make_unique<SmoothedSelector>(options, context);
          }};
}

}  // namespace galvani
