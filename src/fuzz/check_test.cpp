#include "galvani/fuzz/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "fuzz/seal.h"
#include "fuzz/testing.h"
#include "galvani/base/files.h"
#include "galvani/data/image.h"
#include "galvani/fuzz/reader.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

struct Killer : Listener {
  void batch(const CampaignStatus& status, const std::vector<FaultRecord>&) override {
    if (status.counters.batches >= 4) throw std::runtime_error("killed");
  }
};

// Every test damages a copy of one campaign.
class CheckTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared = new TemporaryFolder("check");
    testing::Subject subject;
    CampaignSettings settings = testing::small_settings("random");
    settings.generator = "mutate:set=(nsgen,colour-transfer)";
    Campaign campaign(*shared / "run", settings, {*subject.tracer, subject.data, nullptr, "", nullptr});
    campaign.run(iterations(24), {});
    settings = testing::small_settings("kmnc");
    Campaign(*shared / "profiled", settings, subject.view()).run(iterations(24), {});
    Campaign killed(*shared / "killed", settings, subject.view());
    Killer killer;
    EXPECT_THROW(killed.run(iterations(400), {&killer}), std::runtime_error);
    // As a process that is gone leaves it: batches are in the log.
    fs::copy(*shared / "killed", *shared / "cut", fs::copy_options::recursive);
    ASSERT_GT(fs::file_size(*shared / "cut" / "campaign.db-wal"), 0U);
  }
  static void TearDownTestSuite() { delete shared; }
  static Budget iterations(std::int64_t n) {
    Budget budget;
    budget.iterations = n;
    return budget;
  }

  fs::path copy_of(const std::string& name) {
    fs::path copy = folder_ / ("copy" + std::to_string(copies_++));
    fs::copy(*shared / name, copy, fs::copy_options::recursive);
    return copy;
  }
  CheckReport changed(const std::string& sql) {
    fs::path run = copy_of("run");
    {
      Database database(run / "campaign.db", Database::Mode::write);
      database.execute(sql);
    }
    return check_campaign(run);
  }
  static bool says(const std::vector<std::string>& lines, const std::string& what) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(what) != std::string::npos; });
  }
  static std::string all(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }
  static void expect_damage(const CheckReport& report, const std::string& what) {
    EXPECT_TRUE(says(report.damage, what)) << "'" << what << "' is not in\n" << all(report.damage);
  }
  static CheckedPart part(const CheckReport& report, const std::string& name) {
    for (const CheckedPart& part : report.parts) {
      if (part.name == name) return part;
    }
    ADD_FAILURE() << name;
    return {"", 0, 0};
  }
  static std::map<std::string, std::string> content(const fs::path& folder) {
    std::map<std::string, std::string> result;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) result[entry.path().string()] = read_file(entry.path());
    }
    return result;
  }

  static TemporaryFolder* shared;
  TemporaryFolder folder_;
  int copies_ = 0;
};
TemporaryFolder* CheckTest::shared = nullptr;

TEST_F(CheckTest, WhatACampaignWroteIsSoundAndLeftAlone) {
  for (const std::string name : {"run", "profiled"}) {
    fs::path run = copy_of(name);
    auto before = content(run);
    CheckReport report = check_campaign(run);
    EXPECT_TRUE(report.sound()) << all(report.damage);
    EXPECT_TRUE(report.notes.empty()) << all(report.notes);
    CampaignCounters c = CampaignReader(*shared / name).counters();
    EXPECT_EQ(part(report, "batches").all, 7);
    EXPECT_EQ(part(report, "seeds").all, 20);
    EXPECT_EQ(part(report, "outputs").all, c.kept);
    EXPECT_EQ(part(report, "faults").all, c.faults);
    EXPECT_GT(c.faults, 10);
    EXPECT_GT(part(report, "snapshots").all, 0);
    for (const CheckedPart& p : report.parts) EXPECT_EQ(p.intact, p.all) << p.name;
    EXPECT_EQ(content(run), before) << name;
  }
}

TEST_F(CheckTest, RowsThatWereChangedBreakTheChainOfTheirBatchAlone) {
  CampaignReader reader(*shared / "run");
  FaultRecord fault = reader.faults().at(3);
  std::int64_t batch = (fault.iteration + 3) / 4;
  auto of_batch = reader.timeline();
  std::int64_t faults =
      of_batch.at(static_cast<std::size_t>(batch)).faults - of_batch.at(static_cast<std::size_t>(batch) - 1).faults;
  CheckReport report = changed("UPDATE faults SET confidence = confidence / 2 WHERE id = 4");
  expect_damage(report, "batch " + std::to_string(batch) + " do not fit");
  EXPECT_EQ(part(report, "batches").intact, 6);
  EXPECT_EQ(part(report, "faults").intact, part(report, "faults").all - faults);
  EXPECT_EQ(part(report, "outputs").all - part(report, "outputs").intact,
            of_batch.at(static_cast<std::size_t>(batch)).kept - of_batch.at(static_cast<std::size_t>(batch) - 1).kept);
  expect_damage(changed("UPDATE seeds SET gain = gain + 1 WHERE id = 7"), "batch 0 do not fit");
  expect_damage(changed("INSERT INTO wrong_seeds VALUES(1000, 1, -1, 0, '')"), "batch 0 do not fit");
  expect_damage(changed("UPDATE batches SET reexamined = reexamined + 1 WHERE batch = 2"), "batch 2 do not fit");
  expect_damage(changed("DELETE FROM batches WHERE batch = 3"), "has no batch 3");
  expect_damage(changed("DELETE FROM faults WHERE id = 4"), "do not fit");
  expect_damage(changed("UPDATE seeds SET image = (SELECT image FROM seeds WHERE id = 2) WHERE id = 1"), "seed 1");
}

