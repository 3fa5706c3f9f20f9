#include "fuzz/batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <string>

#include "fuzz/fault_files.h"
#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

// What the mutants of one call may take, with their traces. A constant, for it decides which mutants share a
// micro-batch.
constexpr std::int64_t kChunkBytes = std::int64_t{256} << 20;

}  // namespace

// A mutant to be made.
struct BatchRunner::Slot {
  std::int64_t parent;
  std::int64_t iteration;
  std::int64_t number;
};

BatchRunner::BatchRunner(const CampaignSettings& settings, Tracer& tracer, const MutationEngine& engine,
                         const GuideNeeds& needs)
    : settings_(settings),
      tracer_(tracer),
      engine_(engine),
      needs_(needs),
      pick_stream_(Rng(settings.seed).derive("pick")),
      mutation_stream_(Rng(settings.seed).derive("mutate")) {
  tracer_.need(needs.more);
}

std::int64_t BatchRunner::chunk_size() const {
  Network& network = tracer_.network();
  // The mutant, its reference and a copy of the valid ones.
  std::int64_t bytes = 3 * static_cast<std::int64_t>(engine_.shape().bytes());
  if (needs_.traces) {
    bytes += tracer_.layout().neurons * 12;
    for (int tap : tracer_.taps()) {
      std::int64_t units = network.taps()[static_cast<std::size_t>(tap)].units();
      if (needs_.more.relevance) bytes += units * 12;
      if (needs_.more.layers) bytes += units * 12;
    }
  }
  std::int64_t micro = network.execution().micro_batch;
  return std::max<std::int64_t>(1, kChunkBytes / (bytes * micro)) * micro;
}

at::Tensor confidences_of(const Judged& judged) {
  return confidences(judged.logits.softmax(1), judged.predicted);
}

Judged BatchRunner::judge(const at::Tensor& images, Corpus& corpus, std::int64_t& reexamined) const {
  Judged judged{images, {}, {}, {}, {}, {}, {}, {}, {}, corpus};
  Network& network = tracer_.network();
  if (needs_.traces) {
    judged.traces = tracer_.trace(images);
    judged.logits = judged.traces.logits;
  } else {
    judged.logits = network.run(images).logits;
  }
  reexamined += settle_close_calls(network, images, judged.logits);
  judged.predicted = verdicts(judged.logits);
  if (needs_.traces) judged.traces.predicted = judged.predicted;
  return judged;
}

Judged BatchRunner::judge_seeds(Corpus& corpus, std::int64_t first, std::int64_t count) const {
  std::vector<at::Tensor> images;
  for (std::int64_t id = first; id < first + count; ++id) images.push_back(corpus.image(id));
  std::int64_t unused = 0;
  Judged judged = judge(at::stack(images), corpus, unused);
  for (std::int64_t id = first; id < first + count; ++id) {
    judged.labels.push_back(corpus.at(id).label);
    judged.parents.push_back(id);
    judged.seeds.push_back(id);
    judged.iterations.push_back(0);
    judged.rules.push_back(nullptr);
  }
  return judged;
}

std::vector<double> BatchRunner::absorb_seeds(CampaignState& state) const {
  std::vector<double> gains;
  std::int64_t size = chunk_size();
  for (std::int64_t first = 1; first <= state.corpus.size(); first += size) {
    if (!needs_.traces) break;
    std::int64_t count = std::min(size, state.corpus.size() + 1 - first);
    std::vector<double> part = state.guide->absorb(judge_seeds(state.corpus, first, count));
    gains.insert(gains.end(), part.begin(), part.end());
  }
  gains.resize(static_cast<std::size_t>(state.corpus.size()), 0.0);
  Covered covered = state.guide->covered();
  state.counters.covered = covered.covered;
  state.counters.coverable = covered.total;
  return gains;
}

