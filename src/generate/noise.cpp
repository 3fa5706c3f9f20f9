// Noise in a ball around the seed, uniform or at its corners: the control that attacks and swarms are measured against.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "generate/builtin.h"

namespace galvani {
namespace {

constexpr double kSlack = 1e-9;  // 8/255 of 255 is eight levels, rounding or not

struct Ball {
  bool l2 = false;
  bool corners = false;  // every value as far as it may go, one way or the other
  double radius = 0;     // in steps of the file's grid
  bool around_seed = true;
};

// The range of a type's values.
double full_scale(const at::Tensor& input) {
  return input.scalar_type() == at::kByte ? 255 : 32768;
}

template <class T>
void add_in_box(const T* centre, std::int64_t n, double radius, bool corners, Rng& rng, T* out) {
  constexpr auto kLow = static_cast<std::int64_t>(std::numeric_limits<T>::min());
  constexpr auto kHigh = static_cast<std::int64_t>(std::numeric_limits<T>::max());
  auto levels = static_cast<std::int64_t>(std::floor(radius + kSlack));
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t step = corners
                            ? ((rng.next_u32() & 1U) != 0 ? levels : -levels)
                            : static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(2 * levels + 1))) - levels;
    out[i] = static_cast<T>(std::clamp(centre[i] + step, kLow, kHigh));
  }
}

// A normal direction, a radius whose n-th power is uniform. Rounding to the grid may leave the ball by a little: then
// nearer to the centre.
template <class T>
void add_in_l2(const T* centre, std::int64_t n, double radius, Rng& rng, T* out) {
  constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::min());
  constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
  std::vector<double> direction(static_cast<std::size_t>(n));
  double square = 0;
  for (double& value : direction) {
    value = rng.normal();
    square += value * value;
  }
  double length = radius * std::pow(rng.uniform(), 1.0 / static_cast<double>(n)) / std::sqrt(std::max(square, 1e-300));
  double found = radius * radius + 1;
  while (found > radius * radius * (1 + kSlack)) {
    found = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      double value = std::clamp(
          std::round(static_cast<double>(centre[i]) + direction[static_cast<std::size_t>(i)] * length), kLow, kHigh);
      out[i] = static_cast<T>(value);
      double step = value - static_cast<double>(centre[i]);
      found += step * step;
    }
    length *= 0.98;
  }
}

void draw(const Ball& ball, const at::Tensor& centre, std::uint64_t seed, at::Tensor& out) {
  Rng rng(seed);
  std::int64_t n = centre.numel();
  auto into = [&](auto* from, auto* to) {
    if (ball.l2) {
      add_in_l2(from, n, ball.radius, rng, to);
    } else {
      add_in_box(from, n, ball.radius, ball.corners, rng, to);
    }
  };
  if (centre.scalar_type() == at::kByte) {
    into(centre.data_ptr<std::uint8_t>(), out.data_ptr<std::uint8_t>());
  } else {
    into(centre.data_ptr<std::int16_t>(), out.data_ptr<std::int16_t>());
  }
}

class NoiseProposal : public Proposal {
 public:
  NoiseProposal(const Generator& generator, const Ball& ball, std::vector<PickedParent> parents, const PickOrder& order)
      : Proposal(generator, std::move(parents), order), ball_(ball) {}

 private:
  Candidates run(std::int64_t most) override {
    Candidates result;
    result.each = due(most);
    seeds_.clear();
    std::vector<std::int64_t> sizes = parents().front().input.sizes().vec();
    sizes.insert(sizes.begin(), static_cast<std::int64_t>(result.each.size()));
    result.inputs = at::empty(sizes, parents().front().input.options());
    for (Candidate& candidate : result.each) {
      candidate.kind = 0;
      // As many bits as a spec's whole number holds without a sign.
      seeds_.push_back(parents()[candidate.parent].stream(candidate.slot).next_u64() >> 1);
    }
    workers().run(static_cast<std::int64_t>(result.each.size()), [&](std::int64_t index, int) {
      auto i = static_cast<std::size_t>(index);
      const PickedParent& parent = parents()[result.each[i].parent];
      at::Tensor out = result.inputs[index];
      draw(ball_, ball_.around_seed ? parent.seed : parent.input, seeds_[i], out);
      result.each[i].valid = !at::equal(out, parent.input);
    });
    made_ = result;
    return result;
  }
  // How far it is from the seed, as a share of the full scale.
  std::vector<std::pair<std::string, double>> run_figures(std::size_t row) const override {
    at::Tensor made = made_.inputs[static_cast<std::int64_t>(row)];
    at::Tensor change = made.to(at::kDouble) - parents()[made_.each[row].parent].seed.to(at::kDouble);
    return {{"linf", change.abs().max().item<double>() / full_scale(made)},
            {"l2", change.norm().item<double>() / full_scale(made)}};
  }
  std::string run_provenance(std::size_t row) const override { return fmt::format("noise:draw={}", seeds_[row]); }

