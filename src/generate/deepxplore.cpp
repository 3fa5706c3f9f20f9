// DeepXplore (Pei et al. 2017): changes on which models that agreed come to differ.
#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "generate/builtin.h"
#include "generate/differential.h"

namespace galvani {
namespace {

constexpr const char* kLight = "light";
constexpr const char* kOcclusion = "occl";
constexpr const char* kBlackout = "blackout";
constexpr const char* kFree = "free";

std::vector<std::string> other_models(const Options& options) {
  std::vector<std::string> paths = split_list(options.text(kOtherModels));
  if (paths.empty())
    bad_usage("deepxplore compares models: name at least one other with --with other.onnx, or with= in the generator");
  return paths;
}

// Light and parts are of images; a sound may change anywhere.
std::vector<std::string> constraints_for(const std::string& named, bool images) {
  const std::string usual = images ? "light,occl,blackout" : kFree;
  std::vector<std::string> known = {kFree};
  if (images) known = {kLight, kOcclusion, kBlackout, kFree};
  return listed("deepxplore", "constraint", named.empty() ? usual : named, known);
}

class DeepXplore : public Differential {
 public:
  DeepXplore(const Options& options, const GeneratorContext& context)
      : Differential(options, context, other_models(options)),
        constraints_(constraints_for(options.text("constraint"), shape().size() == 3)),
        random_lead_(options.text("lead") == "random"),
        lambda1_(static_cast<float>(options.real("lambda1"))),
        lambda2_(static_cast<float>(options.real("lambda2"))),
        squares_(options.integer("squares")),
        light_(options.real("light")) {
    if (shape().size() != 3) return;
    auto fits = [&](const char* option, std::size_t axis) { return std::min(options.integer(option), shape()[axis]); };
    rectangle_ = {fits("size", 1), fits("size", 2)};
    square_ = {fits("square", 1), fits("square", 2)};
  }

  std::vector<std::string> kinds() const override { return constraints_; }

 private:
  struct Rectangle {
    std::int64_t height = 0, width = 0;
  };

  void aim(Climber& climber) const override {
    auto kind = static_cast<std::size_t>(climber.candidate.slot) % constraints_.size();
    climber.candidate.kind = static_cast<int>(kind);
    std::size_t lead = random_lead_ ? climber.rng.below(models()) : 0;
    for (std::size_t i = 0; i < models(); ++i) {
      climber.terms[i].classes = {climber.start->label};
      climber.terms[i].class_weights = {i == lead ? -lambda1_ : 1};
      if (lambda2_ == 0) continue;
      climber.terms[i].neurons = {inactive_neuron(i, climber.rng)};
      climber.terms[i].neuron_weights = {lambda2_};
    }
    climber.provenance = fmt::format("{}:lead={}", constraints_[kind], lead);
    if (constraints_[kind] != kOcclusion) return;
    climber.top = climber.rng.between(0, shape()[1] - rectangle_.height);
    climber.left = climber.rng.between(0, shape()[2] - rectangle_.width);
    climber.provenance += fmt::format(",top={},left={}", climber.top, climber.left);
  }

  // One that no seed activates; any, if there is none.
  std::int64_t inactive_neuron(std::size_t model, Rng& rng) const {
    const std::vector<std::int64_t>& active = neurons(model).active;
    auto inactive = static_cast<std::uint64_t>(std::count(active.begin(), active.end(), 0));
    auto nth = rng.below(inactive > 0 ? inactive : active.size());
    if (inactive == 0) return static_cast<std::int64_t>(nth);
    std::size_t place = 0;
    while (active[place] != 0 || nth-- > 0) ++place;
    return static_cast<std::int64_t>(place);
  }

  void move(Climber& climber, const std::vector<float>& direction) const override {
    const std::string& constraint = constraints_[static_cast<std::size_t>(climber.candidate.kind)];
    auto* x = climber.x.data_ptr<float>();
    auto length = static_cast<float>(step());
    if (constraint == kFree) {
      for (std::size_t i = 0; i < direction.size(); ++i) x[i] += length * direction[i];
      climber.x.clamp_(low(), high());
    } else if (constraint == kLight) {
      double sum = 0;
      for (float value : direction) sum += static_cast<double>(value);
      auto by = static_cast<float>(light_ * step() * sum / static_cast<double>(direction.size()));
      // Not clipped before it is shown, so that the change stays one number.
      for (std::size_t i = 0; i < direction.size(); ++i) x[i] += by;
    } else if (constraint == kOcclusion) {
      each_value(climber.top, climber.left, rectangle_, [&](std::int64_t i) {
        x[i] = std::clamp(x[i] + length * direction[static_cast<std::size_t>(i)], 0.0F, 255.0F);
      });
    } else {
      for (std::int64_t n = 0; n < squares_; ++n) {
        std::int64_t top = climber.rng.between(0, shape()[1] - square_.height);
        std::int64_t left = climber.rng.between(0, shape()[2] - square_.width);
        double sum = 0;
        each_value(top, left, square_,
                   [&](std::int64_t i) { sum += static_cast<double>(direction[static_cast<std::size_t>(i)]); });
        if (sum >= 0) continue;
        each_value(top, left, square_, [&](std::int64_t i) { x[i] = std::max(x[i] - length, 0.0F); });
      }
    }
  }

  // In all channels.
  template <class Visit>
  void each_value(std::int64_t top, std::int64_t left, const Rectangle& size, Visit visit) const {
    for (std::int64_t c = 0; c < shape()[0]; ++c) {
      for (std::int64_t y = top; y < top + size.height; ++y) {
        for (std::int64_t x = left; x < left + size.width; ++x) visit((c * shape()[1] + y) * shape()[2] + x);
      }
    }
  }

  std::vector<std::string> constraints_;
  bool random_lead_;
  float lambda1_;
  float lambda2_;
  Rectangle rectangle_, square_;
  std::int64_t squares_;
  double light_;
};

}  // namespace

GeneratorEntry deepxplore_generator_entry() {
  OptionSchema options = {
      {kOtherModels, std::string(), "files of the other models, such as b.onnx or (b.onnx,c.onnx)", {}, {}, {}},
      {"constraint",
       std::string(),
       "how inputs may change: light, occl, blackout (the three are usual for images), free (usual for sounds); of "
       "several, candidates take turns",
       {},
       {},
       {}},
      {"lead",
       std::string("this"),
       "the model to lead away: the one under test, or one drawn",
       {},
       {},
       {"this", "random"}},
      {"lambda1", 1.0, "weight of the model that is led away", 0.0, 1e6, {}},
      {"lambda2", 0.1, "weight of the neurons", 0.0, 1e6, {}},
      {"size", std::int64_t{10}, "pixels a side of the rectangle of occl", 1.0, 1 << 20, {}},
      {"square", std::int64_t{6}, "pixels a side of a square of blackout", 1.0, 1 << 20, {}},
      {"squares", std::int64_t{10}, "that a step of blackout tries", 1.0, 1e4, {}},
      {"light", 10.0, "how much longer a step of light is, whose gradient's mean is small", 0.0, 1e6, {}}};
  OptionSchema shared = differential_options(50, 10.0 / 255, 0.75, "probabilities");
  options.insert(options.end(), shared.begin(), shared.end());
  return {"deepxplore", "changes on which models come to differ (docs/differential.md)", options,
          [](const Options& chosen, const GeneratorContext& context) -> std::unique_ptr<Generator> {
            return std::make_unique<DeepXplore>(chosen, context);
          }};
}

}  // namespace galvani