BatchRecord BatchRunner::run(CampaignState& state) const {
  BatchRecord batch;
  CampaignCounters& counters = state.counters;
  std::vector<Slot> open;  // the next mutant of every pick
  for (std::int64_t i = 0; i < settings_.batch; ++i) {
    std::int64_t iteration = counters.iterations + i + 1;
    Rng rng = pick_stream_.derive(static_cast<std::uint64_t>(iteration));
    std::int64_t id = state.scheduler->pick(state.corpus.entries(), rng);
    if (state.corpus.at(id).picks == 0) --state.never_picked;
    state.corpus.count_pick(id);
    state.picks.add(id);
    batch.picks.push_back(id);
    open.push_back({id, iteration, 0});
  }
  if (settings_.stop_at_kept) {
    // Side by side, a mutant of every pick at a time.
    while (!open.empty() && open.front().number < settings_.energy) {
      std::size_t before = batch.inputs.size();
      run_slots(state, batch, open);
      for (std::size_t i = before; i < batch.inputs.size(); ++i) {
        std::int64_t done = batch.inputs[i].record.iteration;
        open.erase(std::find_if(open.begin(), open.end(), [&](const Slot& slot) { return slot.iteration == done; }));
      }
      for (Slot& slot : open) ++slot.number;
    }
  } else {
    std::vector<Slot> slots;
    slots.reserve(static_cast<std::size_t>(settings_.batch * settings_.energy));
    for (Slot slot : open) {
      for (; slot.number < settings_.energy; ++slot.number) slots.push_back(slot);
    }
    run_slots(state, batch, slots);
  }
  counters.batches += 1;
  counters.iterations += settings_.batch;
  Covered covered = state.guide->covered();
  counters.covered = covered.covered;
  counters.coverable = covered.total;
  bool saturated = state.guide->full() || counters.iterations - state.last_kept >= settings_.patience;
  if (settings_.reset_when_full && saturated) {
    state.guide->reset();
    counters.resets += 1;
    state.last_kept = counters.iterations;
  }
  batch.counters = counters;
  batch.totals = totals_value(state.yields, state.picks);
  return batch;
}

void BatchRunner::run_slots(CampaignState& state, BatchRecord& batch, const std::vector<Slot>& slots) const {
  auto size = static_cast<std::size_t>(chunk_size());
  for (std::size_t first = 0; first < slots.size(); first += size) {
    std::size_t end = std::min(first + size, slots.size());
    run_chunk(state, batch,
              {slots.begin() + static_cast<std::ptrdiff_t>(first), slots.begin() + static_cast<std::ptrdiff_t>(end)});
  }
}

