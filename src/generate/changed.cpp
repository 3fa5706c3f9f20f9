#include "galvani/generate/changed.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "galvani/base/interrupt.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

constexpr std::int64_t kParentsAtOnce = 64;
constexpr std::int64_t kCandidatesAtOnce = 4096;

}  // namespace

Changed changed_by(const Generator& generator, Network& network, const at::Tensor& inputs, const at::Tensor& labels,
                   const Rng& rng) {
  std::int64_t n = inputs.size(0);
  std::vector<at::Tensor> found(static_cast<std::size_t>(n));
  std::vector<char> fools(static_cast<std::size_t>(n), 0);
  PickOrder order;
  order.energy = std::max<std::int64_t>(1, usual_energy(generator.spec()));
  for (std::int64_t first = 0; first < n; first += kParentsAtOnce) {
    std::vector<PickedParent> parents;
    for (std::int64_t i = first; i < std::min(n, first + kParentsAtOnce); ++i)
      parents.push_back({inputs[i], inputs[i], "", labels[i].item<std::int64_t>(), i + 1, rng});
    std::unique_ptr<Proposal> proposal = generator.begin(std::move(parents), order);
    while (true) {
      check_interrupt();
      Candidates candidates = proposal->next(kCandidatesAtOnce);
      if (candidates.each.empty()) break;
      Outcome outcome;
      for (std::size_t i = 0; i < candidates.each.size(); ++i) {
        if (candidates.each[i].valid) outcome.rows.push_back(static_cast<std::int64_t>(i));
      }
      if (!outcome.rows.empty()) {
        at::Tensor shown = candidates.inputs.index_select(0, at::tensor(outcome.rows, at::kLong));
        outcome.logits = network.run(shown).logits;
        outcome.predicted = verdicts(outcome.logits).contiguous();
        outcome.kept.assign(outcome.rows.size(), 0);
        for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
          auto parent = candidates.each[static_cast<std::size_t>(outcome.rows[i])].parent;
          auto row = static_cast<std::size_t>(first) + parent;
          bool fooled = outcome.predicted.data_ptr<std::int64_t>()[i] != proposal->parents()[parent].label;
          if (fools[row] != 0 && !fooled) continue;
          found[row] = shown[static_cast<std::int64_t>(i)].clone();
          fools[row] = fooled ? 1 : 0;
        }
      }
      proposal->learn(outcome);
    }
  }
  Changed changed;
  std::vector<at::Tensor> kept;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) continue;
    kept.push_back(found[i]);
    changed.rows.push_back(static_cast<std::int64_t>(i));
    changed.fooling += fools[i];
  }
  if (!kept.empty()) changed.inputs = at::stack(kept);
  return changed;
}

}  // namespace galvani
