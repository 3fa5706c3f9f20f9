// Genetic search in a ball: the fitter of two drawn at random, twice, mixed value by value, a few values drawn anew.
// The best of old and new go on, so that every generation shows as many new inputs as a swarm does.
#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "generate/builtin.h"
#include "generate/population.h"

namespace galvani {
namespace {

class GeneticMovement : public Movement {
 public:
  explicit GeneticMovement(double rate) : rate_(rate) {}

  void advance(const Terrain& terrain, const std::vector<double>& fitness, std::int64_t, Rng rng,
               at::Tensor& places) override {
    select(fitness, places);
    auto n = static_cast<std::size_t>(terrain.values());
    for (std::size_t child = 0; child < fitness.size(); ++child) {
      Rng own = rng.derive(child);
      const float* mother = parent(own, n);
      const float* father = parent(own, n);
      float* to = places.data_ptr<float>() + child * n;
      for (std::size_t i = 0; i < n; ++i) to[i] = (own.next_u32() & 1U) != 0 ? mother[i] : father[i];
      // So many that an input without any is seldom.
      auto changes = static_cast<std::size_t>(rate_ * static_cast<double>(n) + own.uniform());
      for (std::size_t k = 0; k < changes; ++k) {
        auto i = static_cast<std::size_t>(own.below(n));
        auto share = static_cast<float>(2 * own.uniform() - 1);
        to[i] = std::clamp(terrain.seed[i] + share * terrain.radius, terrain.low[i], terrain.high[i]);
      }
    }
  }

 private:
  // The best of those that were and those that are. Of equal ones, the older.
  void select(const std::vector<double>& fitness, const at::Tensor& places) {
    at::Tensor all = pool_.defined() ? at::cat({pool_, places}) : places.clone();
    std::vector<double> fit = fitness_;
    fit.insert(fit.end(), fitness.begin(), fitness.end());
    std::vector<std::int64_t> order(fit.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return fit[static_cast<std::size_t>(a)] > fit[static_cast<std::size_t>(b)];
    });
    order.resize(fitness.size());
    pool_ = all.index_select(0, at::tensor(order, at::kLong));
    fitness_.clear();
    for (std::int64_t row : order) fitness_.push_back(fit[static_cast<std::size_t>(row)]);
  }

  // The pool is sorted, so the fitter of two is the one that comes first.
  const float* parent(Rng& rng, std::size_t values) const {
    std::uint64_t one = rng.below(fitness_.size()), other = rng.below(fitness_.size());
    return pool_.data_ptr<float>() + std::min(one, other) * values;
  }

  double rate_;
  at::Tensor pool_;  // [members, values], the fittest first
  std::vector<double> fitness_;
};

class Genetic : public PopulationSearch {
 public:
  Genetic(const Options& options, const GeneratorContext& context)
      : PopulationSearch(options, context), rate_(options.real("rate")) {}
  std::unique_ptr<Movement> movement(std::int64_t, const Terrain&, Rng) const override {
    return std::make_unique<GeneticMovement>(rate_);
  }

 private:
  double rate_;
};

}  // namespace

GeneratorEntry genetic_generator_entry() {
  OptionSchema options = population_options();
  options.push_back({"rate", 0.02, "share of the values that are drawn anew", 0.0, 1.0, {}});
  return {"genetic", "genetic search in a ball, at the cost of a swarm: its control (docs/deepsensor.md)", options,
          [](const Options& chosen, const GeneratorContext& context) -> std::unique_ptr<Generator> {
            return std::make_unique<Genetic>(chosen, context);
          }};
}

}  // namespace galvani