void BatchRunner::run_chunk(CampaignState& state, BatchRecord& batch, const std::vector<Slot>& slots) const {
  std::vector<Parent> parents;
  parents.reserve(slots.size());
  std::int64_t current = 0;
  at::Tensor image, reference;
  for (const Slot& slot : slots) {
    if (slot.parent != current) {
      current = slot.parent;
      image = state.corpus.image(current);
      reference = state.corpus.reference(current);
    }
    parents.push_back({image, reference, state.corpus.affine_used(current),
                       mutation_stream_.derive(
                           {static_cast<std::uint64_t>(slot.iteration), static_cast<std::uint64_t>(slot.number)})});
  }
  Mutants mutants = engine_.mutate(parents);

  // Only valid ones are shown to the network.
  CampaignCounters& counters = state.counters;
  std::vector<std::int64_t> valid;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Mutant& mutant = mutants.each[i];
    YieldRecord& by_class = state.yields.classes[static_cast<std::size_t>(state.corpus.at(slots[i].parent).label)];
    ++counters.mutants;
    ++by_class.mutants;
    if (mutant.tries > 0) ++state.yields.mutators[static_cast<std::size_t>(mutant.rule.mutator)].mutants;
    if (!mutant.valid) continue;
    valid.push_back(static_cast<std::int64_t>(i));
    ++counters.valid;
    ++by_class.valid;
    ++state.yields.mutators[static_cast<std::size_t>(mutant.rule.mutator)].valid;
  }
  if (valid.empty()) return;
  bool all = valid.size() == slots.size();
  at::Tensor images = all ? mutants.images : mutants.images.index_select(0, at::tensor(valid, at::kLong));
  mutants.references.reset();
  mutants.images.reset();
  Judged judged = judge(images, state.corpus, counters.reexamined);
  at::Tensor confidences = confidences_of(judged);
  for (std::int64_t i : valid) {
    const Slot& slot = slots[static_cast<std::size_t>(i)];
    const Entry& parent = state.corpus.at(slot.parent);
    judged.labels.push_back(parent.label);
    judged.parents.push_back(slot.parent);
    judged.seeds.push_back(parent.seed);
    judged.iterations.push_back(slot.iteration);
    judged.rules.push_back(&mutants.each[static_cast<std::size_t>(i)].rule);
  }
  std::vector<Decision> decisions = state.guide->decide(judged);

  // Numbers are given in order; what takes time then happens side by side.
  struct Find {
    std::size_t row;
    InputRecord input;  // id 0: not kept
    FaultRecord fault;  // id 0: none
    std::string png;
  };
  std::vector<Find> finds;
  const auto* predicted = judged.predicted.data_ptr<std::int64_t>();
  const auto* confidence = confidences.data_ptr<float>();
  std::int64_t next_input = state.corpus.size() + 1;
  for (std::size_t row = 0; row < valid.size(); ++row) {
    const Decision& decision = decisions[row];
    bool fault = predicted[row] != judged.labels[row];
    if (!decision.keep && !fault) continue;
    const Slot& slot = slots[static_cast<std::size_t>(valid[row])];
    const Mutant& mutant = mutants.each[static_cast<std::size_t>(valid[row])];
    YieldRecord& by_class = state.yields.classes[static_cast<std::size_t>(judged.labels[row])];
    YieldRecord& by_mutator = state.yields.mutators[static_cast<std::size_t>(mutant.rule.mutator)];
    MutantRecord record;
    record.parent = slot.parent;
    record.seed = judged.seeds[row];
    record.iteration = slot.iteration;
    record.slot = slot.number;
    record.affine = mutant.affine_used;
    record.label = judged.labels[row];
    record.predicted = predicted[row];
    record.confidence = static_cast<double>(confidence[row]);
    Find find{row, {}, {}, {}};
    static_cast<MutantRecord&>(find.input) = record;
    static_cast<MutantRecord&>(find.fault) = record;
    if (decision.keep) {
      find.input.id = next_input++;
      find.input.gain = decision.gain;
      find.input.fault = fault;
      ++counters.kept;
      ++by_class.kept;
      ++by_mutator.kept;
      state.last_kept = std::max(state.last_kept, slot.iteration);
    }
    if (fault) {
      find.fault.id = ++counters.faults;
      find.fault.input = find.input.id;
      ++by_class.faults;
      ++by_mutator.faults;
      if (decision.keep) {
        ++counters.kept_faults;
        ++by_class.kept_faults;
        ++by_mutator.kept_faults;
      }
    }
    finds.push_back(std::move(find));
  }
  const ImageShape& shape = engine_.shape();
  const auto* pixels = static_cast<const std::uint8_t*>(images.data_ptr());
  auto for_each_find = [&](const std::function<void(Find & find, const std::uint8_t* own)>& work) {
    workers().run(static_cast<std::int64_t>(finds.size()), [&](std::int64_t index, int) {
      Find& find = finds[static_cast<std::size_t>(index)];
      work(find, pixels + find.row * shape.bytes());
    });
  };
  for_each_find([&](Find& find, const std::uint8_t* own) {
    find.input.sha256 = sha256({reinterpret_cast<const char*>(own), shape.bytes()});
    find.input.rule = engine_.set().text(*judged.rules[find.row]);
    find.fault.sha256 = find.input.sha256;
    find.fault.rule = find.input.rule;
  });
  for (Find& find : finds) {
    if (find.input.id != 0) {
      find.input.distinct = state.seen_kept.first(find.input.sha256, find.input.label, find.input.id) == find.input.id;
      counters.distinct_kept += find.input.distinct ? 1 : 0;
    }
    if (find.fault.id != 0) {
      // Identical images share the file of the first.
      std::int64_t first = state.seen_fault.first(find.fault.sha256, find.fault.label, find.fault.id);
      find.fault.distinct = first == find.fault.id;
      find.fault.file = fault_file(first, find.fault.label, find.fault.predicted);
      counters.distinct_faults += find.fault.distinct ? 1 : 0;
    }
  }
  for_each_find([&](Find& find, const std::uint8_t* own) {
    bool to_file = find.fault.id != 0 && find.fault.distinct;
    if (find.input.id != 0 || to_file) find.png = encode_mutant(own, shape);
  });
  for (Find& find : finds) {
    bool kept = find.input.id != 0;
    if (find.fault.id != 0) {
      batch.fault_images.push_back(!find.fault.distinct ? std::string() : kept ? find.png : std::move(find.png));
      batch.faults.push_back(std::move(find.fault));
    }
    if (!kept) continue;
    state.corpus.add(find.input.parent, find.input.iteration, *judged.rules[find.row], find.input.affine,
                     find.input.gain, images[static_cast<std::int64_t>(find.row)].clone());
    ++state.never_picked;
    batch.inputs.push_back({std::move(find.input), std::move(find.png)});
  }
}

}  // namespace galvani
