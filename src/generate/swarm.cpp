// Particle swarm optimisation (Kennedy and Eberhart 1995) as DeepSensor uses it: equations 7 to 9.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "generate/builtin.h"
#include "generate/population.h"

namespace galvani {
namespace {

struct SwarmConstants {
  double own;            // c1
  double common;         // c2
  double inertia_first;  // ω at the beginning
  double inertia_last;   // and at the end
  double fastest;        // share of the radius
  std::int64_t generations;
};

class SwarmMovement : public Movement {
 public:
  SwarmMovement(const SwarmConstants& constants, std::int64_t members, const Terrain& terrain, Rng rng)
      : constants_(constants), fastest_(static_cast<float>(constants.fastest) * terrain.radius) {
    velocities_ = at::empty({members, terrain.values()});
    auto* velocity = velocities_.data_ptr<float>();
    rng.fill_uniform(velocity, static_cast<std::size_t>(velocities_.numel()));
    for (std::int64_t i = 0; i < velocities_.numel(); ++i) velocity[i] = (2 * velocity[i] - 1) * fastest_;
    own_fitness_.assign(static_cast<std::size_t>(members), -std::numeric_limits<double>::infinity());
  }

  void advance(const Terrain& terrain, const std::vector<double>& fitness, std::int64_t generation, Rng rng,
               at::Tensor& places) override {
    remember(fitness, places);
    auto n = static_cast<std::size_t>(terrain.values());
    auto left = static_cast<double>(constants_.generations - generation) / static_cast<double>(constants_.generations);
    auto inertia =
        static_cast<float>((constants_.inertia_first - constants_.inertia_last) * left + constants_.inertia_last);
    auto own = static_cast<float>(constants_.own), common = static_cast<float>(constants_.common);
    std::vector<float> drawn(2 * n);
    for (std::size_t member = 0; member < fitness.size(); ++member) {
      rng.derive(member).fill_uniform(drawn.data(), drawn.size());
      float* x = places.data_ptr<float>() + member * n;
      float* v = velocities_.data_ptr<float>() + member * n;
      const float* best = own_best_.data_ptr<float>() + member * n;
      for (std::size_t i = 0; i < n; ++i) {
        float speed = inertia * v[i] + own * drawn[i] * (best[i] - x[i]) + common * drawn[n + i] * (leader_[i] - x[i]);
        v[i] = std::clamp(speed, -fastest_, fastest_);
        x[i] = std::clamp(x[i] + v[i], terrain.low[i], terrain.high[i]);
      }
    }
  }

 private:
  // Where every particle was fittest, and where any was. Of equal places, the first.
  void remember(const std::vector<double>& fitness, const at::Tensor& places) {
    bool first = !own_best_.defined();
    if (first) own_best_ = places.clone();
    std::int64_t n = places.size(1);
    for (std::size_t i = 0; i < fitness.size(); ++i) {
      const float* place = places.data_ptr<float>() + static_cast<std::int64_t>(i) * n;
      if (fitness[i] > own_fitness_[i]) {
        own_fitness_[i] = fitness[i];
        std::copy(place, place + n, own_best_.data_ptr<float>() + static_cast<std::int64_t>(i) * n);
      }
      if (leader_.empty() || fitness[i] > leader_fitness_) {
        leader_fitness_ = fitness[i];
        leader_.assign(place, place + n);
      }
    }
  }

  SwarmConstants constants_;
  float fastest_;
  at::Tensor velocities_;  // [members, values]
  at::Tensor own_best_;    // likewise
  std::vector<double> own_fitness_;
  std::vector<float> leader_;
  double leader_fitness_ = -std::numeric_limits<double>::infinity();
};

class Swarm : public PopulationSearch {
 public:
  Swarm(const Options& options, const GeneratorContext& context)
      : PopulationSearch(options, context), constants_{options.real("c1"),      options.real("c2"),
                                                       options.real("inertia"), options.real("inertia_end"),
                                                       options.real("fastest"), options.integer(kGenerations)} {}

  std::unique_ptr<Movement> movement(std::int64_t members, const Terrain& terrain, Rng rng) const override {
    return std::make_unique<SwarmMovement>(constants_, members, terrain, rng);
  }

 private:
  SwarmConstants constants_;
};

}  // namespace

GeneratorEntry swarm_generator_entry() {
  OptionSchema options = population_options();
  OptionSchema own = {{"c1", 2.0, "pull of a particle's own best place", 0.0, 1e3, {}},
                      {"c2", 2.0, "pull of the best place of all", 0.0, 1e3, {}},
                      {"inertia", 0.4, "how much of its speed a particle keeps at first", 0.0, 10.0, {}},
                      {"inertia_end", 0.9, "and at the end", 0.0, 10.0, {}},
                      {"fastest", 1.0, "largest speed, as a share of eps", 1e-6, 1e3, {}}};
  options.insert(options.end(), own.begin(), own.end());
  return {"swarm", "particles in a ball, drawn to where most neurons are excited (docs/deepsensor.md)", options,
          [](const Options& chosen, const GeneratorContext& context) -> std::unique_ptr<Generator> {
            return std::make_unique<Swarm>(chosen, context);
          }};
}

}  // namespace galvani
