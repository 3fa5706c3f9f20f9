// NNS: the network's probabilities, smoothed over the most similar inputs of the pool, then DeepGini.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "galvani/base/interrupt.h"
#include "select/builtin.h"
#include "select/crowd.h"
#include "select/neighbours.h"

namespace galvani {
namespace {

class SmoothedSelector : public Selector {
 public:
  SmoothedSelector(const Options& options, const SelectContext& context)
      : need_(feature_of(context.network, options.text("layer"))),
        classes_(context.network.info().classes),
        k_(options.integer("k")),
        own_(options.real("own")),
        crowd_("nns", context.pool, options.integer("among"), classes_) {}

  bool random() const override { return crowd_.sampled(); }
  SelectorNeeds needs() const override {
    SelectorNeeds needs;
    needs.features = {need_};
    needs.sample = crowd_.share();
    return needs;
  }
  std::vector<std::string> notes() const override {
    if (!crowd_.sampled()) return {};
    return {fmt::format("similar inputs of the pool were sought among {} of it", crowd_.size())};
  }

 private:
  struct Part {
    at::Tensor features;         // [n, width]: rows of length 1
    std::vector<double> shares;  // [n, classes]
    std::vector<std::int64_t> rows;
  };

  static Part part_of(const PoolPart& part) {
    at::Tensor p = part.seen.probabilities.contiguous();
    return {finite_unit_rows(part.seen.features[0]).values,
            {p.data_ptr<float>(), p.data_ptr<float>() + p.numel()},
            part.rows};
  }
  void remember(const Part& part) {
    crowd_.remember(part.features, part.shares, std::vector<char>(part.rows.size(), 1), part.rows);
  }

  void run_sample(const PoolPart& part) override { remember(part_of(part)); }
  void run_finish_sample() override { crowd_.gather(); }

  void run(const PoolPart& part, double* scores) override {
    Part own = part_of(part);
    if (crowd_.sampled()) return score(own, scores);
    remember(own);
    kept_.push_back(std::move(own));
  }

  std::vector<std::int64_t> run_order(std::vector<double>& scores) override {
    if (crowd_.sampled()) return {};
    crowd_.gather();
    for (const Part& part : kept_) {
      check_interrupt();
      score(part, scores.data() + part.rows[0]);
    }
    kept_.clear();
    return {};
  }

  void score(const Part& part, double* scores) const {
    auto others = crowd_.others_of(part.features, part.rows, k_);
    std::vector<double> smoothed(static_cast<std::size_t>(classes_));
    for (std::size_t i = 0; i < part.rows.size(); ++i) {
      crowd_.smooth(part.shares.data() + static_cast<std::ptrdiff_t>(i) * classes_, others[i], 1 - own_,
                    smoothed.data());
      scores[i] = 1;
      for (double share : smoothed) scores[i] -= share * share;
    }
  }

  FeatureNeed need_;
  std::int64_t classes_;
  std::int64_t k_;
  double own_;
  Crowd crowd_;
  std::vector<Part> kept_;  // until all of the pool is there
};

}  // namespace

SelectorEntry nns_entry() {
  return {"nns",
          "gini of probabilities that are smoothed over the most similar inputs of the pool (NNS)",
          {{"k", std::int64_t{10}, "similar inputs", 1, 1e6, {}},
           {"own", 0.5, "weight of an input's own probabilities", 0, 1, {}},
           {"layer", std::string("penultimate"), "encoder, penultimate, or the name of a tap", {}, {}, {}},
           among_option()},
          [](const Options& options, const SelectContext& context) {
            return std::make_unique<SmoothedSelector>(options, context);
          }};
}

}  // namespace galvani
