#include "fuzz/folder.h"

#include <gtest/gtest.h>

#include "fuzz/testing_campaign.h"
#include "galvani/fuzz/reader.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;
using testing::CampaignTest;
using testing::error_of;

class FolderTest : public CampaignTest {
 protected:
  // What a campaign says about a folder, which must be as it was after that.
  std::string refused(const std::string& name) {
    auto before = files(name);
    std::string message = error_of([&] { run(name, 1, testing::small_settings()); });
    EXPECT_EQ(files(name), before);
    return message;
  }
  void put(const std::string& path, const std::string& content) {
    fs::create_directories((folder_ / path).parent_path());
    write_file(folder_ / path, content);
  }
  // A folder in which a start was cut off.
  void begin(const std::string& name) {
    FolderLock lock(folder_ / name);
    begin_folder(folder_ / name);
  }
};

TEST_F(FolderTest, WhatIsNotOursIsLeftAlone) {
  const std::pair<const char*, const char*> cases[] = {
      {"thesis.tex", "years of work"},
      {"faults/cat.png", "an exported image"},
      {"faults/00000001-3-5.png", "an exported image"},
      {".profile", "export EDITOR=vi"},
      {"profile", "the user's"},
      {"profile/me.txt", "the user's"},
      {"state/texas.csv", "the user's"},
      {".campaign-notes", "the user's"},
      {"campaign.db", "the user's"},
      {"campaign.db-journal", "the user's"},
      {"campaign.begun", "the user's own file of this name"},
      {"campaign.lock", "the user's own file of this name"},
      {"campaign.lock", "2024-01-01"},
  };
  int n = 0;
  for (const auto& [path, content] : cases) {
    std::string name = "f" + std::to_string(n++);
    put(name + "/" + path, content);
    std::string found = fs::path(path).begin()->string();
    EXPECT_NE(refused(name).find(found), std::string::npos) << path;
    // Nor are they ours where a start was cut off, unless it makes files of this name.
    name += "-begun";
    begin(name);
    bool same_name = std::string(path) == "campaign.db" || std::string(path) == "campaign.db-journal";
    if (same_name) continue;
    put(name + "/" + path, content);
    if (std::string(path) == "profile") {
      // The campaign's own may be there: which it is shows when that is made.
      std::string message = error_of([&] { run(name, 1, testing::small_settings()); });
      EXPECT_NE(message.find("profile: is not what"), std::string::npos) << message;
      EXPECT_EQ(read_file(folder_ / name / path), content);
      continue;
    }
    EXPECT_NE(refused(name).find(found), std::string::npos) << path;
  }
  fs::create_directory(folder_ / "linked");
  put("elsewhere/cat.png", "an image");
  begin("linked");
  fs::remove(folder_ / "linked/faults");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "linked/faults");
  EXPECT_NE(refused("linked").find("faults"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / "elsewhere/cat.png"));
}

TEST(FolderLock, GoesWithWhatItMade) {
  TemporaryFolder place;
  auto names = [&](const fs::path& folder) {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename().string());
    return found;
  };
  { FolderLock lock(place / "refused"); }
  EXPECT_TRUE(names(place / "").empty());
  {
    FolderLock lock(place / "begun");
    write_file(place / "begun/other", "something");
  }
  EXPECT_EQ(names(place / "begun").size(), 2U);
  fs::create_directory(place / "mine");
  { FolderLock lock(place / "mine"); }
  EXPECT_TRUE(fs::exists(place / "mine") && names(place / "mine").empty());
  write_file(place / "mine/campaign.lock", "");
  { FolderLock lock(place / "mine"); }
  EXPECT_EQ(names(place / "mine"), std::vector<std::string>{"campaign.lock"});
}

TEST_F(FolderTest, ACampaignWithoutItsRecordIsLeftAlone) {
  run("a", 3, testing::small_settings("random"));
  std::string toml = read_file(folder_ / "a/campaign.toml");
  fs::remove(folder_ / "a/campaign.toml");
  EXPECT_NE(refused("a").find("campaign.toml"), std::string::npos);
  write_file(folder_ / "a/campaign.toml", toml);
  run("a", 4, testing::small_settings("random"));
  EXPECT_EQ(CampaignReader(folder_ / "a").counters().batches, 4);
}

