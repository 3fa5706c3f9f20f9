// One changed input of each of several, by any generator: for looking at what changes do, outside a campaign.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "galvani/base/rng.h"
#include "galvani/generate/generator.h"

namespace galvani {

struct Changed {
  at::Tensor inputs;  // [M, ...]
  std::vector<std::int64_t>
      rows;                  // which input each was made of, ascending; those without a valid candidate are missing
  std::int64_t fooling = 0;  // that the network does not give the label of
};
// Of every input the last candidate that fools the network or, if none does, the last valid one. inputs [N, ...] as
// files hold them, labels [N] int64. A generator that searches is let to its end; others make one candidate.
Changed changed_by(const Generator& generator, Network& network, const at::Tensor& inputs, const at::Tensor& labels,
                   const Rng& rng);

}  // namespace galvani
