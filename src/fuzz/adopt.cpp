// What an island makes of the news of another.
#include <ATen/ATen.h>

#include <algorithm>

#include "fuzz/batch.h"
#include "galvani/base/error.h"

namespace galvani {

// Judged as own candidates are: what covers nothing new here is not taken, whoever found it.
void BatchRunner::adopt(CampaignState& state, const News& news, BatchRecord& batch) const {
  std::vector<const NewsRow*> fresh;
  for (const NewsRow& row : news.rows) {
    if (row.fresh) fresh.push_back(&row);
  }
  auto size = static_cast<std::size_t>(chunk_size());
  for (std::size_t first = 0; first < fresh.size(); first += size) {
    std::size_t end = std::min(fresh.size(), first + size);
    std::vector<at::Tensor> images;
    std::vector<std::int64_t> seeds;
    for (std::size_t i = first; i < end; ++i) {
      images.push_back(type_.decode(fresh[i]->encoded, "another island"));
      seeds.push_back(fresh[i]->record.seed);
    }
    std::int64_t unused = 0;
    Judged judged = judge(at::stack(images), state.corpus.references(seeds), state.corpus, unused);
    if (count_passes_) state.counters.passes += judged.size();
    for (std::size_t i = first; i < end; ++i) {
      const InputRecord& record = fresh[i]->record;
      judged.labels.push_back(record.label);
      // What it was made of need not be here; seeds are the same everywhere.
      judged.parents.push_back(record.seed);
      judged.seeds.push_back(record.seed);
      judged.iterations.push_back(record.iteration);
    }
    std::vector<Decision> decisions = state.guide->decide(judged);
    for (std::size_t i = first; i < end; ++i) {
      if (decisions[i - first].keep) adopt(state, news, *fresh[i], decisions[i - first], batch);
    }
  }
}

// Its number here. What it was made of comes first, so that its lineage is whole.
std::int64_t BatchRunner::adopt(CampaignState& state, const News& news, const NewsRow& row, const Decision& decision,
                                BatchRecord& batch) const {
  const InputRecord& there = row.record;
  std::int64_t origin = there.origin != 0 ? there.origin : packed_origin(news.island, there.id);
  if (origin / kOriginStep == island_.number) return origin % kOriginStep;
  if (auto known = state.adopted.find(origin); known != state.adopted.end()) return known->second;
  std::int64_t parent = there.parent;
  if (!state.is_seed(parent)) {
    auto found = std::lower_bound(news.rows.begin(), news.rows.end(), parent,
                                  [](const NewsRow& one, std::int64_t id) { return one.record.id < id; });
    if (found == news.rows.end() || found->record.id != parent || parent >= there.id)
      bad_input("island {}: the lineage of kept mutant {} is broken", news.island, there.id);
    parent = adopt(state, news, *found, {}, batch);
  }
  InputRecord here = there;
  here.id = state.corpus.size() + 1;
  here.parent = parent;
  here.iteration = state.counters.iterations;
  here.origin = origin;
  here.gain = decision.gain;
  here.metadata = decision.metadata;
  here.distinct = state.seen_kept.first(here.sha256, here.label, here.id) == here.id;
  ++state.counters.kept;
  state.counters.distinct_kept += here.distinct ? 1 : 0;
  state.corpus.add(parent, here.iteration, generator_.inherit(state.corpus.at(parent).memo, here.rule), here.gain,
                   type_.decode(row.encoded, "another island"));
  ++state.never_picked;
  state.adopted.emplace(origin, here.id);
  batch.inputs.push_back({std::move(here), row.encoded});
  return state.corpus.size();
}

}  // namespace galvani
