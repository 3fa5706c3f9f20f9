#include "galvani/fuzz/campaign.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <sstream>
#include <utility>

#include "fuzz/batch.h"
#include "fuzz/builtin.h"
#include "fuzz/fault_files.h"
#include "fuzz/folder.h"
#include "fuzz/images.h"
#include "fuzz/probe.h"
#include "fuzz/record.h"
#include "fuzz/rows.h"
#include "fuzz/seal.h"
#include "fuzz/seeds.h"
#include "fuzz/shared_store.h"
#include "fuzz/staging.h"
#include "fuzz/state.h"
#include "fuzz/status.h"
#include "galvani/base/archive.h"
#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/log.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/fuzz/reader.h"
#include "galvani/fuzz/references.h"
#include "galvani/generate/generator.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kFirstInterval = 1;  // seconds until the first snapshot
// Seconds of a batch from which on it is told of before the next one begins, for nobody likes to wait for news.
constexpr double kLongBatch = 1;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

bool is_campaign(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "campaign.toml", error);
}

fs::path stored_profile(const fs::path& folder) {
  return folder / "profile";
}

struct Campaign::Impl {
  Impl(const fs::path& where, const CampaignSettings& settings, const CampaignSubject& subject,
       const CampaignOptions& given)
      : folder(where),
        lock(leads() ? std::make_unique<FolderLock>(where) : nullptr),
        options(given),
        tracer(subject.tracer),
        data(subject.data),
        profile(subject.profile) {
    if (made_by_first([&] { return std::string(is_campaign(folder) ? "exists" : ""); }) == "exists") {
      open(settings, subject);
    } else {
      create(settings, subject);
    }
  }

  at::Tensor fetch(std::int64_t id) {
    if (chosen != nullptr) return chosen->images[static_cast<std::size_t>(id - 1)];
    return data.type().decode(store->image(id), fmt::format("{}, input {}", folder.string(), id));
  }

  void make_generator(const CampaignSettings& settings, const CampaignSubject& subject, const Seeds& seeds) {
    GeneratorContext context;
    context.seeds = at::stack(seeds.images);
    context.rate = data.rate;
    if (subject.style != nullptr) context.style_images = subject.style->images;
    context.network = &tracer.network();
    context.class_names = class_names;
    generator = galvani::make_generator(Spec::parse(settings.generator), context);
  }

  // A guide that has seen nothing of the campaign.
  std::unique_ptr<Guide> fresh_guide() const {
    GuideContext context{tracer, profile, data, class_names, record.settings.seed, record.settings.generator};
    return make_guide(Spec::parse(record.settings.guide), context);
  }

  // A state with the seeds in its corpus and nothing done.
  void make_state(const Seeds& seeds) {
    Corpus corpus([this](std::int64_t id) { return fetch(id); }, options.cache_bytes);
    state = std::make_unique<CampaignState>(
        std::move(corpus), fresh_guide(),
        with_own_seeds(schedulers().create(Spec::parse(record.settings.scheduler)), island()));
    for (std::size_t i = 0; i < seeds.records.size(); ++i)
      state->corpus.add_seed(seeds.records[i].label, seeds.records[i].gain, seeds.images[i]);
    state->corpus.set_references(references_of(seeds.records, tracer.network(), folder.string()));
    state->never_picked = state->corpus.size();
    state->broken.assign(seeds.records.size(), 0);
    for (const std::string& name : generator->kinds()) state->yields.kinds.push_back({name, 0, 0, 0, 0, 0});
    for (const std::string& name : class_names) state->yields.classes.push_back({name, 0, 0, 0, 0, 0});
    runner.emplace(record.settings, tracer, *generator, state->guide->needs(), data.type(),
                   record.format == CampaignRecord::kNewest);
  }

  Island island() const { return parse_island(record.settings.island); }

  Probe probe() {
    std::unique_ptr<Guide> fresh = fresh_guide();
    return take_probe(*runner, tracer.network(), *fresh, state->corpus, *generator);
  }

  // --- a new campaign

