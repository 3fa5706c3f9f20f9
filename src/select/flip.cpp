// The plain control for pools of changed inputs: does the change alter the verdict?
#include <ATen/ATen.h>

#include "select/builtin.h"

namespace galvani {
namespace {

class FlipSelector : public Selector {
 public:
  SelectorNeeds needs() const override {
    SelectorNeeds needs;
    needs.originals = true;
    return needs;
  }

 private:
  void run(const PoolPart& part, double* scores) override {
    gini_of(part.seen.probabilities, scores);
    const auto* now = part.seen.predicted.data_ptr<std::int64_t>();
    const auto* before = part.original.predicted.data_ptr<std::int64_t>();
    for (std::size_t i = 0; i < part.rows.size(); ++i) scores[i] += now[i] != before[i] ? 1 : 0;
  }
};

}  // namespace

SelectorEntry flip_entry() {
  return {
      "flip", "the verdict differs from that on the original, then gini", {}, [](const Options&, const SelectContext&) {
        return std::make_unique<FlipSelector>();
      }};
}

}  // namespace galvani
