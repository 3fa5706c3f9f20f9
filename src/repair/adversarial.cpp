#include "galvani/repair/adversarial.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "galvani/base/error.h"

namespace galvani {
namespace {

constexpr float kFull = 255;

struct Pgd {
  NetworkInfo info;
  Preprocess preprocess;
  float radius;  // grey levels
  float step;
  std::int64_t steps;

  at::Tensor operator()(Slot& slot, const at::Tensor& images, const at::Tensor& labels) const {
    at::Tensor originals = images.to(at::kFloat);
    at::Tensor low = (originals - radius).clamp_min_(0);
    at::Tensor high = (originals + radius).clamp_max_(kFull);
    at::Tensor x = at::min(at::max(originals + start(slot, originals), low), high);
    auto loss = [&](const at::Tensor& logits) {
      return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum);
    };
    for (std::int64_t i = 0; i < steps; ++i) {
      at::Tensor of_graph = slot.input_gradient(0, to_graph(info, preprocess, x), loss);
      at::Tensor slope = from_graph(info, preprocess, of_graph);
      x = at::min(at::max(x + step * slope.sign(), low), high);
    }
    return x;
  }

  // A random point of the ball. Rows of a slot draw from the slot's own stream, one after the other.
  at::Tensor start(const Slot& slot, const at::Tensor& like) const {
    at::Tensor noise = at::empty_like(like, at::MemoryFormat::Contiguous);
    Rng rng = slot.stream().derive("adversary").derive(static_cast<std::uint64_t>(slot.index()));
    rng.fill_uniform(noise.data_ptr<float>(), static_cast<std::size_t>(noise.numel()));
    return noise.mul_(2 * radius).sub_(radius);
  }
};

}  // namespace

const AdversaryRegistry& adversaries() {
  static const AdversaryRegistry registry(
      "adversary",
      {{"pgd",
        "steps along the sign of the gradient from a random start, within eps of every pixel",
        {{"eps", 8.0 / 255, "largest change of a pixel, share of the full scale", 0.0, 1.0, {}, true},
         {"steps", std::int64_t{7}, "gradients a batch", 1.0, 1000.0, {}},
         {"step", 0.0, "length of a step, share of the full scale; 0: 2.5 eps / steps", 0.0, 1.0, {}, true}},
        [](const Options& options, const Network& network) {
          double step = options.real("step");
          if (step == 0) step = 2.5 * options.real("eps") / static_cast<double>(options.integer("steps"));
          Pgd pgd{network.info(), network.card().preprocess, static_cast<float>(options.real("eps")) * kFull,
                  static_cast<float>(step) * kFull, options.integer("steps")};
          return Perturbation{options.str(), pgd};
        }}});
  return registry;
}

Perturbation make_adversary(const Spec& spec, const Network& network) {
  if (network.info().number == "uint8")
    bad_input("{}: takes bytes, so no gradient reaches its input and it cannot be trained against an attack",
              network.info().path);
  return adversaries().create(spec, network);
}

}  // namespace galvani
