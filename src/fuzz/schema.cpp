#include "fuzz/schema.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "galvani/base/error.h"

namespace galvani {
namespace {

// Everything but `clock` is a function of the campaign's settings, so that dumps without it can be compared.
constexpr const char* kTables = R"(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE seeds(
  id INTEGER PRIMARY KEY,
  item INTEGER NOT NULL,
  label INTEGER NOT NULL,
  confidence REAL NOT NULL,
  gain REAL NOT NULL,
  sha256 TEXT NOT NULL,
  image BLOB NOT NULL,
  source TEXT NOT NULL DEFAULT '',
  reference TEXT NOT NULL DEFAULT '');
CREATE TABLE wrong_seeds(
  item INTEGER PRIMARY KEY,
  label INTEGER NOT NULL,
  predicted INTEGER NOT NULL,
  confidence REAL NOT NULL,
  source TEXT NOT NULL DEFAULT '');
CREATE TABLE inputs(
  id INTEGER PRIMARY KEY,
  parent INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  rule TEXT NOT NULL,
  affine INTEGER NOT NULL,
  label INTEGER NOT NULL,
  predicted INTEGER NOT NULL,
  confidence REAL NOT NULL,
  gain REAL NOT NULL,
  fault INTEGER NOT NULL,
  is_distinct INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  image BLOB NOT NULL,
  origin INTEGER NOT NULL DEFAULT 0,
  unrepeatable INTEGER NOT NULL DEFAULT 0,
  figures TEXT NOT NULL DEFAULT '',
  metadata TEXT NOT NULL DEFAULT '');
CREATE TABLE faults(
  id INTEGER PRIMARY KEY,
  input INTEGER NOT NULL,
  parent INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  rule TEXT NOT NULL,
  affine INTEGER NOT NULL,
  label INTEGER NOT NULL,
  predicted INTEGER NOT NULL,
  confidence REAL NOT NULL,
  is_distinct INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  file TEXT NOT NULL,
  origin INTEGER NOT NULL DEFAULT 0,
  unrepeatable INTEGER NOT NULL DEFAULT 0,
  figures TEXT NOT NULL DEFAULT '',
  metadata TEXT NOT NULL DEFAULT '',
  change REAL NOT NULL DEFAULT 0);
CREATE TABLE picks(id INTEGER PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE batches(
  batch INTEGER PRIMARY KEY,
  iterations INTEGER NOT NULL,
  mutants INTEGER NOT NULL,
  valid INTEGER NOT NULL,
  kept INTEGER NOT NULL,
  distinct_kept INTEGER NOT NULL,
  faults INTEGER NOT NULL,
  distinct_faults INTEGER NOT NULL,
  kept_faults INTEGER NOT NULL,
  resets INTEGER NOT NULL,
  reexamined INTEGER NOT NULL,
  covered REAL NOT NULL,
  coverable REAL NOT NULL,
  totals TEXT NOT NULL,
  chain TEXT NOT NULL,
  passes INTEGER NOT NULL DEFAULT 0);
CREATE TABLE mutators(
  name TEXT PRIMARY KEY,
  mutants INTEGER NOT NULL,
  valid INTEGER NOT NULL,
  kept INTEGER NOT NULL,
  faults INTEGER NOT NULL,
  kept_faults INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE classes(
  label INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  mutants INTEGER NOT NULL,
  valid INTEGER NOT NULL,
  kept INTEGER NOT NULL,
  faults INTEGER NOT NULL,
  kept_faults INTEGER NOT NULL);
CREATE TABLE clock(batch INTEGER PRIMARY KEY, seconds REAL NOT NULL, date INTEGER NOT NULL DEFAULT 0);
)";

// What one version has and those before it had not.
struct Addition {
  struct Column {
    const char* name;
    const char* type;
    const char* fallback;
  };
  int since;
  const char* table;
  std::vector<Column> columns;
};
const std::vector<Addition::Column> kOfCandidates = {{"origin", "INTEGER", "0"},
                                                     {"unrepeatable", "INTEGER", "0"},
                                                     {"figures", "TEXT", "''"},
                                                     {"metadata", "TEXT", "''"}};
const std::vector<Addition::Column> kOfFaults = [] {
  std::vector<Addition::Column> columns = kOfCandidates;
  columns.push_back({"change", "REAL", "0"});
  return columns;
}();
const std::vector<Addition> kAdditions = {{3, "seeds", {{"source", "TEXT", "''"}}},
                                          {3, "wrong_seeds", {{"source", "TEXT", "''"}}},
                                          {3, "inputs", kOfCandidates},
                                          {3, "faults", kOfFaults},
                                          {3, "batches", {{"passes", "INTEGER", "0"}}},
                                          {3, "clock", {{"date", "INTEGER", "0"}}},
                                          {4, "seeds", {{"reference", "TEXT", "''"}}}};

// visit(table, column) for every column that a store of that version lacks.
template <class Visit>
void for_each_missing(int version, Visit&& visit) {
  for (const Addition& added : kAdditions) {
    for (const Addition::Column& column : added.columns) {
      if (added.since > version) visit(added.table, column);
    }
  }
}

}  // namespace

void create_schema(Database& database, const std::string& identity) {
  database.execute(kTables);
  Statement add(database, "INSERT INTO meta VALUES(?, ?)");
  add.run(std::string("schema"), std::to_string(kSchemaVersion));
  add.run(std::string("identity"), identity);
}

int schema_version(Database& database, const std::string& name) {
  Statement version(database, "SELECT value FROM meta WHERE key = 'schema'");
  if (!version.step()) bad_input("{}: is not a campaign's store", name);
  for (int known = kOldestSchema; known <= kSchemaVersion; ++known) {
    if (version.text(0) == std::to_string(known)) return known;
  }
  bad_input("{}: is written in version {} of the store, this program knows versions {} to {}", name,
            printable(version.text(0)), kOldestSchema, kSchemaVersion);
}

void check_schema(Database& database, const std::string& name) {
  int version = schema_version(database, name);
  if (version == kSchemaVersion) return;
  database.execute("PRAGMA temp_store = MEMORY");
  std::map<std::string, std::string> columns;
  for_each_missing(version, [&](const char* table, const Addition::Column& column) {
    columns[table] += fmt::format(", {} AS {}", column.fallback, column.name);
  });
  for (const auto& [table, missing] : columns)
    database.execute(fmt::format("CREATE TEMP VIEW {0} AS SELECT *{1} FROM main.{0}", table, missing));
}

void migrate_schema(Database& database, const std::string& name) {
  int version = schema_version(database, name);
  if (version == kSchemaVersion) return;
  Transaction transaction(database);
  for_each_missing(version, [&](const char* table, const Addition::Column& column) {
    database.execute(fmt::format("ALTER TABLE {} ADD COLUMN {} {} NOT NULL DEFAULT {}", table, column.name, column.type,
                                 column.fallback));
  });
  Statement(database, "UPDATE meta SET value = ? WHERE key = 'schema'").run(std::to_string(kSchemaVersion));
  transaction.commit();
}

void check_identity(Database& database, const CampaignRecord& record, const std::string& name) {
  Statement identity(database, "SELECT value FROM meta WHERE key = 'identity'");
  if (!identity.step() || identity.text(0) != record.identity())
    bad_input(
        "{}: was edited after the campaign began, for its values are not those the store was made with; put back "
        "what was in it",
        name);
}

}  // namespace galvani