  void create(const CampaignSettings& settings, const CampaignSubject& subject) {
    Seeds seeds = choose_seeds(tracer.network(), data, settings);
    if (static_cast<std::int64_t>(seeds.records.size()) < settings.seeds)
      log::debug("{}: the model gets {} of {} inputs right, so there are {} seeds instead of {}", data.name,
                 seeds.records.size(), data.size(), seeds.records.size(), settings.seeds);
    class_names = galvani::class_names(tracer.network(), data);
    record = make_record(settings, subject);
    make_generator(record.settings, subject, seeds);
    make_state(seeds);
    record.generator_sha256 = generator->files_sha256();
    record.guide_sha256 = state->guide->files_sha256();
    chosen = &seeds;
    record.probe = probe();
    Beginning beginning;
    beginning.absorbed = absorb_training(subject);
    std::vector<double> gains = runner->absorb_seeds(*state);
    chosen = nullptr;
    for (std::size_t i = 0; i < seeds.records.size(); ++i) {
      seeds.records[i].gain = gains[i];
      state->corpus.set_gain(seeds.records[i].id, gains[i]);
      const at::Tensor& image = seeds.images[i];
      seeds.records[i].sha256 = pixel_hash(image);
      beginning.seeds.push_back({seeds.records[i], data.type().encode(image)});
    }
    check_interrupt();
    beginning.identity = record.identity();
    beginning.wrong = seeds.wrong;
    beginning.classes = class_names;
    beginning.counters = state->counters;
    beginning.totals = totals_value(state->yields, state->picks);
    if (leads()) begin(beginning);
    open_store();
  }

  void begin(const Beginning& beginning) {
    begin_folder(folder);
    keep_profile();
    Store::create(folder, beginning);
    // From here on the campaign exists.
    Staging staging(folder);
    write_file(staging.path("campaign.toml"), record.to_toml());
    staging.place("campaign.toml");
    end_beginning(folder);
  }

  // The guide's state after it, which stays with the campaign.
  std::string absorb_training(const CampaignSubject& subject) {
    if (record.settings.absorb != "train") return "";
    if (subject.train == nullptr)
      bad_usage("--absorb train counts what training data cover as covered: name them with --train");
    runner->absorb(*state, *subject.train);
    ArchiveWriter out;
    state->guide->save(out);
    return out.bytes();
  }

  // What was learned of the training data stays with the campaign.
  void keep_profile() {
    if (record.profile_sha256.empty()) return;
    Staging staging(folder);
    profile->save(staging.path("profile"));
    staging.place("profile");
  }

  void open_store() {
    store.emplace(folder, record.settings.keep_files);
    snapshots.emplace(folder, record.identity());
    remember_seeds();
  }

  // --- a campaign that is gone on with

  // Nothing is written before it is known that everything is as it was.
  void open(const CampaignSettings& settings, const CampaignSubject& subject) {
    record = CampaignRecord::from_toml(folder / "campaign.toml");
    resumed = true;
    Seeds seeds = stored_seeds(folder, class_names);
    make_generator(record.settings, subject, seeds);
    CampaignRecord now = make_record(settings, subject);
    now.generator_sha256 = generator->files_sha256();
    now.guide_sha256 = record.guide_sha256;
    check_same(record, now, folder);
    make_state(seeds);
    now.guide_sha256 = state->guide->files_sha256();
    check_same(record, now, folder);
    chosen = &seeds;
    check_probe(record.probe, probe(), folder.string());
    chosen = nullptr;
    if (leads()) {
      end_beginning(folder);
      make_subfolders(folder);
      if (!fs::exists(stored_profile(folder))) keep_profile();
    }
    open_store();
    if (leads()) {
      WorkAlone alone;
      restore_files(CampaignReader(folder));
    }
    resume();
  }

  // Files of faults that a power failure or a hasty hand took: a lineage says what was in them.
  void restore_files(const CampaignReader& reader) {
    std::int64_t restored = 0;
    for (const FaultRecord& fault : store->own().lost_files()) {
      at::Tensor image = made_again(reader, fault);
      if (!image.defined()) continue;
      store->own().restore_file(fault, encode_mutant(image.data_ptr(), data.type()));
      ++restored;
    }
    if (restored > 0)
      log::info("{}: {} made again", folder.string(),
                counted(restored, "lost file of a fault was", "lost files of faults were"));
  }

  // Undefined, with a warning: it cannot be.
  at::Tensor made_again(const CampaignReader& reader, const FaultRecord& fault) {
    at::Tensor image;
    if (fault.kept()) {
      image = fetch(fault.input);
    } else if (!fault.unrepeatable) {
      at::Tensor seed = fetch(fault.seed).contiguous();
      at::Tensor parent = fetch(fault.parent).contiguous();
      image = generator->make(fault.rule, parent, seed).contiguous();
    }
    if (image.defined() && pixel_hash(image) == fault.sha256) return image;
    log::warn("{}: is lost, and what is stored of it does not lead to the same image any more", fault.file);
    return {};
  }

  void remember_seeds() {
    store->for_each_seed_image([this](const std::string& hash, std::int64_t label, std::int64_t id) {
      state->seen_kept.first(hash, label, id);
    });
  }

