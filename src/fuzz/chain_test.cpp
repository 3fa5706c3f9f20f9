#include "fuzz/chain.h"

#include <gtest/gtest.h>

#include <set>

#include "fuzz/rows.h"
#include "fuzz/store.h"
#include "fuzz/testing.h"
#include "galvani/base/files.h"
#include "galvani/fuzz/reader.h"

namespace galvani {
namespace {

class ChainTest : public ::testing::Test {
 protected:
  void run(const std::string& name, std::int64_t batches) {
    Budget budget;
    budget.iterations = batches * 4;
    CampaignSettings settings = testing::small_settings("kmnc");
    settings.seeds = 60;  // all that the model gets right, so that those it gets wrong are met
    Campaign campaign(folder_ / name, settings, subject_.view());
    campaign.run(budget, {});
  }
  Database open(const std::string& name, Database::Mode mode = Database::Mode::read) {
    return {folder_ / name / "campaign.db", mode};
  }

  testing::Subject subject_;
  TemporaryFolder folder_;
};

TEST_F(ChainTest, AReaderComesToTheSameValues) {
  run("a", 5);
  Database database = open("a");
  std::string value = chain_value(read_beginning(database, "a"));
  EXPECT_EQ(value, read_chain(database, 0));
  std::set<std::string> all = {value};
  std::size_t faults = 0, inputs = 0;
  for (std::int64_t batch = 1; batch <= 5; ++batch) {
    BatchRecord rows = read_batch(database, "a", batch);
    value = chain_value(value, rows);
    EXPECT_EQ(value, read_chain(database, batch));
    EXPECT_TRUE(all.insert(value).second);
    faults += rows.faults.size();
    inputs += rows.inputs.size();
  }
  EXPECT_GT(faults, 0U);
  EXPECT_GT(inputs, 0U);
  EXPECT_EQ(read_chain(database, 6), "");
  // Totals are those of the last batch.
  PickSum picks;
  Statement rows(database, "SELECT id, count FROM picks");
  while (rows.step()) picks.add(rows.integer(0), rows.integer(1));
  EXPECT_EQ(totals_value(read_yields(database), picks), read_batch(database, "a", 5).totals);
  picks.add(1);
  EXPECT_NE(totals_value(read_yields(database), picks), read_batch(database, "a", 5).totals);
}

// Every column of every table, but for the clock's, has its say in a value; the lists of rows.h forget none.
TEST_F(ChainTest, NoColumnIsForgotten) {
  run("a", 2);
  Database database = open("a", Database::Mode::write);
  std::int64_t columns = 0;
  for (const std::string table : {"seeds", "wrong_seeds", "inputs", "faults", "batches", "mutators", "classes"}) {
    Statement names(database, "SELECT name, type FROM pragma_table_info('" + table + "')");
    while (names.step()) {
      std::string column = names.text(0);
      if (column == "chain" || column == "totals") continue;
      std::string key = table == "mutators"  ? "name"
                        : table == "batches" ? "batch"
                        : table == "classes" ? "label"
                                             : "rowid";
      if (column == key || (table == "wrong_seeds" && column == "item") || column == "id") continue;  // read by these
      ++columns;
      auto everything = [&] {
        PickSum picks;
        return chain_value(read_beginning(database, "a")) + chain_value("", read_batch(database, "a", 1)) +
               totals_value(read_yields(database), picks);
      };
      std::string before = everything();
      Transaction undone(database);
      static const std::set<std::string> flags = {"affine", "fault", "is_distinct"};
      bool text = names.text(1) == "BLOB" || names.text(1) == "TEXT";
      std::string changed = text ? column + " || 'x'" : flags.count(column) == 1 ? "1 - " + column : column + " + 1";
      // Counts of batches say which rows belong to one: these change in batch 0 alone.
      std::string first = table == "batches" ? "0" : "(SELECT min(" + key + ") FROM " + table + ")";
      database.execute("UPDATE " + table + " SET " + column + " = " + changed + " WHERE " + key + " = " + first);
      EXPECT_NE(everything(), before) << table << "." << column;
    }
  }
  EXPECT_GT(columns, 50);
}

TEST_F(ChainTest, TheFirstDifferenceIsNamed) {
  run("a", 4);
  Database database = open("a");
  const BatchRecord stored = read_batch(database, "a", 1);
  ASSERT_GT(stored.inputs.size(), 1U);
  ASSERT_GT(stored.faults.size(), 0U);
  EXPECT_EQ(difference(stored, stored), "");
  BatchRecord now = stored;
  now.inputs[1].record.confidence = 0.25;
  std::string found = difference(stored, now);
  EXPECT_EQ(found.rfind("kept mutant " + std::to_string(stored.inputs[1].record.id) + ": confidence was 0.", 0), 0U)
      << found;
  EXPECT_NE(found.find(" and is 0.25"), std::string::npos) << found;
  now = stored;
  now.faults[0].predicted += 1;
  found = difference(stored, now);
  EXPECT_EQ(found.rfind("fault 1: predicted was", 0), 0U) << found;
  now = stored;
  now.inputs[0].encoded += "x";
  EXPECT_NE(difference(stored, now).find("image"), std::string::npos);
  now = stored;
  now.faults.pop_back();
  EXPECT_NE(difference(stored, now).find("fault"), std::string::npos);
  now = stored;
  now.counters.reexamined += 1;
  EXPECT_NE(difference(stored, now).find("reexamined was"), std::string::npos);
  now = stored;
  now.totals = "other";
  EXPECT_NE(difference(stored, now), "");
}

}  // namespace
}  // namespace galvani
