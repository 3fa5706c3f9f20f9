#include "fuzz/loose_ends.h"

#include <fmt/format.h>

#include <cmath>

#include "fuzz/chain.h"
#include "fuzz/rows.h"
#include "galvani/base/error.h"
#include "galvani/base/progress.h"

namespace galvani {
namespace {

using Problems = std::vector<std::string>;

void check_totals(Database& database, const std::string& file, std::int64_t last_batch, Problems& problems) {
  PickSum picks;
  Statement rows(database, "SELECT id, count FROM picks");
  while (rows.step()) picks.add(rows.integer(0), rows.integer(1));
  Statement last(database, "SELECT totals FROM batches WHERE batch = ?");
  last.bind(last_batch);
  if (!last.step() || last.text(0) != totals_value(read_yields(database), picks))
    problems.push_back(
        fmt::format("{}: picks, mutators and classes do not add up to what batch {} says", file, last_batch));
}

void check_counts(Database& database, const std::string& file, const RowCounts& accounted, Problems& problems) {
  Statement counts(database,
                   "SELECT (SELECT count(*) FROM inputs), (SELECT count(*) FROM faults), (SELECT count(*) FROM "
                   "batches), (SELECT count(*) FROM clock)");
  counts.step();
  auto expect = [&](const char* table, std::int64_t found, std::int64_t wanted) {
    if (found != wanted)
      problems.push_back(fmt::format("{}: {} has {} rows, but the batches account for {}", file, table,
                                     format_count(found), format_count(wanted)));
  };
  expect("inputs", counts.integer(0), accounted.inputs);
  expect("faults", counts.integer(1), accounted.faults);
  expect("batches", counts.integer(2), accounted.batches);
  expect("clock", counts.integer(3), accounted.batches);
}

void check_clock(Database& database, const std::string& file, Problems& problems) {
  Statement rows(database, "SELECT batch, seconds FROM clock ORDER BY batch");
  double before = 0;
  while (rows.step()) {
    double seconds = rows.real(1);
    if (!std::isfinite(seconds) || seconds < before) {
      problems.push_back(
          fmt::format("{}: the clock of batch {} says {} s after {} s", file, rows.integer(0), seconds, before));
      return;
    }
    before = seconds;
  }
}

}  // namespace

Problems loose_ends(Database& database, const std::string& file, const RowCounts& accounted) {
  Problems problems;
  check_totals(database, file, accounted.batches - 1, problems);
  check_counts(database, file, accounted, problems);
  check_clock(database, file, problems);
  return problems;
}

std::string broken_chain(const std::string& file, std::int64_t batch) {
  return fmt::format("{}: the rows of batch {} do not fit its chain value", file, batch);
}

void refuse_damaged(const std::filesystem::path& folder, const std::string& problem) {
  bad_input("{}; galvani check {} lists all damage", problem, folder.string());
}

void expect_chain(Database& database, const std::filesystem::path& folder, std::int64_t batch,
                  const std::string& value) {
  if (read_chain(database, batch) != value)
    refuse_damaged(folder, broken_chain((folder / "campaign.db").string(), batch));
}

}  // namespace galvani