  // The newest snapshot that can be used, or the beginning; the batches after it are repeated by run().
  void resume() {
    std::int64_t last = store->last_batch();
    base_seconds = store->seconds();
    std::string listed = made_by_first([&] { return fmt::format("{}", fmt::join(snapshots->batches(), " ")); });
    std::istringstream batches(listed);
    for (std::int64_t batch = 0; batches >> batch;) {
      if (batch > last) continue;
      try {
        std::unique_ptr<Guide> guide = fresh_guide();
        Snapshots::Loaded loaded = snapshots->load(batch, store->chain(batch), *guide);
        restore(std::move(loaded), std::move(guide));
        return;
      } catch (const Error& e) {
        if (e.code() != ErrorCode::bad_input) throw;
        log::warn("{}; going on from an earlier state", e.what());
      }
    }
    if (record.settings.absorb == "train") {
      std::string absorbed = store->absorbed();
      ArchiveReader in(absorbed, (folder / "campaign.db").string());
      state->guide->load(in);
      in.expect_end();
    }
    runner->absorb_seeds(*state);
  }

  // A generator may have got new kinds since the snapshot was taken; all that it had then must be there.
  std::vector<YieldRecord> with_names_of(std::vector<YieldRecord> kinds, const std::vector<YieldRecord>& known) const {
    for (const YieldRecord& one : known) {
      auto at =
          std::find_if(kinds.begin(), kinds.end(), [&](const YieldRecord& kind) { return kind.name == one.name; });
      if (at == kinds.end()) bad_input("{}: a snapshot does not fit the store", folder.string());
      *at = one;
    }
    return kinds;
  }

  void restore(Snapshots::Loaded loaded, std::unique_ptr<Guide> guide) {
    std::int64_t iterations = loaded.counters.iterations;
    auto entries = state->corpus.size() + loaded.counters.kept;
    if (static_cast<std::int64_t>(loaded.picks.size()) != entries ||
        loaded.yields.classes.size() != state->yields.classes.size())
      bad_input("{}: a snapshot does not fit the store", folder.string());
    std::vector<YieldRecord> kinds = with_names_of(state->yields.kinds, loaded.yields.kinds);
    store->for_each_input(iterations, [&](const InputRecord& input) {
      if (input.id != state->corpus.size() + 1 || input.parent < 1 || input.parent >= input.id)
        bad_input("{}: its kept mutants are not in order; the store is damaged", folder.string());
      std::string memo = generator->inherit(state->corpus.at(input.parent).memo, input.rule);
      state->corpus.add(input.parent, input.iteration, std::move(memo), input.gain, {});
      state->seen_kept.first(input.sha256, input.label, input.id);
      if (input.origin != 0) state->adopted.emplace(input.origin, input.id);
    });
    if (state->corpus.size() != entries)
      bad_input("{}: kept mutants are missing; the store is damaged", folder.string());
    store->for_each_fault_image(iterations, [this](const std::string& hash, std::int64_t label, std::int64_t id) {
      state->seen_fault.first(hash, label, id);
    });
    store->for_each_broken_seed(iterations, [this](std::int64_t seed) { state->break_seed(seed); });
    state->never_picked = 0;
    for (std::size_t i = 0; i < loaded.picks.size(); ++i) {
      state->corpus.set_picks(static_cast<std::int64_t>(i) + 1, loaded.picks[i]);
      if (loaded.picks[i] > 0 && i < state->broken.size()) ++state->tried_seeds;
      state->never_picked += loaded.picks[i] == 0 ? 1 : 0;
      state->picks.add(static_cast<std::int64_t>(i) + 1, loaded.picks[i]);
    }
    state->counters = loaded.counters;
    state->yields.kinds = std::move(kinds);
    state->yields.classes = std::move(loaded.yields.classes);
    state->last_kept = loaded.last_kept;
    state->guide = std::move(guide);
  }

  // --- working

  // Whether the repeated batch came out as it did the first time.
  void check_repeated(const BatchRecord& batch) {
    std::string difference = store->repeated_otherwise(batch);
    if (!difference.empty())
      fail(ErrorCode::environment,
           "{}: batch {} does not come out as it did the first time ({}), so the campaign cannot be gone on with; was "
           "it begun on another kind of processor, or with other versions of the libraries?",
           folder.string(), batch.counters.batches, difference);
  }

  double seconds() const { return base_seconds + since(session_start); }

