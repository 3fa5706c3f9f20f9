// What a campaign rests on: that is noticed before anything is written when it is not what it was.
#include <gtest/gtest.h>

#include <utility>

#include "fuzz/chain.h"
#include "fuzz/probe.h"
#include "fuzz/rows.h"
#include "fuzz/state.h"
#include "fuzz/store.h"
#include "fuzz/testing_campaign.h"
#include "galvani/fuzz/reader.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;
using testing::CampaignTest;
using testing::error_of;

class EvidenceTest : public CampaignTest {
 protected:
  // What is said, with every row, file and snapshot as it was.
  std::string refused(const std::string& name, const CampaignSettings& settings) {
    auto files_before = files(name);
    std::string rows = dump(name);
    std::string message = error_of([&] { run(name, 100, settings); });
    EXPECT_EQ(dump(name), rows);
    // A reader leaves SQLite's own files beside the store.
    auto now = files(name);
    for (const char* shared : {"campaign.db-wal", "campaign.db-shm", "campaign.lock"}) {
      files_before.erase(shared);
      now.erase(shared);
    }
    EXPECT_EQ(now, files_before);
    return message;
  }
  void change(const std::string& name, const std::string& sql) {
    Database database(folder_ / name / "campaign.db", Database::Mode::write);
    database.execute(sql);
  }
};

TEST_F(EvidenceTest, ARepeatedBatchThatDiffersIsNamedAndNothingIsWritten) {
  CampaignSettings settings = testing::small_settings("random");
  run_and_kill("a", 4, settings);
  // As if it had come out so the first time.
  change("a", "UPDATE inputs SET confidence = 0.125 WHERE id = 23; UPDATE batches SET chain = 'x' WHERE batch = 1");
  std::string message = refused("a", settings);
  EXPECT_NE(message.find("batch 1 does not come out"), std::string::npos) << message;
  EXPECT_NE(message.find("kept mutant 23: confidence was 0.125 and is 0."), std::string::npos) << message;
  EXPECT_TRUE(Snapshots(folder_ / "a", "").batches().empty());
  // A value of the chain that its rows do not come to.
  run_and_kill("b", 4, settings);
  change("b", "UPDATE batches SET chain = 'x' WHERE batch = 2");
  message = refused("b", settings);
  EXPECT_NE(message.find("batch 2"), std::string::npos) << message;
  EXPECT_NE(message.find("store was changed"), std::string::npos) << message;
}

TEST_F(EvidenceTest, ASnapshotOfAnotherStateIsPassedOver) {
  CampaignSettings settings = testing::small_settings("random");
  run("whole", 8, settings);
  run_and_kill("a", 4, settings, 0);
  // With another past the same batch is another one: its snapshot does not fit.
  settings.seed += 1;
  run_and_kill("b", 4, settings, 0);
  settings.seed -= 1;
  for (std::int64_t batch : Snapshots(folder_ / "a", "").batches())
    change("a", "UPDATE batches SET chain = chain || 'x' WHERE batch = " + std::to_string(batch));
  std::string message = refused("a", settings);
  EXPECT_NE(message.find("store was changed"), std::string::npos) << message;
}

TEST_F(EvidenceTest, AnEditedRecordIsNoticedByWriterAndReader) {
  CampaignSettings settings = testing::small_settings();
  settings.generator = "mutate:alpha=0.30000000000000004";
  run("a", 2, settings);
  run("a", 3, settings);
  std::string toml = read_file(folder_ / "a/campaign.toml");
  const std::pair<const char*, const char*> edits[] = {{"micro-batch = 16", "micro-batch = 8"},
                                                       {"seed = '11'", "seed = '12'"},
                                                       {"energy = 8", "energy = 9"},
                                                       {"set=nsgen", "set=deephunter"}};
  for (const auto& [from, to] : edits) {
    std::string edited = toml;
    ASSERT_NE(edited.find(from), std::string::npos) << from << " in " << toml;
    edited.replace(edited.find(from), std::string(from).size(), to);
    write_file(folder_ / "a/campaign.toml", edited);
    EXPECT_NE(refused("a", settings).find("was edited"), std::string::npos) << to;
    EXPECT_NE(error_of([&] { CampaignReader reader(folder_ / "a"); }).find("was edited"), std::string::npos) << to;
  }
  // Where the model was is no part of what the campaign is.
  std::string moved = toml;
  std::size_t path = moved.find("path = '");
  ASSERT_NE(path, std::string::npos);
  moved.insert(path + 8, "/moved");
  write_file(folder_ / "a/campaign.toml", moved);
  run("a", 4, settings);
}

TEST_F(EvidenceTest, AnotherExecutionIsNoticedWithoutRepeatingABatch) {
  CampaignSettings settings = testing::small_settings();
  run("a", 2, settings);  // with a snapshot of its end
  CampaignRecord record = CampaignRecord::from_toml(folder_ / "a/campaign.toml");
  EXPECT_EQ(record.probe.model.size(), 64U);
  EXPECT_EQ(record.probe.generator.size(), 64U);
  auto probe_says = [&](const Probe& then) { return error_of([&] { check_probe(then, record.probe, "a"); }); };
  EXPECT_EQ(probe_says(record.probe), "");
  EXPECT_NE(probe_says({"x", record.probe.generator}).find("the network computes other values"), std::string::npos);
  EXPECT_NE(probe_says({record.probe.model, "x"}).find("the generator computes other values"), std::string::npos);
  // A campaign that was begun where the network computes otherwise.
  for (std::string* value : {&record.probe.model, &record.probe.generator}) {
    std::string here = std::exchange(*value, std::string(64, '0'));
    write_file(folder_ / "a/campaign.toml", record.to_toml());
    change("a", "UPDATE meta SET value = '" + record.identity() + "' WHERE key = 'identity'");
    Database database(folder_ / "a/campaign.db", Database::Mode::write);
    std::string chain = chain_value(read_beginning(database, "a"));
    change("a", "UPDATE batches SET chain = '" + chain + "' WHERE batch = 0");
    std::string message = refused("a", settings);
    EXPECT_NE(message.find("computes other values here"), std::string::npos) << message;
    *value = here;
  }
}

TEST_F(EvidenceTest, AMissingProfileIsCalledThat) {
  CampaignSettings settings = testing::small_settings();
  run("a", 2, settings);
  std::string profile = read_file(folder_ / "a/profile");
  fs::remove(folder_ / "a/profile");
  auto known = subject_.profile;
  subject_.profile = nullptr;
  std::string message = refused("a", settings);
  EXPECT_NE(message.find("a/profile: is missing"), std::string::npos) << message;
  EXPECT_NE(message.find("--train"), std::string::npos) << message;
  EXPECT_NE(message.find("the data itself"), std::string::npos) << "where it came from: " << message;
  subject_.profile = known;
  run("a", 3, settings);
  EXPECT_EQ(read_file(folder_ / "a/profile"), profile);
}

}  // namespace
}  // namespace galvani
