// k-multisection neuron coverage (DeepGauge): sections of each neuron's range on training data that were hit.
#include "coverage/builtin.h"
#include "coverage/ranges.h"
#include "coverage/set_criterion.h"

namespace galvani {
namespace {

class Multisection : public SetCriterion {
 public:
  Multisection(const Options& options, const CriterionContext& context, const Ranges& ranges)
      : SetCriterion(context.layout, universe(options, context), totals(options, context, ranges)),
        k_(options.integer("k")),
        block_(blocks_of_neurons(context.layout)) {
    for (std::size_t j = 0; j < ranges.low().size(); ++j) {
      // A neuron that never moved has no sections: an empty range.
      bool constant = !(ranges.high()[j] > ranges.low()[j]);
      low_.push_back(constant ? 1 : ranges.low()[j]);
      high_.push_back(constant ? 0 : ranges.high()[j]);
    }
  }

 private:
  static std::uint64_t universe(const Options& options, const CriterionContext& context) {
    return static_cast<std::uint64_t>(context.layout.neurons * options.integer("k"));
  }
  static std::vector<double> totals(const Options& options, const CriterionContext& context, const Ranges& ranges) {
    std::vector<double> result;
    for (const TraceBlock& block : context.layout.blocks) {
      double neurons = 0;
      for (std::int64_t j = block.first; j < block.first + block.count; ++j) {
        auto index = static_cast<std::size_t>(j);
        neurons += ranges.high()[index] > ranges.low()[index] ? 1 : 0;
      }
      result.push_back(neurons * static_cast<double>(options.integer("k")));
    }
    return result;
  }

  void collect(const Traces& traces, std::int64_t row, std::vector<std::uint64_t>& out) const override {
    const float* values = traces.row(row);
    auto k = static_cast<double>(k_);
    for (std::size_t j = 0; j < low_.size(); ++j) {
      double value = values[j];
      if (!(value >= low_[j] && value <= high_[j])) continue;
      double position = (value - low_[j]) / (high_[j] - low_[j]) * k;
      auto section = static_cast<std::int64_t>(position);  // ceil, counted from 0; the low end belongs to the first
      section -= section > 0 && static_cast<double>(section) == position ? 1 : 0;
      out.push_back(j * static_cast<std::uint64_t>(k_) + static_cast<std::uint64_t>(section));
    }
  }
  std::size_t block_of(std::uint64_t id) const override { return block_[id / static_cast<std::uint64_t>(k_)]; }

  std::int64_t k_;
  std::vector<double> low_, high_;
  std::vector<std::uint32_t> block_;
};

}  // namespace

CriterionEntry kmnc_entry() {
  return {"kmnc",
          "sections of each neuron's training range",
          {{"k", std::int64_t{100}, "sections per neuron", 1, 1e6, {}}},
          [](const Options& options, const CriterionContext& context) {
            const auto& ranges = required_profile(context, "kmnc").part<Ranges>(kRanges, "kmnc");
            return std::make_unique<Multisection>(options, context, ranges);
          }};
}

}  // namespace galvani