  void snapshot() {
    if (!leads() || state->counters.batches == snapshot_batch) return;
    WorkAlone alone;
    snapshots->save(*state, store->chain(state->counters.batches));
    snapshot_batch = state->counters.batches;
    snapshot_time = Clock::now();
    // Often at first, so that a process that is soon killed again still gets further.
    snapshot_interval = std::min(options.snapshot_seconds, snapshot_interval * 2);
  }

  // Everything is in files that can be compared byte for byte.
  void end_session() {
    snapshot();
    seal();
  }

  void seal() {
    if (!leads()) return;
    WorkAlone alone;
    if (store->own().checkpoint()) write_seal(folder, store->last_batch());
  }

  // By the clock of the first process.
  std::string reached() const {
    return made_by_first([&] { return own_reached(); });
  }

  std::string own_reached() const {
    const CampaignCounters& c = state->counters;
    if (budget.iterations > 0 && c.iterations >= budget.iterations)
      return counted(c.iterations, "iteration is", "iterations are") + " done";
    if (budget.outputs > 0 && c.kept >= budget.outputs) return counted(c.kept, "mutant is", "mutants are") + " kept";
    if (budget.faults > 0 && c.faults >= budget.faults) return counted(c.faults, "fault is", "faults are") + " found";
    if (budget.seconds > 0 && seconds() >= budget.seconds)
      return fmt::format("{} of work are done", format_duration(seconds()));
    return idle() ? "every seed has been tried" : "";
  }

  bool idle() const { return state->scheduler->done(state->corpus.entries()); }

  void update_status() { watch.update(*state, seconds(), since(session_start)); }

  void tell(const CampaignStatus& status, const std::vector<FaultRecord>& faults) const {
    for (Listener* listener : listeners) listener->batch(status, faults);
  }

  // The last batch is stored, and told of.
  void settle() {
    store->settle();
    if (!untold) return;
    Stored now = *std::exchange(untold, std::nullopt);
    tell(now.status, now.batch->faults);
  }

  // --- islands

  // Of an island: what it has found between two iterations, for the others.
  News news(std::int64_t after, std::int64_t last) {
    Covered covered = state->guide->covered();
    bool measures = covered.total > 0 || covered.covered > 0;
    return measures ? store->own().news(island().number, after, last) : News{island().number, {}};
  }

  // What the others have told and this batch takes in.
  std::vector<News> due_news() {
    std::int64_t interval = exchange_interval(record.settings);
    std::int64_t done = state->counters.iterations;
    if (interval == 0 || done == 0 || done % interval != 0) return {};
    if (told_after != done)
      fail(ErrorCode::internal, "{}: the other islands have told nothing after iteration {}", folder.string(), done);
    return std::move(told);
  }

  // A generator that takes long may stop in the middle of a batch, of which nothing stays.
  BatchRecord run_batch() {
    std::int64_t done = state->counters.iterations;
    try {
      return runner->run(*state, due_news());
    } catch (const Error& e) {
      if (e.code() != ErrorCode::interrupted) throw;
      settle();
      seal();
      fail(ErrorCode::interrupted, "{}: stopped after {}; the same command goes on from there", folder.string(),
           counted(done, "iteration"));
    }
  }

  void begin(const Budget& limits, const std::vector<Listener*>& told_of) {
    budget = limits;
    listeners = told_of;
    session_start = Clock::now();
    snapshot_time = session_start;
    snapshot_batch = state->counters.batches;
    snapshot_interval = std::min(kFirstInterval, options.snapshot_seconds);
    watch.begin(folder, record, budget, resumed, *store);
    update_status();
    for (Listener* listener : listeners) listener->started(watch.status());
  }

  bool repeating() const { return state->counters.batches < watch.status().repeat_until; }
  bool before(std::int64_t iterations) const { return iterations == 0 || state->counters.iterations < iterations; }

  std::string work(std::int64_t until) {
    repeat(until);
    // Repeating is not progress, so it does not count as work; nor is waiting for other islands.
    session_start = Clock::now();
    std::string reason;
    watch.enter(repeating() ? CampaignStage::repeating : CampaignStage::running);
    // A round of an island is done to its end.
    auto may_stop = [&] { return until == 0 ? reached() : std::string(idle() ? "every seed has been tried" : ""); };
    while (!repeating() && before(until) && (reason = may_stop()).empty()) {
      if (interrupted()) {
        settle();
        end_session();
        fail(ErrorCode::interrupted, "{}: stopped after {}; the same command goes on from there", folder.string(),
             counted(state->counters.iterations, "iteration"));
      }
      Clock::time_point start = Clock::now();
      std::int64_t valid_before = state->counters.valid;
      // The batch before it is stored meanwhile.
      auto batch = std::make_shared<const BatchRecord>(run_batch());
      settle();
      std::vector<std::int64_t> pick_counts;
      for (std::int64_t id : batch->picks) pick_counts.push_back(state->corpus.at(id).picks);
      check_crew_agrees(batch->totals, fmt::format("{}: batch {}", folder.string(), batch->counters.batches));
      watch.note(*batch, since(start), state->counters.valid - valid_before, seconds());
      update_status();
      store->add(batch, state->yields, std::move(pick_counts), seconds());
      untold = Stored{batch, watch.status()};
      bool snapshot_is_due = since(snapshot_time) >= snapshot_interval;
      if (since(start) >= kLongBatch || snapshot_is_due) settle();
      if (snapshot_is_due) snapshot();
    }
    settle();
    base_seconds = store->seconds();
    session_start = Clock::now();
    return reason;
  }

