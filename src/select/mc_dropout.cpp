// Monte-Carlo dropout: how often the verdict of a network with dropout is another than the most frequent one.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/rng.h"
#include "galvani/model/evaluate.h"
#include "select/builtin.h"

namespace galvani {
namespace {

class DropoutSelector : public Selector {
 public:
  DropoutSelector(const Options& options, const SelectContext& context)
      : network_(context.network),
        samples_(options.integer("samples")),
        rate_(options.real("rate")),
        rng_(Rng(context.seed).derive("dropout selection")),
        masked_(context.network.info().random_layers == 0) {
    if (masked_) tap_ = masked_tap(context.network);
  }

  bool random() const override { return true; }
  std::vector<std::string> notes() const override {
    if (!masked_) return {};
    return {fmt::format("the model has no dropout: a share of {} of the neurons of {} was left out instead", rate_,
                        network_.taps()[static_cast<std::size_t>(tap_)].name)};
  }

 private:
  // The neurons that the last layer reads: the tap before it.
  static int masked_tap(const Network& network) {
    FeatureNeed need = feature_of(network, "penultimate");
    return need.form == FeatureForm::input ? std::max(0, need.tap - 1) : need.tap;
  }

  void run(const PoolPart& part, double* scores) override {
    auto n = static_cast<std::int64_t>(part.rows.size());
    std::int64_t classes = network_.info().classes;
    std::vector<std::int32_t> votes(static_cast<std::size_t>(n * classes), 0);
    for (std::int64_t s = 0; s < samples_; ++s) {
      check_interrupt();
      at::Tensor verdict = verdicts(network_.run(part.inputs, request(part, s)).logits);
      for (std::int64_t i = 0; i < n; ++i) {
        std::int64_t label = verdict.data_ptr<std::int64_t>()[i];
        if (label >= 0) votes[static_cast<std::size_t>(i * classes + label)] += 1;
      }
    }
    for (std::int64_t i = 0; i < n; ++i) {
      auto first = votes.begin() + i * classes;
      scores[i] = 1 - static_cast<double>(*std::max_element(first, first + classes)) / static_cast<double>(samples_);
    }
  }

  Request request(const PoolPart& part, std::int64_t sample) const {
    Request request;
    Rng stream = rng_.derive(static_cast<std::uint64_t>(sample));
    if (!masked_) {
      request.random = RandomLayers{stream.next_u64(), part.rows[0]};
      return request;
    }
    std::int64_t neurons = network_.taps()[static_cast<std::size_t>(tap_)].neurons();
    at::Tensor factor = at::empty({static_cast<std::int64_t>(part.rows.size()), neurons});
    auto* out = factor.data_ptr<float>();
    auto kept = static_cast<float>(1 / (1 - rate_));
    workers().run(factor.size(0), [&](std::int64_t i, int) {
      Rng own = stream.derive(static_cast<std::uint64_t>(part.rows[static_cast<std::size_t>(i)]));
      float* row = out + i * neurons;
      own.fill_uniform(row, static_cast<std::size_t>(neurons));
      for (std::int64_t j = 0; j < neurons; ++j) row[j] = static_cast<double>(row[j]) < rate_ ? 0 : kept;
    });
    request.masks.push_back({tap_, factor});
    return request;
  }

  Network& network_;
  std::int64_t samples_;
  double rate_;
  Rng rng_;
  bool masked_;
  int tap_ = -1;
};

}  // namespace

SelectorEntry mc_dropout_entry() {
  return {"mc-dropout",
          "how often verdicts with dropout differ from their most frequent one (variation ratio)",
          {{"samples", std::int64_t{200}, "forward passes", 2, 1e6, {}},
           {"rate", 0.5, "share of neurons left out where the model has no dropout of its own", 0.001, 0.999, {}}},
          [](const Options& options, const SelectContext& context) {
            return std::make_unique<DropoutSelector>(options, context);
          }};
}

}  // namespace galvani
