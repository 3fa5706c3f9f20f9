// Neuron boundary coverage and strong neuron activation coverage (DeepGauge): values beyond the training range.
#include "coverage/builtin.h"
#include "coverage/ranges.h"
#include "coverage/set_criterion.h"

namespace galvani {
namespace {

// Feature j is neuron j's upper corner; with lower corners too, neuron j has the features 2j (lower) and 2j+1 (upper).
class Boundary : public SetCriterion {
 public:
  Boundary(const CriterionContext& context, const Ranges& ranges, bool both)
      : SetCriterion(context.layout, static_cast<std::uint64_t>(context.layout.neurons) * (both ? 2 : 1),
                     neurons_by_block(context.layout, both ? 2 : 1)),
        low_(ranges.low()),
        high_(ranges.high()),
        both_(both),
        block_(blocks_of_neurons(context.layout)) {}

 private:
  void collect(const Traces& traces, std::int64_t row, std::vector<std::uint64_t>& out) const override {
    const float* values = traces.row(row);
    std::uint64_t step = both_ ? 2 : 1;
    for (std::size_t j = 0; j < low_.size(); ++j) {
      if (values[j] > high_[j]) out.push_back(j * step + step - 1);
      if (both_ && values[j] < low_[j]) out.push_back(j * step);
    }
  }
  std::size_t block_of(std::uint64_t id) const override { return block_[both_ ? id / 2 : id]; }

  std::vector<float> low_, high_;
  bool both_;
  std::vector<std::uint32_t> block_;
};

CriterionEntry entry(const std::string& name, const std::string& help, bool both) {
  return {name, help, {}, [name, both](const Options&, const CriterionContext& context) {
            return std::make_unique<Boundary>(context, required_profile(context, name).part<Ranges>(kRanges, name),
                                              both);
          }};
}

}  // namespace

CriterionEntry nbc_entry() {
  return entry("nbc", "neurons above or below their training range", true);
}

CriterionEntry snac_entry() {
  return entry("snac", "neurons above their training range", false);
}

}  // namespace galvani
