// What DeepXplore and DLFuzz share: inputs that climb a gradient, all of a batch at once, until models differ.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "galvani/generate/generator.h"
#include "generate/neurons.h"

namespace galvani {

class Differential : public Generator {
 public:
  // One model's share of what is climbed: sums of weight x score of a class and weight x value of a neuron.
  struct Terms {
    std::vector<std::int64_t> classes;
    std::vector<float> class_weights;
    std::vector<std::int64_t> neurons;  // places in the model's table
    std::vector<float> neuron_weights;
  };

  // Where the candidates of a parent begin: at the parent, or at its seed, if models differ on the parent already.
  struct Start {
    at::Tensor input;     // as files hold it; undefined: models differ on the seed, too
    at::Tensor seed;      // of the lineage
    std::int64_t label;   // what all models say
    at::Tensor logits;    // [classes] of the model under test
    at::Tensor activity;  // [neurons] of the model under test, scaled to 0..1
  };

  // A candidate on its way.
  struct Climber {
    Candidate candidate;
    const Start* start = nullptr;
    Rng rng{0};
    std::vector<Terms> terms;  // one a model
    std::string provenance;
    std::int64_t top = 0, left = 0;  // of a rectangle
    at::Tensor x;                    // [...] float in the unit of the file, not rounded
    at::Tensor found;                // of the inputs' type; undefined: nothing worth showing yet
    std::int64_t steps = 0;          // that led to it
    std::int64_t differ = 0;         // models that do not say the label any more
    bool done = false;
  };

  std::string files_sha256() const override;
  // A whole search would take long, and its first step shows as much.
  std::string probe(const at::Tensor& seed) const override;

  std::vector<Start> starts(const std::vector<PickedParent>& parents) const;
  // Climbs at most so many steps.
  std::vector<Climber> climb(const std::vector<PickedParent>& parents, const std::vector<Start>& starts,
                             const std::vector<Candidate>& wanted, std::int64_t steps) const;
  std::int64_t steps() const { return steps_; }
  double full() const { return full_; }
  // Climbers that are on their way together, for the sake of memory.
  std::int64_t block() const;

 protected:
  // Reads the options of differential_options(); `others` are the files of further models.
  Differential(const Options& options, const GeneratorContext& context, const std::vector<std::string>& others);

  std::size_t models() const { return 1 + others_.size(); }
  std::int64_t classes() const { return model(0).info().classes; }
  const NeuronTable& neurons(std::size_t model) const { return tables_[model]; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  double step() const { return step_; }  // in the unit of the file
  // What a file can hold.
  double low() const { return type_ == at::kByte ? 0 : -full_; }
  double high() const { return type_ == at::kByte ? full_ : full_ - 1; }

 private:
  // Draws what a climber is about: kind, provenance and terms.
  virtual void aim(Climber& climber) const = 0;
  // One step; `direction` is the gradient, scaled to a root mean square of 1.
  virtual void move(Climber& climber, const std::vector<float>& direction) const = 0;
  // Whether a change is worth showing though no model differs. [...] of the inputs' type.
  virtual bool worth_showing(const Climber&, const at::Tensor&) const { return false; }

  Network& model(std::size_t index) const;
  struct Shown;
  Shown show(const std::vector<Climber*>& climbers, bool gradients) const;
  void settle(Climber& climber, std::int64_t step, const at::Tensor& shown,
              const std::vector<std::int64_t>& said) const;
  void ascend(Climber& climber, const std::vector<const float*>& gradients) const;

  std::unique_ptr<Proposal> run_begin(std::vector<PickedParent> parents, const PickOrder& order) const override;
  at::Tensor run_make(const std::string& provenance, const at::Tensor& parent, const at::Tensor& seed) const override;

  Network* network_;
  std::vector<std::unique_ptr<Network>> others_;
  std::vector<NeuronTable> tables_;  // one a model
  std::vector<std::int64_t> shape_;
  at::ScalarType type_;
  double full_;
  std::int64_t steps_;
  double step_;
  bool probabilities_;
};

// The option that names files of further models.
inline constexpr const char* kOtherModels = "with";

// With the defaults of a method; `step` is a share of the full scale.
OptionSchema differential_options(std::int64_t steps, double step, double threshold, const std::string& scores);

// "a,b" → a, b; usage error that names the option if nothing is listed, or something else than what may be.
std::vector<std::string> listed(const std::string& owner, const std::string& option, const std::string& text,
                                const std::vector<std::string>& known);
// "a,b" → a, b.
std::vector<std::string> split_list(const std::string& text);

}  // namespace galvani
