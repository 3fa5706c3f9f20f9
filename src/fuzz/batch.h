// One batch: picks, mutants, verdicts, decisions.
#pragma once

#include <cstdint>
#include <vector>

#include "fuzz/state.h"
#include "galvani/base/rng.h"
#include "galvani/fuzz/settings.h"
#include "galvani/mutate/engine.h"
#include "galvani/trace/trace.h"

namespace galvani {

// [N] float: of the predicted classes.
at::Tensor confidences_of(const Judged& judged);

class BatchRunner {
 public:
  BatchRunner(const CampaignSettings& settings, Tracer& tracer, const MutationEngine& engine, const GuideNeeds& needs);

  // Seeds from `first` on, as mutants are judged.
  Judged judge_seeds(Corpus& corpus, std::int64_t first, std::int64_t count) const;
  // What the seeds cover, told to the guide; the gain of each.
  std::vector<double> absorb_seeds(CampaignState& state) const;

  // The next batch: what was found. The result is a function of settings and state; nothing is written.
  BatchRecord run(CampaignState& state) const;

 private:
  struct Slot;
  Judged judge(const at::Tensor& images, Corpus& corpus, std::int64_t& reexamined) const;
  void run_slots(CampaignState& state, BatchRecord& batch, const std::vector<Slot>& slots) const;
  void run_chunk(CampaignState& state, BatchRecord& batch, const std::vector<Slot>& slots) const;
  std::int64_t chunk_size() const;

  CampaignSettings settings_;
  Tracer& tracer_;
  const MutationEngine& engine_;
  GuideNeeds needs_;
  Rng pick_stream_;
  Rng mutation_stream_;
};

}  // namespace galvani
