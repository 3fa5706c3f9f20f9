// What a search for changed inputs climbs: how many neurons an input excites, how large the loss is, what it covers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "galvani/base/options.h"
#include "galvani/generate/generator.h"

namespace galvani {

// The fitness of the candidates of some parents, for as long as these are searched.
class FitnessWork {
 public:
  virtual ~FitnessWork() = default;
  // inputs [N, ...] as files hold them, and whose candidates they are, ascending. What is not a number is worst.
  virtual std::vector<double> of(const at::Tensor& inputs, const std::vector<std::size_t>& parents) = 0;
  std::int64_t passes() const { return passes_; }  // forward, of one input each

 protected:
  std::int64_t passes_ = 0;
};

class Fitness {
 public:
  virtual ~Fitness() = default;
  // Null: it follows from what the network says when candidates are shown, and costs nothing.
  virtual std::unique_ptr<FitnessWork> begin(const std::vector<PickedParent>& parents) const = 0;
  // Where begin() gives nothing. scores [classes] float.
  virtual double of_scores(const at::Tensor& scores, std::int64_t label) const;
  // At which a search has all it wants.
  virtual double enough() const;
  virtual std::string files_sha256() const { return ""; }
};

OptionSchema fitness_options();
// The option that names a profile's file.
inline constexpr const char* kProfileFile = "profile";
// `network` may be null where nothing is searched.
std::unique_ptr<Fitness> make_fitness(const Options& options, Network* network);

}  // namespace galvani