  Ball ball_;
  std::vector<std::uint64_t> seeds_;
  Candidates made_;
};

class NoiseGenerator : public Generator {
 public:
  NoiseGenerator(const Options& options, const GeneratorContext& context) {
    ball_.l2 = options.text("norm") == "l2";
    ball_.radius = options.real("eps") * full_scale(context.seeds);
    ball_.around_seed = options.text("around") == "seed";
    ball_.corners = options.text("at") == "corners";
    if (ball_.corners && ball_.l2) bad_usage("noise: a ball in l2 has no corners; leave out at=corners, or take linf");
    at::ScalarType type = context.seeds.scalar_type();
    if (type != at::kByte && type != at::kShort) bad_usage("noise is made for 8-bit images and 16-bit sounds");
    if (!ball_.l2 && options.real("eps") > 1)
      bad_usage("noise: eps is a share of the full scale, at most 1 in this norm; {0} of 255 grey levels is {0}/255",
                options.real("eps"));
    if (ball_.radius < 1 - kSlack)
      bad_usage("noise: eps {} is less than one step of the file's grid, {:.6g}, so nothing would change",
                options.real("eps"), 1 / full_scale(context.seeds));
  }

  bool valid(const at::Tensor& reference, const at::Tensor& input) const override {
    // Around the parent a lineage may go anywhere.
    if (!ball_.around_seed) return true;
    at::Tensor change = input.to(at::kDouble) - reference.to(at::kDouble);
    double size = ball_.l2 ? change.norm().item<double>() : change.abs().max().item<double>();
    return size <= ball_.radius * (1 + kSlack);
  }

 private:
  std::unique_ptr<Proposal> run_begin(std::vector<PickedParent> parents, const PickOrder& order) const override {
    return std::make_unique<NoiseProposal>(*this, ball_, std::move(parents), order);
  }
  at::Tensor run_make(const std::string& provenance, const at::Tensor& parent, const at::Tensor& seed) const override {
    static const OptionSchema schema = {{"draw", std::int64_t{0}, "which noise", 0.0, {}, {}}};
    Spec spec = Spec::parse(provenance);
    if (spec.name != "noise") bad_usage("'{}' is not a step of the generator noise", printable(provenance));
    at::Tensor out = at::empty_like(parent);
    draw(ball_, ball_.around_seed ? seed : parent,
         static_cast<std::uint64_t>(Options("noise", schema, spec).integer("draw")), out);
    return out;
  }

  Ball ball_;
};

}  // namespace

GeneratorEntry noise_generator_entry() {
  return {"noise",
          "noise in a ball, uniform or at its corners: the control for attacks and swarms",
          {{"norm", std::string("linf"), "of the ball", {}, {}, {"linf", "l2"}},
           {"eps", 8.0 / 255, "its radius, as a share of the full scale, such as 8/255", 0.0, 1e4, {}, true},
           {"around",
            std::string("seed"),
            "its centre: where the lineage starts, or the parent",
            {},
            {},
            {"seed", "parent"}},
           {"at",
            std::string("inside"),
            "anywhere in the ball, or at the corners of a linf one",
            {},
            {},
            {"inside", "corners"}}},
          [](const Options& options, const GeneratorContext& context) -> std::unique_ptr<Generator> {
            return std::make_unique<NoiseGenerator>(options, context);
          }};
}

}  // namespace galvani
