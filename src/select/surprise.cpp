// Surprise adequacy: how unlike the training data an input's trace is.
#include "galvani/coverage/surprise.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "galvani/coverage/criterion.h"
#include "select/builtin.h"

namespace galvani {
namespace {

class SurpriseSelector : public Selector {
 public:
  SurpriseSelector(const std::string& name, const Options& options, const SelectContext& context) {
    score_spec_.name = name;
    for (const auto& [key, value] : options.values()) {
      if (!to_string(value).empty()) score_spec_.settings.emplace_back(key, to_string(value));
    }
    Tracer tracer(context.network, context.network.select_taps("default"), NeuronUnit::channel);
    layout_ = tracer.layout();
    profile_ = std::make_unique<Profile>(layout_, std::vector<Spec>{surprise_criterion(score_spec_)});
  }

  SelectorNeeds needs() const override {
    SelectorNeeds needs;
    needs.traces = true;
    needs.training = true;
    return needs;
  }
  std::vector<std::string> notes() const override { return score_ ? score_->notes() : std::vector<std::string>(); }

 private:
  void run_train(const TrainingPart& part) override { profile_->learn(part.seen.traces); }
  void run_finish_training() override {
    profile_->finish();
    score_ = make_surprise(score_spec_, layout_, *profile_);
  }
  void run(const PoolPart& part, double* scores) override {
    std::vector<double> found = score_->score(part.seen.traces);
    std::copy(found.begin(), found.end(), scores);
  }

  Spec score_spec_;
  TraceLayout layout_;
  std::unique_ptr<Profile> profile_;
  std::unique_ptr<SurpriseScore> score_;
};

SelectorEntry surprise_entry(const std::string& name, const std::string& help) {
  // The options of the criterion that cuts the score into buckets, but for the buckets.
  OptionSchema schema;
  for (const OptionInfo& info : criteria().at(surprise_criterion({name, {}}).name).schema) {
    if (info.name != "width" && info.name != "upper") schema.push_back(info);
  }
  return {name, help, schema, [name](const Options& options, const SelectContext& context) {
            return std::make_unique<SurpriseSelector>(name, options, context);
          }};
}

}  // namespace

SelectorEntry dsa_entry() {
  return surprise_entry("dsa", "distance to the own class's training traces, against that to other classes'");
}

SelectorEntry lsa_entry() {
  return surprise_entry("lsa", "how unlikely the trace is among training traces of its class");
}

SelectorEntry mdsa_entry() {
  return surprise_entry("mdsa", "Mahalanobis distance to the training traces of its class");
}

}  // namespace galvani
