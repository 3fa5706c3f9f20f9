// Greedy additional coverage (CAM), or what each input covers by itself (CTM).
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/rng.h"
#include "galvani/coverage/criterion.h"
#include "galvani/coverage/profile.h"
#include "select/builtin.h"
#include "select/coverage_order.h"

namespace galvani {

std::vector<std::int64_t> coverage_order(const FeatureTable& table, std::int64_t inputs, bool additional,
                                         std::uint64_t seed, std::vector<double>& scores) {
  auto size_of = [&](std::int64_t row) { return row < table.inputs() ? table.row(row).size() : 0; };
  std::vector<std::int64_t> order;
  std::vector<char> taken(static_cast<std::size_t>(inputs), 0);
  if (additional) {
    std::fill(scores.begin(), scores.end(), 0.0);
    for (const KeptInput& kept : minimise(table)) {
      order.push_back(kept.input);
      taken[static_cast<std::size_t>(kept.input)] = 1;
      scores[static_cast<std::size_t>(kept.input)] = static_cast<double>(kept.added);
    }
  } else {
    for (std::int64_t row = 0; row < inputs; ++row)
      scores[static_cast<std::size_t>(row)] = static_cast<double>(size_of(row));
  }
  auto rest = static_cast<std::ptrdiff_t>(order.size());
  for (std::int64_t row = 0; row < inputs; ++row) {
    if (taken[static_cast<std::size_t>(row)] == 0) order.push_back(row);
  }
  std::sort(order.begin() + rest, order.end(), [&](std::int64_t a, std::int64_t b) {
    if (size_of(a) != size_of(b)) return size_of(a) > size_of(b);
    return mix(seed, static_cast<std::uint64_t>(a)) < mix(seed, static_cast<std::uint64_t>(b));
  });
  return order;
}

namespace {

class CoverageSelector : public Selector {
 public:
  CoverageSelector(const std::string& name, const Options& options, const SelectContext& context)
      : additional_(options.text("order") == "additional"), seed_(context.seed) {
    criterion_spec_.name = name;
    // All but the order are the criterion's own.
    for (const auto& [key, value] : options.values()) {
      if (key != "order") criterion_spec_.settings.emplace_back(key, to_string(value));
    }
    Tracer tracer(context.network, context.network.select_taps("default"), NeuronUnit::channel);
    layout_ = tracer.layout();
    auto profile = std::make_shared<Profile>(layout_, std::vector<Spec>{criterion_spec_});
    relevance_ = profile->needs().relevance;
    if (profile->empty()) {
      criterion_ = make_criterion(criterion_spec_, {layout_, nullptr});
    } else {
      profile_ = std::move(profile);
    }
  }

  SelectorNeeds needs() const override {
    SelectorNeeds needs;
    needs.traces = true;
    needs.relevance = relevance_;
    needs.training = profile_ != nullptr;
    return needs;
  }

 private:
  void run_train(const TrainingPart& part) override {
    if (profile_) profile_->learn(part.seen.traces);
  }
  void run_finish_training() override {
    if (!profile_) return;
    profile_->finish();
    criterion_ = make_criterion(criterion_spec_, {layout_, profile_});
  }
  void run(const PoolPart& part, double* scores) override {
    Features features;
    criterion_->features(part.seen.traces, features);
    table_.add(part.rows[0], features, 0);
    for (std::size_t i = 0; i < part.rows.size(); ++i)
      scores[i] = static_cast<double>(features.ends[i] - features.begin_of(i));
  }
  std::vector<std::int64_t> run_order(std::vector<double>& scores) override {
    return coverage_order(table_, static_cast<std::int64_t>(scores.size()), additional_, seed_, scores);
  }

  Spec criterion_spec_;
  bool additional_;
  std::uint64_t seed_;
  bool relevance_ = false;
  TraceLayout layout_;
  std::shared_ptr<Profile> profile_;  // null: none is needed
  std::unique_ptr<Criterion> criterion_;
  FeatureTable table_;
};

SelectorEntry coverage_entry(const std::string& name, const std::string& help,
                             const std::vector<std::pair<std::string, OptionValue>>& defaults) {
  OptionSchema schema = criteria().at(name).schema;
  for (OptionInfo& info : schema) {
    for (const auto& [option, value] : defaults) {
      if (info.name == option) info.fallback = value;
    }
  }
  schema.push_back({"order",
                    std::string("additional"),
                    "what counts: what those before it do not cover, or all that it covers",
                    {},
                    {},
                    {"additional", "total"}});
  return {name, help, schema, [name](const Options& options, const SelectContext& context) {
            return std::make_unique<CoverageSelector>(name, options, context);
          }};
}

}  // namespace

SelectorEntry nac_selector_entry() {
  return coverage_entry("nac", "greedy additional coverage of neurons above a threshold", {{"threshold", 0.5}});
}

SelectorEntry kmnc_selector_entry() {
  return coverage_entry("kmnc", "greedy additional coverage of sections of each neuron's training range",
                        {{"k", std::int64_t{1000}}});
}

SelectorEntry npc_selector_entry() {
  return coverage_entry("npc", "greedy additional coverage of decision paths", {});
}

}  // namespace galvani
