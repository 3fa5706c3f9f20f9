// SETS: uncertain inputs that differ from each other.
#include <ATen/ATen.h>

#include "galvani/select/diverse.h"
#include "select/builtin.h"

namespace galvani {
namespace {

class DiverseGini : public Selector {
 public:
  DiverseGini(const Options& options, const SelectContext& context)
      : need_(feature_of(context.network, options.text("layer"))), pool_(context.pool) {}

  std::int64_t reach(std::int64_t budget) const override { return diverse_reach(budget, pool_); }
  FeatureNeed refined_by() const override { return need_; }

 private:
  void run(const PoolPart& part, double* scores) override { gini_of(part.seen.probabilities, scores); }
  std::vector<std::int64_t> run_refine(const Shortlist& candidates, std::int64_t budget) const override {
    return choose_diverse(candidates.features, diversity_weights(candidates.scores), budget);
  }

  FeatureNeed need_;
  std::int64_t pool_;
};

}  // namespace

SelectorEntry sets_entry() {
  return {"sets",
          "gini, and of the best three times as many those that differ most (SETS)",
          {{"layer", std::string("penultimate"), "encoder, penultimate, or the name of a tap", {}, {}, {}}},
          [](const Options& options, const SelectContext& context) {
            return std::make_unique<DiverseGini>(options, context);
          }};
}

}  // namespace galvani
