#include "generate/fitness.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "galvani/attribute/excitable.h"
#include "galvani/base/error.h"
#include "galvani/coverage/criterion.h"
#include "galvani/coverage/profile.h"
#include "galvani/trace/trace.h"

namespace galvani {
namespace {

constexpr double kWorst = -std::numeric_limits<double>::infinity();
constexpr std::int64_t kInputsOfAGame = 1024;  // whose values exist at once

at::Tensor seeds_of(const std::vector<PickedParent>& parents) {
  std::vector<at::Tensor> all;
  for (const PickedParent& parent : parents) all.push_back(parent.seed);
  return at::stack(all);
}

// DeepSensor, equation 6: the share of neurons that answer for more than λ of the change of the loss.
class ExcitableFitness : public Fitness {
 public:
  ExcitableFitness(const Options& options, Network* network)
      : network_(network), estimator_(make_shapley(Spec::parse(options.text("by")))), enough_(options.real("until")) {
    threshold_.lambda = options.real("lambda");
    threshold_.relative = options.text("scale") == "max";
    if (network_ != nullptr) taps_ = network_->select_taps(options.text("taps"));
  }
  std::unique_ptr<FitnessWork> begin(const std::vector<PickedParent>& parents) const override;
  double enough() const override { return enough_; }

  // Values of the loss itself; those of a change are the difference.
  at::Tensor values(const at::Tensor& inputs, const at::Tensor& labels, std::int64_t& passes) const {
    std::vector<at::Tensor> parts;
    for (std::int64_t first = 0; first < inputs.size(0); first += kInputsOfAGame) {
      std::int64_t count = std::min(kInputsOfAGame, inputs.size(0) - first);
      LossGame game(*network_, taps_, inputs.narrow(0, first, count), {}, labels.narrow(0, first, count));
      ShapleyValues found = estimator_->estimate(game, Rng(0).derive("fitness"));
      passes += found.worths.sum().item<std::int64_t>();
      parts.push_back(found.values);
    }
    return at::cat(parts);
  }
  const ExcitementThreshold& threshold() const { return threshold_; }

 private:
  Network* network_;
  std::vector<int> taps_;
  std::unique_ptr<ShapleyEstimator> estimator_;
  ExcitementThreshold threshold_;
  double enough_;
};

class ExcitableWork : public FitnessWork {
 public:
  ExcitableWork(const ExcitableFitness& fitness, const std::vector<PickedParent>& parents) : fitness_(fitness) {
    std::vector<std::int64_t> labels;
    for (const PickedParent& parent : parents) labels.push_back(parent.label);
    labels_ = at::tensor(labels, at::kLong);
    before_ = fitness.values(seeds_of(parents), labels_, passes_);
  }
  std::vector<double> of(const at::Tensor& inputs, const std::vector<std::size_t>& parents) override {
    at::Tensor rows = at::tensor(std::vector<std::int64_t>(parents.begin(), parents.end()), at::kLong);
    at::Tensor change = fitness_.values(inputs, labels_.index_select(0, rows), passes_) - before_.index_select(0, rows);
    at::Tensor share = excitable(change, fitness_.threshold()).to(at::kDouble).mean(1);
    share = at::where(change.isfinite().all(1), share, at::full_like(share, kWorst)).contiguous();
    return {share.data_ptr<double>(), share.data_ptr<double>() + share.numel()};
  }

