#include "fuzz/store.h"

#include <charconv>

#include "fuzz/chain.h"
#include "fuzz/fault_images.h"
#include "fuzz/rows.h"
#include "fuzz/schema.h"
#include "galvani/base/error.h"
#include "galvani/base/parallel.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

Database open(const fs::path& folder) {
  Database database(folder / "campaign.db", Database::Mode::write);
  // A killed process loses nothing; after a power failure the last batches may be missing and are done again.
  database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  return database;
}

// Written to only if it is a campaign's store.
Database open_newest(const fs::path& folder, const std::string& file) {
  {
    Database there(file, Database::Mode::read);
    check_schema(there, file);
  }
  Database database = open(folder);
  migrate_schema(database, file);
  return database;
}

void add_row(Statement& statement, const CampaignCounters& counters, const std::string& totals,
             const std::string& chain) {
  int next = bind_row(statement, counters);
  statement.set(next, totals);
  statement.set(next + 1, chain);
  statement.finish();
}
template <class Record>
void add_row(Statement& statement, const Record& record) {
  bind_row(statement, record);
  statement.finish();
}
template <class Record>
void add_row(Statement& statement, const WithImage<Record>& row) {
  int next = bind_row(statement, row.record);
  statement.set(next, Statement::Blob{row.encoded});
  statement.finish();
}

}  // namespace

Store::Store(const fs::path& folder, std::int64_t keep_files)
    : files_(folder),
      file_((folder / "campaign.db").string()),
      database_(open_newest(folder, file_)),
      files_left_(keep_files == 0 ? -1 : std::max<std::int64_t>(0, keep_files - distinct_faults())),
      chain_(read_chain(database_, last_batch())),
      add_input_(database_, insert_into<InputRecord>("inputs", "image")),
      add_fault_(database_, insert_into<FaultRecord>("faults")),
      add_batch_(database_, insert_into<CampaignCounters>("batches", "totals, chain")),
      add_clock_(database_, "INSERT INTO clock VALUES(?, ?, unixepoch())"),
      add_pick_(database_, "INSERT OR REPLACE INTO picks VALUES(?, ?)"),
      add_kind_(database_, "INSERT OR REPLACE INTO mutators VALUES(?, ?, ?, ?, ?, ?)"),
      set_class_(database_,
                 "UPDATE classes SET mutants = ?, valid = ?, kept = ?, faults = ?, kept_faults = ? WHERE label = ?"),
      input_image_(database_, "SELECT image FROM inputs WHERE id = ?"),
      seed_image_(database_, "SELECT image FROM seeds WHERE id = ?") {
  if (keep_files > 0) FaultImages::create_table(database_);
  settle_files();
}

std::int64_t Store::distinct_faults() {
  Statement row(database_, "SELECT count(*) FROM faults WHERE is_distinct = 1");
  return row.step() ? row.integer(0) : 0;
}

void Store::settle_files() {
  Statement row(database_, "SELECT " + columns<FaultRecord>() + " FROM faults WHERE id = ? AND is_distinct = 1");
  for (const std::string& name : files_.left()) {
    FaultRecord fault;
    std::int64_t id = 0;
    std::from_chars(name.data(), name.data() + name.size(), id);
    row.bind(id);
    bool stored = row.step();
    if (stored) read_row(row, fault);
    row.reset();
    if (!stored || !files_.settle(name, fault)) files_.discard(name);
  }
}

void Store::create(const fs::path& folder, const Beginning& beginning) {
  Database database = open(folder);
  Transaction transaction(database);
  create_schema(database, beginning.identity);
  Statement add_seed(database, insert_into<SeedRecord>("seeds", "image"));
  for (const NewSeed& seed : beginning.seeds) add_row(add_seed, seed);
  Statement add_wrong(database, insert_into<WrongSeedRecord>("wrong_seeds"));
  for (const WrongSeedRecord& seed : beginning.wrong) add_row(add_wrong, seed);
  Statement add_class(database, "INSERT INTO classes VALUES(?, ?, 0, 0, 0, 0, 0)");
  for (std::size_t i = 0; i < beginning.classes.size(); ++i)
    add_class.run(static_cast<std::int64_t>(i), beginning.classes[i]);
  Statement add_batch(database, insert_into<CampaignCounters>("batches", "totals, chain"));
  add_row(add_batch, beginning.counters, beginning.totals, chain_value(beginning));
  if (!beginning.absorbed.empty())
    Statement(database, "INSERT INTO meta VALUES('absorbed', ?)").run(Statement::Blob{beginning.absorbed});
  Statement(database, "INSERT INTO clock VALUES(0, 0, unixepoch())").run();
  transaction.commit();
}

