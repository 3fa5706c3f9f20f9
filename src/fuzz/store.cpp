#include "fuzz/store.h"

#include "fuzz/schema.h"
#include "galvani/base/error.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

Database open(const fs::path& folder) {
  Database database(folder / "campaign.db", Database::Mode::write);
  // A killed process loses nothing; after a power failure the last batches may be missing and are done again.
  database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  return database;
}

constexpr const char* kAddBatch = "INSERT INTO batches VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

void put(Statement& statement, const CampaignCounters& c) {
  statement.run(c.batches, c.iterations, c.mutants, c.valid, c.kept, c.distinct_kept, c.faults, c.distinct_faults,
                c.kept_faults, c.resets, c.reexamined, c.covered, c.coverable);
}

}  // namespace

Store::Store(const fs::path& folder)
    : database_((check_schema(*std::make_unique<Database>(folder / "campaign.db", Database::Mode::read),
                              (folder / "campaign.db").string()),
                 open(folder))),
      add_input_(database_, "INSERT INTO inputs VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      add_fault_(database_, "INSERT INTO faults VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      add_batch_(database_, kAddBatch),
      add_clock_(database_, "INSERT INTO clock VALUES(?, ?)"),
      add_pick_(database_, "INSERT OR REPLACE INTO picks VALUES(?, ?)"),
      add_mutator_(database_, "INSERT OR REPLACE INTO mutators VALUES(?, ?, ?, ?, ?, ?)"),
      set_class_(database_,
                 "UPDATE classes SET mutants = ?, valid = ?, kept = ?, faults = ?, kept_faults = ? WHERE label = ?"),
      input_image_(database_, "SELECT image FROM inputs WHERE id = ?"),
      seed_image_(database_, "SELECT image FROM seeds WHERE id = ?") {}

void Store::create(const fs::path& folder, const std::vector<NewSeed>& seeds,
                   const std::vector<std::string>& seed_hashes, const std::vector<WrongSeedRecord>& wrong,
                   const std::vector<std::string>& classes, const CampaignCounters& counters) {
  Database database = open(folder);
  Transaction transaction(database);
  create_schema(database);
  Statement add_seed(database, "INSERT INTO seeds VALUES(?, ?, ?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    const SeedRecord& seed = seeds[i].record;
    add_seed.run(seed.id, seed.item, seed.label, seed.confidence, seed.gain, seed_hashes[i],
                 Statement::Blob{seeds[i].png});
  }
  Statement add_wrong(database, "INSERT INTO wrong_seeds VALUES(?, ?, ?, ?)");
  for (const WrongSeedRecord& seed : wrong) add_wrong.run(seed.item, seed.label, seed.predicted, seed.confidence);
  Statement add_class(database, "INSERT INTO classes VALUES(?, ?, 0, 0, 0, 0, 0)");
  for (std::size_t i = 0; i < classes.size(); ++i) add_class.run(static_cast<std::int64_t>(i), classes[i]);
  Statement add_batch(database, kAddBatch);
  put(add_batch, counters);
  Statement(database, "INSERT INTO clock VALUES(0, 0)").run();
  transaction.commit();
}

void Store::add(const BatchRecord& batch, const Yields& yields, const std::vector<std::int64_t>& pick_counts,
                double seconds) {
  Transaction transaction(database_);
  for (const NewInput& input : batch.inputs) {
    const InputRecord& r = input.record;
    add_input_.run(r.id, r.parent, r.seed, r.iteration, r.slot, r.rule, r.affine, r.label, r.predicted, r.confidence,
                   r.gain, r.fault, r.distinct, r.sha256, Statement::Blob{input.png});
  }
  for (const FaultRecord& r : batch.faults)
    add_fault_.run(r.id, r.input, r.parent, r.seed, r.iteration, r.slot, r.rule, r.affine, r.label, r.predicted,
                   r.confidence, r.distinct, r.sha256, r.file);
  for (std::size_t i = 0; i < batch.picks.size(); ++i) add_pick_.run(batch.picks[i], pick_counts[i]);
  for (const YieldRecord& y : yields.mutators) {
    if (y.mutants > 0) add_mutator_.run(y.name, y.mutants, y.valid, y.kept, y.faults, y.kept_faults);
  }
  for (std::size_t label = 0; label < yields.classes.size(); ++label) {
    const YieldRecord& y = yields.classes[label];
    if (y.mutants > 0)
      set_class_.run(y.mutants, y.valid, y.kept, y.faults, y.kept_faults, static_cast<std::int64_t>(label));
  }
  put(add_batch_, batch.counters);
  add_clock_.run(batch.counters.batches, seconds);
  transaction.commit();
}

std::int64_t Store::last_batch() {
  Statement row(database_, "SELECT max(batch) FROM batches");
  return row.step() ? row.integer(0) : 0;
}

std::int64_t Store::last_fault() {
  Statement row(database_, "SELECT coalesce(max(id), 0) FROM faults");
  return row.step() ? row.integer(0) : 0;
}

double Store::seconds() {
  Statement row(database_, "SELECT coalesce(max(seconds), 0) FROM clock");
  return row.step() ? row.real(0) : 0;
}

CampaignCounters Store::counters(std::int64_t batch) {
  Statement row(database_,
                "SELECT batch, iterations, mutants, valid, kept, distinct_kept, faults, distinct_faults, kept_faults, "
                "resets, reexamined, covered, coverable FROM batches WHERE batch = ?");
  row.bind(batch);
  if (!row.step()) fail(ErrorCode::internal, "the store has no batch {}", batch);
  CampaignCounters c;
  std::int64_t* counts[] = {&c.batches, &c.iterations,      &c.mutants,     &c.valid,  &c.kept,      &c.distinct_kept,
                            &c.faults,  &c.distinct_faults, &c.kept_faults, &c.resets, &c.reexamined};
  int column = 0;
  for (std::int64_t* count : counts) *count = row.integer(column++);
  c.covered = row.real(column++);
  c.coverable = row.real(column);
  return c;
}

std::vector<SeedRecord> Store::seeds() {
  std::vector<SeedRecord> result;
  Statement rows(database_, "SELECT id, item, label, confidence, gain FROM seeds ORDER BY id");
  while (rows.step())
    result.push_back({rows.integer(0), rows.integer(1), rows.integer(2), rows.real(3), rows.real(4), 0});
  return result;
}

std::int64_t Store::wrong_seeds() {
  Statement row(database_, "SELECT count(*) FROM wrong_seeds");
  return row.step() ? row.integer(0) : 0;
}

std::vector<std::string> Store::class_names() {
  std::vector<std::string> result;
  Statement rows(database_, "SELECT name FROM classes ORDER BY label");
  while (rows.step()) result.push_back(rows.text(0));
  return result;
}

void Store::for_each_input(std::int64_t last_iteration, const std::function<void(const InputRecord&)>& visit) {
  Statement rows(database_,
                 "SELECT id, parent, iteration, rule, affine, gain, label, sha256 FROM inputs WHERE iteration <= ? "
                 "ORDER BY id");
  rows.bind(last_iteration);
  while (rows.step()) {
    InputRecord record;
    record.id = rows.integer(0);
    record.parent = rows.integer(1);
    record.iteration = rows.integer(2);
    record.rule = rows.text(3);
    record.affine = rows.integer(4) != 0;
    record.gain = rows.real(5);
    record.label = rows.integer(6);
    record.sha256 = rows.text(7);
    visit(record);
  }
}

void Store::for_each_fault_image(std::int64_t last_iteration, const SeeImage& visit) {
  Statement rows(database_,
                 "SELECT sha256, label, id FROM faults WHERE iteration <= ? AND is_distinct = 1 ORDER BY id");
  rows.bind(last_iteration);
  while (rows.step()) visit(rows.text(0), rows.integer(1), rows.integer(2));
}

void Store::for_each_seed_image(const SeeImage& visit) {
  Statement rows(database_, "SELECT sha256, label, id FROM seeds ORDER BY id");
  while (rows.step()) visit(rows.text(0), rows.integer(1), rows.integer(2));
}

std::string Store::image(std::int64_t id) {
  for (Statement* query : {&input_image_, &seed_image_}) {
    query->reset();
    query->bind(id);
    if (!query->step()) continue;
    std::string png = query->text(0);
    query->reset();
    return png;
  }
  bad_input("the campaign's store has no image {}; it is damaged", id);
}

}  // namespace galvani
