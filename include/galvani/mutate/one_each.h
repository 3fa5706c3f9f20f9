// One mutant of every input: pools of changed inputs, and what selectors compare an input with.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/data/view.h"
#include "galvani/mutate/engine.h"

namespace galvani {

class OneEach {
 public:
  // Of inputs of this type. Style mutators need style images.
  OneEach(const std::string& mutators, const SampleType& type, const at::Tensor& style_images = {});

  // Whatever the bounds of validity; an input that no mutator changes stays as it is. What is drawn follows from the
  // stream and the row's number alone. images [n, ...] of the type, rows [n].
  Mutants make(const at::Tensor& images, const std::vector<std::int64_t>& rows, const Rng& stream) const;

  const MutatorSet& set() const { return engine_.set(); }

 private:
  MutationEngine engine_;
};

// The data with every input changed once, labels kept; each is made when it is fetched. `rules`, one for each row, are
// filled in then. Both must outlive the view.
DataView changed_once(const DataView& data, const OneEach& maker, std::uint64_t seed, std::vector<std::string>& rules);

}  // namespace galvani
