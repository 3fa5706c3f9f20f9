#include "fuzz/schema.h"

#include <fmt/format.h>

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
  source TEXT NOT NULL DEFAULT '');
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

// What version 3 has and version 2 had not.
struct Addition {
  struct Column {
    const char* name;
    const char* type;
    const char* fallback;
  };
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
const std::vector<Addition> kAdditions = {{"seeds", {{"source", "TEXT", "''"}}},
                                          {"wrong_seeds", {{"source", "TEXT", "''"}}},
                                          {"inputs", kOfCandidates},
                                          {"faults", kOfFaults},
                                          {"batches", {{"passes", "INTEGER", "0"}}},
                                          {"clock", {{"date", "INTEGER", "0"}}}};

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
  for (int known : {kOldestSchema, kSchemaVersion}) {
    if (version.text(0) == std::to_string(known)) return known;
  }
  bad_input("{}: is written in version {} of the store, this program knows versions {} to {}", name,
            printable(version.text(0)), kOldestSchema, kSchemaVersion);
}

void check_schema(Database& database, const std::string& name) {
  if (schema_version(database, name) == kSchemaVersion) return;
  database.execute("PRAGMA temp_store = MEMORY");
  for (const Addition& added : kAdditions)
    database.execute(fmt::format("CREATE TEMP VIEW {0} AS SELECT *{1} FROM main.{0}", added.table, [&] {
      std::string columns;
      for (const Addition::Column& column : added.columns)
        columns += fmt::format(", {} AS {}", column.fallback, column.name);
      return columns;
    }()));
}

void migrate_schema(Database& database, const std::string& name) {
  if (schema_version(database, name) == kSchemaVersion) return;
  Transaction transaction(database);
  for (const Addition& added : kAdditions) {
    for (const Addition::Column& column : added.columns)
      database.execute(fmt::format("ALTER TABLE {} ADD COLUMN {} {} NOT NULL DEFAULT {}", added.table, column.name,
                                   column.type, column.fallback));
  }
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
