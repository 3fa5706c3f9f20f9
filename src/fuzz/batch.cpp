#include "fuzz/batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "fuzz/fault_files.h"
#include "galvani/base/crew.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/progress.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

// Root mean square of the differences, 1 being full scale. Summed in whole numbers, so the same everywhere.
template <class Value>
double change_of(const void* input, const void* seed, const SampleType& type) {
  const auto* now = static_cast<const Value*>(input);
  const auto* origin = static_cast<const Value*>(seed);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < type.values(); ++i) {
    std::int64_t step = std::int64_t{now[i]} - std::int64_t{origin[i]};
    sum += step * step;
  }
  return std::sqrt(static_cast<double>(sum) / static_cast<double>(type.values())) / static_cast<double>(type.full());
}

double change_of(const void* input, const at::Tensor& seed, const SampleType& type) {
  bool bytes = type.dtype() == at::kByte;
  return bytes ? change_of<std::uint8_t>(input, seed.data_ptr(), type)
               : change_of<std::int16_t>(input, seed.data_ptr(), type);
}

// What the candidates of one call may take, with their traces. A constant, for it decides which candidates share a
// micro-batch.
constexpr std::int64_t kChunkBytes = std::int64_t{256} << 20;

// Islands draw other numbers; which seeds there are is the same for all.
Rng own_stream(const CampaignSettings& settings) {
  Rng all(settings.seed);
  if (settings.island.empty()) return all;
  return all.derive("island").derive(static_cast<std::uint64_t>(parse_island(settings.island).number));
}

std::string figures_text(const std::vector<std::pair<std::string, double>>& figures) {
  if (figures.empty()) return "";
  nlohmann::ordered_json object;
  for (const auto& [name, value] : figures) object[name] = value;
  return object.dump();
}

// Two JSON objects, or nothing, as one.
std::string joined_objects(const std::string& first, const std::string& second) {
  if (first.empty() || second.empty()) return first + second;
  return first.substr(0, first.size() - 1) + "," + second.substr(1);
}

}  // namespace

// A candidate that is kept, or a fault, or both.
struct BatchRunner::Find {
  std::size_t row;    // of the round's valid ones
  InputRecord input;  // id 0: not kept
  FaultRecord fault;  // id 0: none
  std::string memo;
  std::string encoded;
};

BatchRunner::BatchRunner(const CampaignSettings& settings, Tracer& tracer, const Generator& generator,
                         const GuideNeeds& needs, SampleType type, bool count_passes)
    : settings_(settings),
      tracer_(tracer),
      generator_(generator),
      needs_(needs),
      type_(std::move(type)),
      count_passes_(count_passes),
      island_(parse_island(settings.island)),
      pick_stream_(own_stream(settings).derive("pick")),
      candidate_stream_(own_stream(settings).derive("mutate")) {
  tracer_.need(needs.more);
}

