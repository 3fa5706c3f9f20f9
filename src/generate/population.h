// What swarms and genetic search share: for every parent a population of changed inputs in a ball around its seed,
// which goes on from generation to generation. The populations of several parents are one batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "galvani/base/rng.h"
#include "galvani/generate/generator.h"
#include "generate/fitness.h"

namespace galvani {

// Where the members of a population may be, on the scale of the file.
struct Terrain {
  std::vector<float> low, high;  // of every value
  std::vector<float> seed;
  float radius = 0;
  std::int64_t values() const { return static_cast<std::int64_t>(low.size()); }
};

// How one population moves. Nothing is rounded here.
class Movement {
 public:
  virtual ~Movement() = default;
  // places [members, values] float: in, where the members are, and how fit each is; out, where they are next.
  // `generation` counts from 1; `rng` is of this population and generation.
  virtual void advance(const Terrain& terrain, const std::vector<double>& fitness, std::int64_t generation, Rng rng,
                       at::Tensor& places) = 0;
};

class PopulationSearch : public Generator {
 public:
  std::vector<std::string> kinds() const override { return {id(), id() + "-final"}; }
  std::string files_sha256() const override { return fitness_->files_sha256(); }
  bool valid(const at::Tensor& reference, const at::Tensor& input) const override;

  Terrain terrain(const PickedParent& parent) const;
  // Where a population begins, [members, values] float.
  at::Tensor first_places(const PickedParent& parent, const Terrain& terrain, std::int64_t members) const;
  virtual std::unique_ptr<Movement> movement(std::int64_t members, const Terrain& terrain, Rng rng) const = 0;

  const Fitness& fitness() const { return *fitness_; }
  std::int64_t population() const { return population_; }
  std::int64_t generations() const { return generations_; }
  double full() const { return full_; }
  // Parents whose populations exist at once, for the sake of memory.
  std::int64_t parents_at_once(std::int64_t members) const;
  void count(std::int64_t passes) const { count_passes(passes); }

 protected:
  // Reads the options of population_options().
  PopulationSearch(const Options& options, const GeneratorContext& context);

 private:
  std::unique_ptr<Proposal> run_begin(std::vector<PickedParent> parents, const PickOrder& order) const override;
  at::Tensor run_make(const std::string& provenance, const at::Tensor& parent, const at::Tensor& seed) const override;

  std::unique_ptr<Fitness> fitness_;
  std::int64_t population_;
  std::int64_t generations_;
  std::string start_;
  double low_, high_, full_;  // of the file format
  double radius_;             // in its unit
  std::int64_t values_;
};

// Those of the fitness, and the size of the search.
OptionSchema population_options();
inline constexpr const char* kPopulation = "population";
inline constexpr const char* kGenerations = "generations";

}  // namespace galvani