  void end(const std::string& reason) {
    end_session();
    watch.enter(CampaignStage::finished);
    update_status();
    for (Listener* listener : listeners) listener->finished(watch.status(), reason);
  }

  // The batches between the snapshot and the last one stored.
  void repeat(std::int64_t until) {
    watch.enter(CampaignStage::repeating);
    bool repeated = false;
    while (repeating() && before(until)) {
      if (interrupted()) {
        end_session();
        fail(ErrorCode::interrupted, "{}: stopped while repeating batch {} of {}; the same command goes on from there",
             folder.string(), state->counters.batches, watch.status().repeat_until);
      }
      BatchRecord batch = runner->run(*state, due_news());
      check_repeated(batch);
      repeated = true;
      update_status();
      tell(watch.status(), batch.faults);
      if (since(snapshot_time) >= snapshot_interval) snapshot();
    }
    if (repeated) snapshot();
  }

  fs::path folder;
  std::unique_ptr<FolderLock> lock;  // of the first process
  CampaignOptions options;
  Tracer& tracer;
  const Dataset& data;
  std::shared_ptr<const Profile> profile;
  std::vector<std::string> class_names;
  CampaignRecord record;
  bool resumed = false;
  const Seeds* chosen = nullptr;  // while there is no store to fetch them from
  std::optional<SharedStore> store;
  std::optional<Snapshots> snapshots;
  std::unique_ptr<Generator> generator;
  std::unique_ptr<CampaignState> state;
  std::optional<BatchRunner> runner;
  Budget budget;                     // of this session
  std::vector<Listener*> listeners;  // likewise
  std::vector<News> told;            // by other islands
  std::int64_t told_after = -1;      // iterations
  StatusKeeper watch;
  struct Stored {
    std::shared_ptr<const BatchRecord> batch;
    CampaignStatus status;
  };
  std::optional<Stored> untold;  // the batch that is being stored, and is to be told of then
  double base_seconds = 0;
  double snapshot_interval = 0;  // set by run
  std::int64_t snapshot_batch = -1;
  Clock::time_point session_start = Clock::now();
  Clock::time_point snapshot_time = session_start;
};

Campaign::Campaign(const fs::path& folder, const CampaignSettings& settings, const CampaignSubject& subject,
                   const CampaignOptions& options) {
  CampaignSettings complete = completed(settings);
  check_settings(complete);
  check_fits(subject.tracer.network(), subject.data.images, subject.data.name);
  if (leads()) check_folder(folder);
  impl_ = std::make_unique<Impl>(folder, complete, subject, options);
}

Campaign::~Campaign() = default;

const CampaignRecord& Campaign::record() const {
  return impl_->record;
}

std::string Campaign::run(const Budget& budget, const std::vector<Listener*>& listeners) {
  begin(budget, listeners);
  std::string reason = work(0);
  end(reason);
  return reason;
}

void Campaign::begin(const Budget& budget, const std::vector<Listener*>& listeners) {
  impl_->begin(budget, leads() ? listeners : std::vector<Listener*>());
}
std::string Campaign::work(std::int64_t until) {
  return impl_->work(until);
}
void Campaign::end(const std::string& reason) {
  impl_->end(reason);
}
const CampaignCounters& Campaign::counters() const {
  return impl_->state->counters;
}
std::int64_t Campaign::stored_iterations() {
  return impl_->store->iterations();
}
std::string Campaign::reached() const {
  return impl_->reached();
}
bool Campaign::idle() const {
  return impl_->idle();
}
News Campaign::news(std::int64_t after, std::int64_t last) {
  return impl_->news(after, last);
}
void Campaign::hear(std::vector<News> told, std::int64_t iterations) {
  impl_->told = std::move(told);
  impl_->told_after = iterations;
}

}  // namespace galvani