void Store::add(const BatchRecord& batch, const Yields& yields, const std::vector<std::int64_t>& pick_counts,
                double seconds) {
  std::vector<std::size_t> with_file, without;
  for (std::size_t i = 0; i < batch.faults.size(); ++i) {
    if (batch.fault_images[i].empty()) continue;
    bool file = files_left_ < 0 || static_cast<std::int64_t>(with_file.size()) < files_left_;
    (file ? with_file : without).push_back(i);
  }
  auto for_each_file = [&](const auto& work) {
    workers().run(static_cast<std::int64_t>(with_file.size()), [&](std::int64_t index, int) {
      std::size_t i = with_file[static_cast<std::size_t>(index)];
      work(batch.faults[i], batch.fault_images[i]);
    });
  };
  for_each_file([&](const FaultRecord& fault, const std::string& png) { files_.stage(fault, png); });
  std::string chain = chain_value(chain_, batch);
  Transaction transaction(database_);
  for (const NewInput& input : batch.inputs) add_row(add_input_, input);
  for (const FaultRecord& fault : batch.faults) add_row(add_fault_, fault);
  if (!without.empty()) {
    Statement add_image(database_, "INSERT INTO fault_images VALUES(?, ?)");
    for (std::size_t i : without) add_image.run(batch.faults[i].id, Statement::Blob{batch.fault_images[i]});
  }
  for (std::size_t i = 0; i < batch.picks.size(); ++i) add_pick_.run(batch.picks[i], pick_counts[i]);
  for (const YieldRecord& y : yields.kinds) {
    if (y.mutants > 0) add_kind_.run(y.name, y.mutants, y.valid, y.kept, y.faults, y.kept_faults);
  }
  for (std::size_t label = 0; label < yields.classes.size(); ++label) {
    const YieldRecord& y = yields.classes[label];
    if (y.mutants > 0)
      set_class_.run(y.mutants, y.valid, y.kept, y.faults, y.kept_faults, static_cast<std::int64_t>(label));
  }
  add_row(add_batch_, batch.counters, batch.totals, chain);
  add_clock_.run(batch.counters.batches, seconds);
  transaction.commit();
  chain_ = std::move(chain);
  if (files_left_ > 0) files_left_ -= static_cast<std::int64_t>(with_file.size());
  for_each_file([&](const FaultRecord& fault, const std::string&) { files_.place(fault); });
}

std::string Store::repeated_otherwise(const BatchRecord& batch) {
  std::int64_t number = batch.counters.batches;
  if (chain_value(chain(number - 1), batch) == chain(number)) return "";
  std::string found = difference(read_batch(database_, file_, number), batch);
  return found.empty() ? "its rows do not fit its chain value, so the store was changed" : found;
}

bool Store::checkpoint() {
  Statement row(database_, "PRAGMA wal_checkpoint(TRUNCATE)");
  return row.step() && row.integer(0) == 0;
}

std::int64_t Store::last_batch() {
  Statement row(database_, "SELECT max(batch) FROM batches");
  return row.step() ? row.integer(0) : 0;
}

std::int64_t Store::iterations() {
  Statement row(database_, "SELECT max(iterations) FROM batches");
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

std::string Store::absorbed() {
  return read_absorbed(database_);
}

std::string Store::chain(std::int64_t batch) {
  return read_chain(database_, batch);
}

std::vector<SeedRecord> Store::seeds() {
  std::vector<SeedRecord> result;
  Statement rows(database_, "SELECT " + columns<SeedRecord>() + " FROM seeds ORDER BY id");
  while (rows.step()) read_row(rows, result.emplace_back());
  return result;
}

std::int64_t Store::wrong_seeds() {
  Statement row(database_, "SELECT count(*) FROM wrong_seeds");
  return row.step() ? row.integer(0) : 0;
}

std::vector<std::string> Store::class_names() {
  std::vector<std::string> result;
  for (YieldRecord& yield : read_yields(database_).classes) result.push_back(std::move(yield.name));
  return result;
}

void Store::for_each_input(std::int64_t last_iteration, const std::function<void(const InputRecord&)>& visit) {
  Statement rows(database_, "SELECT " + columns<InputRecord>() + " FROM inputs WHERE iteration <= ? ORDER BY id");
  rows.bind(last_iteration);
  while (rows.step()) {
    InputRecord record;
    read_row(rows, record);
    visit(record);
  }
}

void Store::for_each_fault_image(std::int64_t last_iteration, const SeeImage& visit) {
  Statement rows(database_,
                 "SELECT sha256, label, id FROM faults WHERE iteration <= ? AND is_distinct = 1 ORDER BY id");
  rows.bind(last_iteration);
  while (rows.step()) visit(rows.text(0), rows.integer(1), rows.integer(2));
}

void Store::for_each_broken_seed(std::int64_t last_iteration, const std::function<void(std::int64_t seed)>& visit) {
  Statement rows(database_,
                 "SELECT DISTINCT seed FROM faults WHERE iteration <= ? AND seed IN (SELECT id FROM seeds) ORDER BY 1");
  rows.bind(last_iteration);
  while (rows.step()) visit(rows.integer(0));
}

void Store::for_each_seed_image(const SeeImage& visit) {
  Statement rows(database_, "SELECT sha256, label, id FROM seeds ORDER BY id");
  while (rows.step()) visit(rows.text(0), rows.integer(1), rows.integer(2));
}

std::vector<FaultRecord> Store::lost_files() {
  std::vector<FaultRecord> result;
  Statement rows(database_, "SELECT " + columns<FaultRecord>() + " FROM faults WHERE is_distinct = 1 ORDER BY id");
  FaultRecord fault;
  FaultImages images(database_);
  while (rows.step()) {
    read_row(rows, fault);
    if (files_.lost(fault) && !images.find(fault)) result.push_back(fault);
  }
  return result;
}

News Store::news(std::int64_t number, std::int64_t after, std::int64_t last) {
  News result;
  result.island = number;
  Statement rows(database_,
                 "WITH RECURSIVE told(id) AS (SELECT id FROM inputs WHERE iteration > ?1 AND iteration <= ?2 AND "
                 "origin = 0 UNION SELECT inputs.parent FROM inputs JOIN told ON inputs.id = told.id) SELECT " +
                     columns<InputRecord>() + ", image FROM inputs WHERE id IN told ORDER BY id");
  rows.bind(after, last);
  while (rows.step()) {
    NewsRow& row = result.rows.emplace_back();
    row.encoded = rows.text(read_row(rows, row.record));
    row.fresh = row.record.origin == 0 && row.record.iteration > after;
  }
  return result;
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
