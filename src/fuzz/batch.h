// One batch: pick, propose, judge, decide; the campaign stores what comes of it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fuzz/news.h"
#include "fuzz/state.h"
#include "galvani/base/archive.h"
#include "galvani/base/rng.h"
#include "galvani/fuzz/settings.h"
#include "galvani/generate/generator.h"
#include "galvani/trace/trace.h"

namespace galvani {

// [N] float: of the predicted classes.
at::Tensor confidences_of(const Network& network, const Judged& judged);

class BatchRunner {
 public:
  // `count_passes`: version 2 of the store did not.
  BatchRunner(const CampaignSettings& settings, Tracer& tracer, const Generator& generator, const GuideNeeds& needs,
              SampleType type, bool count_passes);

  // Seeds from `first` on, as candidates are judged.
  Judged judge_seeds(Corpus& corpus, std::int64_t first, std::int64_t count) const;
  // What the seeds cover, told to the guide; the gain of each.
  std::vector<double> absorb_seeds(CampaignState& state) const;
  // What other data cover, told to the guide.
  void absorb(CampaignState& state, const Dataset& data) const;

  // The next batch: what was found. The result is a function of settings and state, and, on an island, of what the
  // others have told; nothing is written.
  BatchRecord run(CampaignState& state, const std::vector<News>& told = {}) const;

 private:
  // Valid candidates of one call of a proposal, and what was decided about each.
  struct Round {
    Candidates candidates;
    std::vector<std::int64_t> rows;  // the valid ones
    at::Tensor inputs;               // of them
  };
  struct Find;

  std::vector<std::int64_t> pick(CampaignState& state) const;
  std::vector<PickedParent> parents(CampaignState& state, const std::vector<std::int64_t>& picks) const;
  static Round valid_ones(CampaignState& state, const Proposal& proposal, Candidates candidates);
  // `references` of a task that has such; undefined: answers are right as they are.
  Judged judge(const at::Tensor& images, const at::Tensor& references, Corpus& corpus, std::int64_t& reexamined) const;
  Judged judge(CampaignState& state, const Proposal& proposal, const Round& round,
               const std::vector<std::int64_t>& picks) const;
  std::vector<Find> number_finds(CampaignState& state, const Round& round, const Judged& judged,
                                 const std::vector<Decision>& decisions) const;
  std::vector<std::pair<std::string, double>> remarks_on(const Judged& judged, std::size_t row) const;
  static void for_each_find(const std::vector<Find*>& finds, bool tell_all, const std::function<void(Find&)>& work,
                            void (*put)(ArchiveWriter&, const Find&), void (*get)(ArchiveReader&, Find&));
  void describe_finds(CampaignState& state, const Proposal& proposal, const Round& round,
                      std::vector<Find>& finds) const;
  static void add_finds(CampaignState& state, const Round& round, std::vector<Find> finds, BatchRecord& batch);
  std::int64_t chunk_size() const;
  // Of what other islands have found, what the guide keeps.
  void adopt(CampaignState& state, const News& news, BatchRecord& batch) const;
  std::int64_t adopt(CampaignState& state, const News& news, const NewsRow& row, const Decision& decision,
                     BatchRecord& batch) const;

  CampaignSettings settings_;
  Tracer& tracer_;
  const Generator& generator_;
  GuideNeeds needs_;
  SampleType type_;
  bool count_passes_;
  Island island_;
  Rng pick_stream_;
  Rng candidate_stream_;
};

}  // namespace galvani