TEST_F(FolderTest, AStartThatWasCutOffIsBegunAgain) {
  CampaignSettings settings = testing::small_settings();
  run("whole", 2, settings);
  // In the order in which they come to be.
  const std::pair<const char*, const char*> steps[] = {
      {"campaign.lock", ""},
      {"campaign.begun", ""},
      {"campaign.begun", "galvani: a camp"},
      {"", ""},  // the marker is written
      {"campaign.db", ""},
      {"campaign.db-journal", "half"},
      {"campaign.db", "half"},
      {"campaign.db-wal", "half"},
      {"campaign.db-shm", "half"},
      {"state/new/.profile.a1b2c3", "half"},
      {"state/new/profile", "whole"},
      {"state/new/.campaign.toml.a1b2c3", "half"},
      {"state/new/campaign.toml", "whole"},
  };
  for (std::size_t killed = 0; killed <= std::size(steps); ++killed) {
    std::string name = "k" + std::to_string(killed);
    for (std::size_t i = 0; i < killed; ++i) {
      auto [path, content] = steps[i];
      if (*path == '\0') {
        begin(name);
      } else {
        put(name + "/" + path, content);
      }
    }
    run(name, 2, settings);
    EXPECT_EQ(dump(name), dump("whole")) << killed;
    EXPECT_FALSE(fs::exists(folder_ / name / "campaign.begun"));
    EXPECT_TRUE(fs::is_empty(folder_ / name / "state/new"));
  }
  // Between the record's move and the end of the beginning.
  begin("late");
  std::string marker = read_file(folder_ / "late/campaign.begun");
  fs::copy(folder_ / "whole", folder_ / "moved", fs::copy_options::recursive);
  write_file(folder_ / "moved/campaign.begun", marker);
  run("moved", 3, settings);
  EXPECT_FALSE(fs::exists(folder_ / "moved/campaign.begun"));
}

TEST_F(FolderTest, FilesOfFaultsAreNeverDeletedOrOverwritten) {
  CampaignSettings settings = testing::small_settings("random");
  run("whole", 6, settings);
  std::vector<FaultRecord> faults = CampaignReader(folder_ / "whole").faults();
  run_and_kill("a", 2, settings);
  std::size_t done = CampaignReader(folder_ / "a").faults().size();
  ASSERT_LT(done + 1, faults.size());
  // A file of the user's, and one where the next fault's will be.
  put("a/faults/99999999-1-2.png", "never stored");
  const FaultRecord& next = faults[done];
  ASSERT_TRUE(next.distinct);
  put("a/" + next.file, "not a fault");
  std::string message = error_of([&] { run("a", 6, settings); });
  EXPECT_NE(message.find(next.file), std::string::npos) << message;
  EXPECT_EQ(read_file(folder_ / "a" / next.file), "not a fault");
  // Once it is moved away the campaign goes on, with that file in its place.
  fs::remove(folder_ / "a" / next.file);
  run("a", 6, settings);
  EXPECT_EQ(dump("a"), dump("whole"));
  auto expected = files("whole/faults");
  expected["99999999-1-2.png"] = sha256("never stored");
  EXPECT_EQ(files("a/faults"), expected);
  // The same file already in its place, left by a power failure that took the row, is what was wanted.
  run_and_kill("b", 2, settings);
  fs::copy_file(folder_ / "whole" / next.file, folder_ / "b" / next.file);
  run("b", 6, settings);
  EXPECT_EQ(dump("b"), dump("whole"));
}

// Killed after the rows were stored and before the files were moved, or before the rows were.
TEST_F(FolderTest, FilesOnTheirWayArriveOrGo) {
  CampaignSettings settings = testing::small_settings("random");
  run("whole", 6, settings);
  run("a", 4, settings);
  std::vector<FaultRecord> faults = CampaignReader(folder_ / "whole").faults();
  std::vector<FaultRecord> stored = CampaignReader(folder_ / "a").faults();
  ASSERT_LT(stored.size(), faults.size());
  fs::path staged = folder_ / "a/state/new";
  fs::path last = fs::path(stored.back().file).filename();
  fs::rename(folder_ / "a" / stored.back().file, staged / last);
  fs::path next = fs::path(faults[stored.size()].file).filename();
  fs::copy_file(folder_ / "whole/faults" / next, staged / next);
  write_file(staged / fs::path(stored.front().file).filename(), "half");
  write_file(staged / "mine.txt", "not the campaign's");
  run("a", 4, settings);
  EXPECT_TRUE(fs::exists(folder_ / "a" / stored.back().file));
  EXPECT_FALSE(fs::exists(folder_ / "a/faults" / next));
  EXPECT_EQ(files("a/state/new"), (std::map<std::string, std::string>{{"mine.txt", sha256("not the campaign's")}}));
  run("a", 6, settings);
  EXPECT_EQ(files("a/faults"), files("whole/faults"));
}

}  // namespace
}  // namespace galvani
