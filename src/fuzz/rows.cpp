#include "fuzz/rows.h"

#include <limits>

#include "galvani/base/error.h"

namespace galvani {
namespace {

// Rows of a table with numbers from `first` to `last`: read(row) of each.
template <class Record, class Read>
void read_range(Database& database, const std::string& table, const std::string& more, std::int64_t first,
                std::int64_t last, Read&& read) {
  Statement rows(database,
                 "SELECT " + columns<Record>() + more + " FROM " + table + " WHERE id BETWEEN ? AND ? ORDER BY id");
  rows.bind(first, last);
  while (rows.step()) read(rows);
}

template <class Record>
WithImage<Record> with_image(const Statement& row) {
  WithImage<Record> result;
  result.encoded = row.text(read_row(row, result.record));
  return result;
}

void read_counters(Database& database, const std::string& file, std::int64_t batch, CampaignCounters& counters,
                   std::string& totals) {
  Statement row(database, "SELECT " + columns<CampaignCounters>() + ", totals FROM batches WHERE batch = ?");
  row.bind(batch);
  if (!row.step()) bad_input("{}: has no batch {}; it is damaged", file, batch);
  totals = row.text(read_row(row, counters));
}

}  // namespace

Beginning read_beginning(Database& database, const std::string& file) {
  Beginning result;
  Statement identity(database, "SELECT value FROM meta WHERE key = 'identity'");
  if (identity.step()) result.identity = identity.text(0);
  result.absorbed = read_absorbed(database);
  read_range<SeedRecord>(database, "seeds", ", image", 1, std::numeric_limits<std::int64_t>::max(),
                         [&](const Statement& row) { result.seeds.push_back(with_image<SeedRecord>(row)); });
  Statement wrong(database, "SELECT " + columns<WrongSeedRecord>() + " FROM wrong_seeds ORDER BY item");
  while (wrong.step()) read_row(wrong, result.wrong.emplace_back());
  for (YieldRecord& yield : read_yields(database).classes) result.classes.push_back(std::move(yield.name));
  read_counters(database, file, 0, result.counters, result.totals);
  return result;
}

BatchRecord read_batch(Database& database, const std::string& file, std::int64_t batch) {
  BatchRecord result;
  CampaignCounters before;
  std::string unused;
  read_counters(database, file, batch - 1, before, unused);
  read_counters(database, file, batch, result.counters, result.totals);
  Statement seeds(database, "SELECT coalesce(max(id), 0) FROM seeds");
  std::int64_t first = seeds.step() ? seeds.integer(0) : 0;
  read_range<InputRecord>(database, "inputs", ", image", first + before.kept + 1, first + result.counters.kept,
                          [&](const Statement& row) { result.inputs.push_back(with_image<InputRecord>(row)); });
  read_range<FaultRecord>(database, "faults", "", before.faults + 1, result.counters.faults,
                          [&](const Statement& row) { read_row(row, result.faults.emplace_back()); });
  return result;
}

Yields read_yields(Database& database) {
  Yields result;
  Statement mutators(database, "SELECT " + columns<YieldRecord>() + " FROM mutators ORDER BY name");
  while (mutators.step()) read_row(mutators, result.kinds.emplace_back());
  Statement classes(database, "SELECT " + columns<YieldRecord>() + " FROM classes ORDER BY label");
  while (classes.step()) read_row(classes, result.classes.emplace_back());
  return result;
}

std::string read_absorbed(Database& database) {
  Statement row(database, "SELECT value FROM meta WHERE key = 'absorbed'");
  return row.step() ? std::string(row.blob(0)) : "";
}

std::string read_chain(Database& database, std::int64_t batch) {
  Statement row(database, "SELECT chain FROM batches WHERE batch = ?");
  row.bind(batch);
  return row.step() ? row.text(0) : "";
}

}  // namespace galvani
