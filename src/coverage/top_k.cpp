// Top-k neuron coverage and top-k neuron patterns (DeepGauge): which neurons lead their tap.
#include <algorithm>
#include <functional>

#include "coverage/builtin.h"
#include "coverage/set_criterion.h"
#include "galvani/base/rng.h"

namespace galvani {
namespace {

// The k largest of n values, as positions in ascending order; of equal values the first ones lead.
void leaders(const float* values, std::int64_t n, std::int64_t k, std::vector<std::int64_t>& out) {
  out.clear();
  if (k >= n) {
    for (std::int64_t j = 0; j < n; ++j) out.push_back(j);
    return;
  }
  thread_local std::vector<float> sorted;
  sorted.assign(values, values + n);
  std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<>());
  float last = sorted[static_cast<std::size_t>(k - 1)];
  std::int64_t ties = k;  // how many equal to the last one are let in
  for (std::int64_t j = 0; j < n; ++j) ties -= values[j] > last ? 1 : 0;
  for (std::int64_t j = 0; j < n; ++j) {
    if (values[j] > last || (values[j] == last && ties-- > 0)) out.push_back(j);
  }
}

class TopNeurons : public SetCriterion {
 public:
  TopNeurons(const Options& options, const CriterionContext& context)
      : SetCriterion(context.layout, static_cast<std::uint64_t>(context.layout.neurons),
                     neurons_by_block(context.layout)),
        k_(options.integer("k")),
        block_(blocks_of_neurons(context.layout)) {}

 private:
  void collect(const Traces& traces, std::int64_t row, std::vector<std::uint64_t>& out) const override {
    thread_local std::vector<std::int64_t> top;
    for (const TraceBlock& block : layout().blocks) {
      leaders(traces.row(row) + block.first, block.count, k_, top);
      for (std::int64_t j : top) out.push_back(static_cast<std::uint64_t>(block.first + j));
    }
  }
  std::size_t block_of(std::uint64_t id) const override { return block_[id]; }

  std::int64_t k_;
  std::vector<std::uint32_t> block_;
};

// A pattern is known by a 64-bit hash: among a million patterns two share one with probability 3e-8.
class TopPatterns : public SetCriterion {
 public:
  TopPatterns(const Options& options, const CriterionContext& context)
      : SetCriterion(context.layout, 0, {}), k_(options.integer("k")), ordered_(options.flag("ordered")) {}

 private:
  void collect(const Traces& traces, std::int64_t row, std::vector<std::uint64_t>& out) const override {
    thread_local std::vector<std::int64_t> top;
    std::uint64_t hash = 0;
    for (const TraceBlock& block : layout().blocks) {
      const float* values = traces.row(row) + block.first;
      leaders(values, block.count, k_, top);
      if (ordered_) {
        std::stable_sort(top.begin(), top.end(), [&](std::int64_t a, std::int64_t b) { return values[a] > values[b]; });
      }
      for (std::int64_t j : top) hash = mix(hash, static_cast<std::uint64_t>(block.first + j));
    }
    out.push_back(hash);
  }

  std::int64_t k_;
  bool ordered_;
};

OptionInfo k_option(std::int64_t fallback) {
  return {"k", fallback, "how many neurons of a tap lead", 1, 1e6, {}};
}

}  // namespace

CriterionEntry tknc_entry() {
  return {"tknc",
          "neurons that were among the k largest of their tap",
          {k_option(10)},
          [](const Options& options, const CriterionContext& context) {
            return std::make_unique<TopNeurons>(options, context);
          }};
}

CriterionEntry tknp_entry() {
  return {"tknp",
          "patterns of the k largest of every tap",
          {k_option(50), {"ordered", false, "the order of the k counts too, as in the NLC authors' code", {}, {}, {}}},
          [](const Options& options, const CriterionContext& context) {
            return std::make_unique<TopPatterns>(options, context);
          }};
}

}  // namespace galvani