std::int64_t BatchRunner::chunk_size() const {
  Network& network = tracer_.network();
  // The candidate, its reference and a copy of the valid ones.
  auto bytes = static_cast<std::int64_t>(3 * type_.bytes());
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

at::Tensor confidences_of(const Network& network, const Judged& judged) {
  return confidences(probabilities(network.info(), judged.logits), judged.predicted);
}

Judged BatchRunner::judge(const at::Tensor& images, const at::Tensor& references, Corpus& corpus,
                          std::int64_t& reexamined) const {
  Judged judged{images, {}, {}, {}, {}, {}, {}, {}, corpus};
  Network& network = tracer_.network();
  const Question& question = network.info().question;
  Request request;
  request.answers = question.by_reference();
  if (needs_.traces) {
    judged.traces = tracer_.trace(images);
    judged.logits = judged.traces.logits;
  } else {
    Outputs outputs = network.run(images, request);
    judged.logits = request.answers ? outputs.answers : outputs.logits;
  }
  at::Tensor held = references;
  if (request.answers) {
    judged.answers = judged.logits;
    if (!held.defined()) held = question.references_of(judged.answers);
    judged.logits = question.scores(judged.answers, held);
  }
  reexamined += settle_close_calls(network, images, judged.logits, held);
  judged.predicted = verdicts(judged.logits);
  // Traces of answers are of one class, whatever they are held against.
  if (needs_.traces && !request.answers) judged.traces.predicted = judged.predicted;
  return judged;
}

Judged BatchRunner::judge_seeds(Corpus& corpus, std::int64_t first, std::int64_t count) const {
  std::vector<at::Tensor> images;
  std::vector<std::int64_t> ids;
  for (std::int64_t id = first; id < first + count; ++id) {
    images.push_back(corpus.image(id));
    ids.push_back(id);
  }
  std::int64_t unused = 0;
  Judged judged = judge(at::stack(images), corpus.references(ids), corpus, unused);
  for (std::int64_t id = first; id < first + count; ++id) {
    judged.labels.push_back(corpus.at(id).label);
    judged.parents.push_back(id);
    judged.seeds.push_back(id);
    judged.iterations.push_back(0);
  }
  return judged;
}

std::vector<double> BatchRunner::absorb_seeds(CampaignState& state) const {
  std::vector<double> gains;
  std::int64_t size = chunk_size();
  for (std::int64_t first = 1; first <= state.corpus.size(); first += size) {
    std::int64_t count = std::min(size, state.corpus.size() + 1 - first);
    std::vector<double> part = state.guide->absorb(judge_seeds(state.corpus, first, count));
    gains.insert(gains.end(), part.begin(), part.end());
  }
  Covered covered = state.guide->covered();
  state.counters.covered = covered.covered;
  state.counters.coverable = covered.total;
  return gains;
}

void BatchRunner::absorb(CampaignState& state, const Dataset& data) const {
  std::int64_t size = chunk_size();
  Progress progress("covering", data.size(), "inputs");
  for (std::int64_t first = 0; first < data.size(); first += size) {
    check_interrupt();
    std::int64_t count = std::min(size, data.size() - first);
    std::int64_t unused = 0;
    Judged judged = judge(data.images.narrow(0, first, count), {}, state.corpus, unused);
    const auto* labels = data.labels.data_ptr<std::int64_t>() + first;
    judged.labels.assign(labels, labels + count);
    auto none = static_cast<std::size_t>(count);
    judged.parents.assign(none, 0);
    judged.seeds.assign(none, 0);
    judged.iterations.assign(none, 0);
    state.guide->absorb(judged);
    progress.advance(count);
  }
}

BatchRecord BatchRunner::run(CampaignState& state, const std::vector<News>& told) const {
  BatchRecord batch;
  CampaignCounters& counters = state.counters;
  std::int64_t passes_before = generator_.passes() + state.guide->passes();
  batch.picks = pick(state);
  std::unique_ptr<Proposal> proposal =
      generator_.begin(parents(state, batch.picks), {settings_.energy, settings_.stop_at_kept});
  while (true) {
    Candidates candidates = proposal->next(chunk_size());
    if (candidates.each.empty()) break;
    Round round = valid_ones(state, *proposal, std::move(candidates));
    if (round.rows.empty()) {
      proposal->learn({});
      continue;
    }
    Judged judged = judge(state, *proposal, round, batch.picks);
    std::vector<Decision> decisions = state.guide->decide(judged);
    std::vector<Find> finds = number_finds(state, round, judged, decisions);
    describe_finds(state, *proposal, round, finds);
    add_finds(state, round, std::move(finds), batch);
    Outcome outcome{round.rows, judged.logits, judged.predicted, {}};
    for (const Decision& decision : decisions) outcome.kept.push_back(decision.keep ? 1 : 0);
    proposal->learn(outcome);
  }
  counters.batches += 1;
  counters.iterations += static_cast<std::int64_t>(batch.picks.size());
  // After the picks, so that whatever may be picked is in the store.
  for (const News& news : told) adopt(state, news, batch);
  if (count_passes_) counters.passes += generator_.passes() + state.guide->passes() - passes_before;
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

std::vector<std::int64_t> BatchRunner::pick(CampaignState& state) const {
  std::vector<std::int64_t> picks;
  for (std::int64_t i = 0; i < settings_.batch && !state.scheduler->done(state.corpus.entries()); ++i) {
    Rng rng = pick_stream_.derive(static_cast<std::uint64_t>(state.counters.iterations + i + 1));
    std::int64_t id = state.scheduler->pick(state.corpus.entries(), rng);
    if (state.corpus.at(id).picks == 0) {
      --state.never_picked;
      if (state.is_seed(id)) ++state.tried_seeds;
    }
    state.corpus.count_pick(id);
    state.picks.add(id);
    picks.push_back(id);
  }
  return picks;
}

std::vector<PickedParent> BatchRunner::parents(CampaignState& state, const std::vector<std::int64_t>& picks) const {
  std::vector<PickedParent> result;
  for (std::size_t i = 0; i < picks.size(); ++i) {
    const Entry& entry = state.corpus.at(picks[i]);
    PickedParent parent;
    parent.input = state.corpus.image(picks[i]);
    parent.seed = state.corpus.image(entry.seed);
    parent.memo = entry.memo;
    parent.label = entry.label;
    parent.iteration = state.counters.iterations + static_cast<std::int64_t>(i) + 1;
    parent.base = candidate_stream_;
    if (at::Tensor reference = state.corpus.references({entry.seed}); reference.defined())
      parent.reference = reference[0];
    result.push_back(std::move(parent));
  }
  return result;
}

// Counts what was proposed. Only valid ones are shown to the network.
BatchRunner::Round BatchRunner::valid_ones(CampaignState& state, const Proposal& proposal, Candidates candidates) {
  Round round;
  for (std::size_t i = 0; i < candidates.each.size(); ++i) {
    const Candidate& candidate = candidates.each[i];
    std::int64_t label = proposal.parents()[candidate.parent].label;
    YieldRecord& by_class = state.yields.classes[static_cast<std::size_t>(label)];
    ++state.counters.mutants;
    ++by_class.mutants;
    if (candidate.kind >= 0) ++state.yields.kinds[static_cast<std::size_t>(candidate.kind)].mutants;
    if (!candidate.valid) continue;
    round.rows.push_back(static_cast<std::int64_t>(i));
    ++state.counters.valid;
    ++by_class.valid;
    ++state.yields.kinds[static_cast<std::size_t>(candidate.kind)].valid;
  }
  bool all = round.rows.size() == candidates.each.size();
  if (!round.rows.empty())
    round.inputs = all ? candidates.inputs : candidates.inputs.index_select(0, at::tensor(round.rows, at::kLong));
  candidates.inputs.reset();
  round.candidates = std::move(candidates);
  return round;
}

Judged BatchRunner::judge(CampaignState& state, const Proposal& proposal, const Round& round,
                          const std::vector<std::int64_t>& picks) const {
  std::vector<std::int64_t> origins;
  for (std::int64_t row : round.rows)
    origins.push_back(picks[round.candidates.each[static_cast<std::size_t>(row)].parent]);
  Judged judged = judge(round.inputs, state.corpus.references(origins), state.corpus, state.counters.reexamined);
  if (count_passes_) state.counters.passes += judged.size();
  for (std::int64_t row : round.rows) {
    std::size_t parent = round.candidates.each[static_cast<std::size_t>(row)].parent;
    const Entry& entry = state.corpus.at(picks[parent]);
    judged.labels.push_back(entry.label);
    judged.parents.push_back(picks[parent]);
    judged.seeds.push_back(entry.seed);
    judged.iterations.push_back(proposal.parents()[parent].iteration);
  }
  return judged;
}

// Of a task by reference: what the answer was, and how far it was from what it should be.
std::vector<std::pair<std::string, double>> BatchRunner::remarks_on(const Judged& judged, std::size_t row) const {
  const Question& question = tracer_.network().info().question;
  if (!question.by_reference()) return {};
  auto i = static_cast<std::int64_t>(row);
  at::Tensor answer = judged.answers.narrow(0, i, 1);
  at::Tensor reference = judged.corpus.references({judged.seeds[row]});
  std::vector<std::pair<std::string, double>> remarks;
  auto distance = static_cast<double>(question.deviations(answer, reference).item<float>());
  if (!std::isfinite(distance)) return remarks;
  remarks.emplace_back(question.task == Task::regression ? "deviation" : "flipped", distance);
  if (question.task == Task::regression && question.outputs == 1) {
    remarks.emplace_back("answer", static_cast<double>(answer.item<float>()));
    remarks.emplace_back("reference", static_cast<double>(reference.item<float>()));
  }
  return remarks;
}

// Numbers are given in order; what takes time then happens side by side.
std::vector<BatchRunner::Find> BatchRunner::number_finds(CampaignState& state, const Round& round, const Judged& judged,
                                                         const std::vector<Decision>& decisions) const {
  std::vector<Find> finds;
  CampaignCounters& counters = state.counters;
  at::Tensor sure = confidences_of(tracer_.network(), judged);
  const auto* predicted = judged.predicted.data_ptr<std::int64_t>();
  const auto* confidence = sure.data_ptr<float>();
  std::int64_t next_input = state.corpus.size() + 1;
  for (std::size_t row = 0; row < round.rows.size(); ++row) {
    const Decision& decision = decisions[row];
    bool fault = predicted[row] != judged.labels[row];
    if (!decision.keep && !fault) continue;
    const Candidate& candidate = round.candidates.each[static_cast<std::size_t>(round.rows[row])];
    YieldRecord& by_class = state.yields.classes[static_cast<std::size_t>(judged.labels[row])];
    YieldRecord& by_kind = state.yields.kinds[static_cast<std::size_t>(candidate.kind)];
    MutantRecord record;
    record.parent = judged.parents[row];
    record.seed = judged.seeds[row];
    record.iteration = judged.iterations[row];
    record.slot = candidate.slot;
    record.label = judged.labels[row];
    record.predicted = predicted[row];
    record.confidence = static_cast<double>(confidence[row]);
    record.unrepeatable = !candidate.repeatable;
    record.metadata = decision.metadata;
    record.figures = figures_text(remarks_on(judged, row));
    Find find{row, {}, {}, {}, {}};
    static_cast<MutantRecord&>(find.input) = record;
    static_cast<MutantRecord&>(find.fault) = record;
    if (decision.keep) {
      find.input.id = next_input++;
      find.input.gain = decision.gain;
      find.input.fault = fault;
      ++counters.kept;
      ++by_class.kept;
      ++by_kind.kept;
      state.last_kept = std::max(state.last_kept, record.iteration);
    }
    if (fault) {
      find.fault.id = ++counters.faults;
      find.fault.input = find.input.id;
      ++by_class.faults;
      ++by_kind.faults;
      if (decision.keep) {
        ++counters.kept_faults;
        ++by_class.kept_faults;
        ++by_kind.kept_faults;
      }
    }
    finds.push_back(std::move(find));
  }
  return finds;
}

// Work on finds, in tasks of so many each, cut over processes: what is done elsewhere is told by `put` and `get`, to
// all processes or to the first.
void BatchRunner::for_each_find(const std::vector<Find*>& finds, bool tell_all, const std::function<void(Find&)>& work,
                                void (*put)(ArchiveWriter&, const Find&), void (*get)(ArchiveReader&, Find&)) {
  constexpr std::int64_t kOfATask = 16;
  auto count = static_cast<std::int64_t>(finds.size());
  std::int64_t tasks = (count + kOfATask - 1) / kOfATask;
  auto visit = [&](std::int64_t task, const auto& see) {
    for (std::int64_t i = task * kOfATask; i < std::min(count, (task + 1) * kOfATask); ++i)
      see(*finds[static_cast<std::size_t>(i)]);
  };
  CrewWork shared(tasks);
  std::vector<std::string> texts(static_cast<std::size_t>(tasks));
  shared.run([&](std::int64_t task, int) {
    visit(task, work);
    if (!shared.cut()) return;
    ArchiveWriter out;
    visit(task, [&](const Find& find) { put(out, find); });
    texts[static_cast<std::size_t>(task)] = out.bytes();
  });
  if (!shared.cut()) return;
  if (tell_all)
    shared.share(texts);
  else
    shared.tell_first(texts);
  if (!tell_all && !leads()) return;
  for (std::int64_t task = 0; task < tasks; ++task) {
    ArchiveReader in(texts[static_cast<std::size_t>(task)], "another process");
    visit(task, [&](Find& find) { get(in, find); });
  }
}

// Provenance, hash and, where it is kept or a new fault, the file's bytes.
void BatchRunner::describe_finds(CampaignState& state, const Proposal& proposal, const Round& round,
                                 std::vector<Find>& finds) const {
  const auto* pixels = static_cast<const std::uint8_t*>(round.inputs.data_ptr());
  auto pixels_of = [&](const Find& find) { return pixels + find.row * type_.bytes(); };
  std::vector<Find*> all;
  for (Find& find : finds) all.push_back(&find);
  for_each_find(
      all, true,
      [&](Find& find) {
        auto row = static_cast<std::size_t>(round.rows[find.row]);
        const PickedParent& parent = proposal.parents()[round.candidates.each[row].parent];
        MutantRecord& record = find.input;
        record.sha256 = sha256({reinterpret_cast<const char*>(pixels_of(find)), type_.bytes()});
        record.rule = proposal.provenance(row);
        record.figures = joined_objects(record.figures, figures_text(proposal.figures(row)));
        find.memo = generator_.inherit(parent.memo, record.rule);
        if (find.fault.id != 0) find.fault.change = change_of(pixels_of(find), parent.seed.contiguous(), type_);
      },
      [](ArchiveWriter& out, const Find& find) {
        for (const std::string* text : {&find.input.sha256, &find.input.rule, &find.input.figures, &find.memo})
          out.put(*text);
        out.put(find.fault.change);
      },
      [](ArchiveReader& in, Find& find) {
        for (std::string* text : {&find.input.sha256, &find.input.rule, &find.input.figures, &find.memo})
          *text = in.get_text(in.rest().size());
        find.fault.change = in.get<double>();
      });
  CampaignCounters& counters = state.counters;
  std::vector<Find*> to_encode;
  for (Find& find : finds) {
    find.input.affine = !find.memo.empty();
    find.fault.sha256 = find.input.sha256;
    find.fault.rule = find.input.rule;
    find.fault.figures = find.input.figures;
    find.fault.affine = find.input.affine;
    if (find.input.id != 0) {
      find.input.distinct = state.seen_kept.first(find.input.sha256, find.input.label, find.input.id) == find.input.id;
      counters.distinct_kept += find.input.distinct ? 1 : 0;
    }
    if (find.fault.id != 0) {
      // Identical inputs share the file of the first.
      std::int64_t first = state.seen_fault.first(find.fault.sha256, find.fault.label, find.fault.id);
      find.fault.distinct = first == find.fault.id;
      find.fault.file = fault_file(first, find.fault.label, find.fault.predicted, type_);
      counters.distinct_faults += find.fault.distinct ? 1 : 0;
    }
    if (find.input.id != 0 || (find.fault.id != 0 && find.fault.distinct)) to_encode.push_back(&find);
  }
  // Only the first process stores anything.
  for_each_find(
      to_encode, false, [&](Find& find) { find.encoded = encode_mutant(pixels_of(find), type_); },
      [](ArchiveWriter& out, const Find& find) { out.put(find.encoded); },
      [](ArchiveReader& in, Find& find) { find.encoded = in.get_text(in.rest().size()); });
}

void BatchRunner::add_finds(CampaignState& state, const Round& round, std::vector<Find> finds, BatchRecord& batch) {
  for (Find& find : finds) {
    bool kept = find.input.id != 0;
    if (find.fault.id != 0) {
      state.break_seed(find.fault.seed);
      batch.fault_images.push_back(!find.fault.distinct ? std::string()
                                   : kept               ? find.encoded
                                                        : std::move(find.encoded));
      batch.faults.push_back(std::move(find.fault));
    }
    if (!kept) continue;
    state.corpus.add(find.input.parent, find.input.iteration, std::move(find.memo), find.input.gain,
                     round.inputs[static_cast<std::int64_t>(find.row)].clone());
    ++state.never_picked;
    batch.inputs.push_back({std::move(find.input), std::move(find.encoded)});
  }
}

}  // namespace galvani
