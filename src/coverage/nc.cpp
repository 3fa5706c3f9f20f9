// Neuron coverage (DeepXplore): neurons that were above a threshold, after scaling to the range of their tap.
#include <algorithm>

#include "coverage/builtin.h"
#include "coverage/set_criterion.h"

namespace galvani {
namespace {

class NeuronCoverage : public SetCriterion {
 public:
  NeuronCoverage(const Options& options, const CriterionContext& context)
      : SetCriterion(context.layout, static_cast<std::uint64_t>(context.layout.neurons),
                     neurons_by_block(context.layout)),
        threshold_(options.real("threshold")),
        scale_(options.flag("scale")),
        block_(blocks_of_neurons(context.layout)) {}

 private:
  void collect(const Traces& traces, std::int64_t row, std::vector<std::uint64_t>& out) const override {
    const float* values = traces.row(row);
    for (const TraceBlock& block : layout().blocks) {
      const float* begin = values + block.first;
      double low = 0;
      double span = 1;
      if (scale_) {
        auto [smallest, largest] = std::minmax_element(begin, begin + block.count);
        low = *smallest;
        span = static_cast<double>(*largest) - low;
        if (span == 0) continue;  // nothing stands out where all are equal
      }
      for (std::int64_t j = 0; j < block.count; ++j) {
        if ((begin[j] - low) / span > threshold_) out.push_back(static_cast<std::uint64_t>(block.first + j));
      }
    }
  }
  std::size_t block_of(std::uint64_t id) const override { return block_[id]; }

  double threshold_;
  bool scale_;
  std::vector<std::uint32_t> block_;
};

CriterionEntry entry(const std::string& name, double threshold, const std::string& help) {
  return {name,
          help,
          {{"threshold", threshold, "what a neuron must exceed to count", {}, {}, {}},
           {"scale", true, "scale an input's values to 0..1 over each tap first", {}, {}, {}}},
          [](const Options& options, const CriterionContext& context) {
            return std::make_unique<NeuronCoverage>(options, context);
          }};
}

}  // namespace

CriterionEntry nc_entry() {
  return entry("nc", 0.75, "neurons above a threshold");
}

CriterionEntry nac_entry() {
  return entry("nac", 0.5, "neurons above a threshold, as NSS sets it");
}

}  // namespace galvani