TEST_F(CheckTest, TotalsClockAndRowsBeyondTheLastBatch) {
  expect_damage(changed("UPDATE picks SET count = count + 1 WHERE id = (SELECT min(id) FROM picks)"), "do not add up");
  expect_damage(changed("UPDATE mutators SET kept = kept - 1 WHERE name = 'rotation'"), "do not add up");
  expect_damage(changed("UPDATE classes SET valid = 0 WHERE label = 1 OR valid > 0"), "do not add up");
  expect_damage(changed("UPDATE clock SET seconds = 0 WHERE batch = 6"), "the clock of batch 6");
  expect_damage(changed("UPDATE clock SET seconds = 9e999 WHERE batch = 4"), "the clock of batch 4");
  expect_damage(changed("DELETE FROM clock WHERE batch = 5"), "clock has 6 rows");
  expect_damage(changed("INSERT INTO faults SELECT id + 100000, input, parent, seed, iteration, slot, rule, affine, "
                        "label, predicted, confidence, is_distinct, sha256, file, origin, unrepeatable, figures, "
                        "metadata, change FROM faults WHERE id = 1"),
                "faults has");
}

TEST_F(CheckTest, AMutantThatItsRuleDoesNotMakeIsNamed) {
  CheckReport report = changed("UPDATE inputs SET rule = 'rotation:angle=17' WHERE id = 23");
  expect_damage(report, "kept mutant 23: is not what its rule, rotation:angle=17, makes");
  report = changed("UPDATE inputs SET rule = 'frobnicate' WHERE id = 24");
  expect_damage(report, "frobnicate");
  fs::path run = copy_of("run");
  CheckOptions options;
  options.lineages = false;
  EXPECT_TRUE(check_campaign(run, options).sound());
}

TEST_F(CheckTest, FilesOfFaults) {
  fs::path run = copy_of("run");
  FaultFilter distinct;
  distinct.distinct_only = true;
  std::vector<FaultRecord> faults = CampaignReader(run).faults(distinct);
  ASSERT_GT(faults.size(), 4U);
  auto path = [&](std::size_t i) { return run / faults[i].file; };
  at::Tensor image = CampaignReader(run).image(faults[0]);
  write_file(path(0), encode_png(image, 9));  // the same pixels
  write_file(path(1), encode_png(255 - image));
  fs::remove(path(2));
  fs::remove(path(3));
  fs::create_symlink(path(4), path(3));
  write_file(run / "faults/notes.txt", "mine");
  write_file(run / "faults/00000001-9-9.png", "mine");
  write_file(run / "faults/99999999-9-9.png", "of a batch that was never stored");
  CheckReport report = check_campaign(run);
  expect_damage(report, faults[0].file + ": has the right values, but is not the file");
  expect_damage(report, faults[1].file + ": holds other pixels");
  expect_damage(report, faults[2].file + ": there is no such file");
  expect_damage(report, faults[3].file + ": is a symbolic link");
  expect_damage(report, "notes.txt: no fault has this file");
  expect_damage(report, "00000001-9-9.png: no fault has this file");
  EXPECT_TRUE(says(report.notes, "1 files with numbers beyond")) << all(report.notes);
  std::int64_t hurt = 0;
  for (const FaultRecord& fault : CampaignReader(run).faults()) {
    for (std::size_t i = 0; i < 4; ++i) hurt += fault.file == faults[i].file ? 1 : 0;
  }
  EXPECT_EQ(part(report, "faults").all - part(report, "faults").intact, hurt);
  EXPECT_EQ(part(report, "batches").intact, 7) << "the store itself is as it was";
  fs::remove_all(run / "faults");
  report = check_campaign(run);
  expect_damage(report, "faults: cannot be read");
  EXPECT_EQ(part(report, "faults").intact, 0);
}