 private:
  const ExcitableFitness& fitness_;
  at::Tensor labels_;
  at::Tensor before_;  // of the seeds
};

std::unique_ptr<FitnessWork> ExcitableFitness::begin(const std::vector<PickedParent>& parents) const {
  if (network_ == nullptr) bad_usage("a search needs the network that is tested");
  return std::make_unique<ExcitableWork>(*this, parents);
}

// What all of it comes to: by the efficiency axiom the values of the neurons add up to the loss.
class LossFitness : public Fitness {
 public:
  std::unique_ptr<FitnessWork> begin(const std::vector<PickedParent>&) const override { return nullptr; }
  double of_scores(const at::Tensor& scores, std::int64_t label) const override {
    double loss = -scores.to(at::kDouble).log_softmax(0)[label].item<double>();
    return std::isfinite(loss) ? loss : kWorst;
  }
};

// What a coverage criterion gains beyond the seed and all candidates of it so far.
class GainFitness : public Fitness {
 public:
  GainFitness(const Options& options, Network* network) {
    Spec spec = Spec::parse(options.text("criterion"));
    const std::string& file = options.text(kProfileFile);
    if (!file.empty()) sha256_ = Profile::parts_hash(file);
    if (network == nullptr) return;
    tracer_ = std::make_unique<Tracer>(*network, network->select_taps(options.text("taps")), NeuronUnit::channel);
    std::shared_ptr<const Profile> profile;
    if (!file.empty()) profile = Profile::load(file, tracer_->layout());
    if (profile == nullptr && !profile_parts(spec, tracer_->layout()).empty())
      bad_usage("the gain of {} is measured against training data: name a profile that `galvani profile` made of them",
                spec.name);
    criterion_ = make_criterion(spec, {tracer_->layout(), profile});
    tracer_->need(criterion_->needs());
  }
  std::unique_ptr<FitnessWork> begin(const std::vector<PickedParent>& parents) const override;
  std::string files_sha256() const override { return sha256_; }
  const Tracer& tracer() const { return *tracer_; }
  std::unique_ptr<Criterion> criterion() const { return criterion_->fresh(); }

 private:
  std::string sha256_;
  std::unique_ptr<Tracer> tracer_;
  std::unique_ptr<Criterion> criterion_;
};

class GainWork : public FitnessWork {
 public:
  GainWork(const GainFitness& fitness, const std::vector<PickedParent>& parents) : fitness_(fitness) {
    for (std::size_t i = 0; i < parents.size(); ++i) covered_.push_back(fitness.criterion());
    std::vector<std::size_t> rows(parents.size());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
    of(seeds_of(parents), rows);
  }
  std::vector<double> of(const at::Tensor& inputs, const std::vector<std::size_t>& parents) override {
    Traces traces = fitness_.tracer().trace(inputs);
    passes_ += inputs.size(0);
    std::vector<double> gains;
    for (std::size_t first = 0, end = 0; first < parents.size(); first = end) {
      std::vector<std::int64_t> rows;
      for (end = first; end < parents.size() && parents[end] == parents[first]; ++end)
        rows.push_back(static_cast<std::int64_t>(end));
      std::vector<double> own = covered_[parents[first]]->add(rows_of(traces, rows));
      gains.insert(gains.end(), own.begin(), own.end());
    }
    return gains;
  }

 private:
  const GainFitness& fitness_;
  std::vector<std::unique_ptr<Criterion>> covered_;  // one a parent
};

std::unique_ptr<FitnessWork> GainFitness::begin(const std::vector<PickedParent>& parents) const {
  if (criterion_ == nullptr) bad_usage("a search needs the network that is tested");
  return std::make_unique<GainWork>(*this, parents);
}

}  // namespace

double Fitness::of_scores(const at::Tensor&, std::int64_t) const {
  fail(ErrorCode::internal, "this fitness does not follow from scores");
}

double Fitness::enough() const {
  return std::numeric_limits<double>::infinity();
}

OptionSchema fitness_options() {
  return {
      {"fitness",
       std::string("excitable"),
       "what is searched for: excitable neurons, loss, or gain of a criterion",
       {},
       {},
       {"excitable", "loss", "gain"}},
      {"by",
       std::string("path:tolerance=0"),
       "excitable: how values of neurons are found (docs/deepsensor.md)",
       {},
       {},
       {}},
      {"lambda", 0.01, "excitable: above which value a neuron is", -1e9, 1e9, {}},
      {"scale",
       std::string("absolute"),
       "excitable: values as they are, or as shares of the largest",
       {},
       {},
       {"absolute", "max"}},
      {"until", 1.0, "excitable: share of the neurons at which a search ends", 0.0, 1e9, {}},
      {"criterion", std::string("nc"), "gain: the coverage criterion", {}, {}, {}},
      {kProfileFile, std::string(), "gain: what is known of the training data, if the criterion needs it", {}, {}, {}},
      {"taps", std::string("default"), "the layers whose neurons count", {}, {}, {}}};
}

std::unique_ptr<Fitness> make_fitness(const Options& options, Network* network) {
  const std::string& name = options.text("fitness");
  if (name == "loss") return std::make_unique<LossFitness>();
  if (name == "gain") return std::make_unique<GainFitness>(options, network);
  return std::make_unique<ExcitableFitness>(options, network);
}

}  // namespace galvani