TEST_F(CheckTest, TheRecordSnapshotsAndProfile) {
  fs::path run = copy_of("profiled");
  std::string toml = read_file(run / "campaign.toml");
  auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  write_file(run / "campaign.toml", replaced(toml, "energy = 8", "energy = 9"));
  expect_damage(check_campaign(run), "campaign.toml: was edited");
  write_file(run / "campaign.toml", replaced(toml, "leave it", "LEAVE it"));
  CheckReport report = check_campaign(run);
  expect_damage(report, "campaign.toml: is not what it was");
  EXPECT_EQ(report.damage.size(), 1U) << all(report.damage);
  write_file(run / "campaign.toml", "energy = ");
  EXPECT_NE(testing::error_of([&] { check_campaign(run); }).find("is not TOML"), std::string::npos);
  write_file(run / "campaign.toml", toml);
  EXPECT_TRUE(check_campaign(run).sound());
  for (const std::string name : {"profile", "state/seal", "state/snapshot-00000006"}) {
    ASSERT_TRUE(fs::exists(run / name)) << name;
    std::string bytes = read_file(run / name);
    std::string hurt = bytes;
    hurt[hurt.size() / 2] ^= 4;
    write_file(run / name, hurt);
    expect_damage(check_campaign(run), name + ": its content does not fit its checksum");
    write_file(run / name, bytes);
  }
  fs::remove(run / "profile");
  expect_damage(check_campaign(run), "profile: there is no such file");
  // Of another campaign.
  fs::copy_file(*shared / "run" / "state" / "snapshot-00000006", run / "state" / "snapshot-00000006",
                fs::copy_options::overwrite_existing);
  report = check_campaign(run);
  expect_damage(report, "belongs to another campaign");
  EXPECT_EQ(part(report, "snapshots").all, part(report, "snapshots").intact + 1);
}

TEST_F(CheckTest, BytesBetweenTheRowsAreUnderTheSeal) {
  fs::path run = copy_of("run");
  ASSERT_TRUE(read_seal(run).has_value());
  EXPECT_EQ(read_seal(run)->batch, 6);
  std::string bytes = read_file(run / "campaign.db");
  bytes[95] ^= 1;  // the version of the library that wrote last
  write_file(run / "campaign.db", bytes);
  CheckReport report = check_campaign(run);
  expect_damage(report, "campaign.db: is not what it was");
  EXPECT_EQ(report.damage.size(), 1U) << all(report.damage);
  fs::remove(run / "state/seal");
  report = check_campaign(run);
  EXPECT_TRUE(report.sound()) << all(report.damage);
  EXPECT_TRUE(says(report.notes, "no seal")) << all(report.notes);
}

TEST_F(CheckTest, AKilledCampaignIsSoundAndItsSealStale) {
  for (const std::string name : {"killed", "cut"}) {
    fs::path run = copy_of(name);
    CheckReport report = check_campaign(run);
    EXPECT_TRUE(report.sound()) << all(report.damage);
    EXPECT_EQ(part(report, "batches").all, 5) << name;
    EXPECT_TRUE(says(report.notes, "no seal")) << all(report.notes);
    write_seal(run, 3);
    auto before = content(run);
    report = check_campaign(run);
    EXPECT_TRUE(report.sound()) << all(report.damage);
    EXPECT_TRUE(says(report.notes, "did not end by itself")) << all(report.notes);
    EXPECT_EQ(content(run), before) << name;
  }
}

TEST_F(CheckTest, NotWhileAProcessWorksInTheFolderAndNotElsewhere) {
  testing::Subject subject;
  Campaign campaign(folder_ / "busy", testing::small_settings(), subject.view());
  EXPECT_NE(testing::error_of([&] { check_campaign(folder_ / "busy"); }).find("a process works"), std::string::npos);
  EXPECT_NE(testing::error_of([&] { check_campaign(folder_ / "nowhere"); }).find("no such folder"), std::string::npos);
  fs::create_directory(folder_ / "empty");
  EXPECT_NE(testing::error_of([&] { check_campaign(folder_ / "empty"); }).find("no campaign.toml"), std::string::npos);
  fs::path run = copy_of("run");
  write_file(run / "campaign.db", std::string(5000, 'x'));
  EXPECT_NE(testing::error_of([&] { check_campaign(run); }).find("campaign.db"), std::string::npos);
  fs::remove(run / "campaign.db");
  EXPECT_NE(testing::error_of([&] { check_campaign(run); }).find("campaign.db"), std::string::npos);
}

TEST_F(CheckTest, AStyleSourceThatIsGoneIsSaid) {
  testing::Subject subject;
  Dataset style = load_data("digits:train[0:8]");
  style.name = "no-such-folder";
  CampaignSettings settings = testing::small_settings("random");
  settings.generator = "mutate:set=colour-transfer";
  Campaign(folder_ / "styled", settings, {*subject.tracer, subject.data, nullptr, "", &style}).run(iterations(8), {});
  CheckReport report = check_campaign(folder_ / "styled");
  EXPECT_TRUE(report.sound()) << all(report.damage);
  EXPECT_TRUE(says(report.notes, "not made again")) << all(report.notes);
}

}  // namespace
}  // namespace galvani
