#include "galvani/fuzz/islands.h"

#include "fuzz/testing_campaign.h"
#include "galvani/fuzz/check.h"
#include "galvani/fuzz/merge.h"
#include "galvani/fuzz/reader.h"

namespace galvani {
namespace {

using testing::error_of;
using testing::small_settings;

class IslandsTest : public testing::CampaignTest {
 protected:
  // Rounds of two batches.
  static CampaignSettings settings(const std::string& guide = "kmnc") {
    CampaignSettings settings = small_settings(guide);
    settings.exchange = 7;
    return settings;
  }
  std::string run_all(const std::string& name, std::int64_t n, const CampaignSettings& settings) {
    return run_islands(folder_ / name, 2, settings, subject_.view(), batches(n), [](const auto&) {});
  }
  std::string both(const std::string& name) { return dump(name + "/island-1") + dump(name + "/island-2"); }
  std::int64_t adopted(const std::string& name) {
    std::int64_t count = 0;
    CampaignReader(folder_ / name).for_each_input([&](const InputRecord& input) {
      count += input.origin != 0 ? 1 : 0;
    });
    return count;
  }
};

TEST_F(IslandsTest, MayStopAndGoOnAtAnyBatch) {
  run_all("whole", 9, settings());
  EXPECT_GT(adopted("whole/island-1"), 0);
  EXPECT_GT(adopted("whole/island-2"), 0);
  for (std::int64_t n : {1, 2, 3, 5, 6, 9}) run_all("cut", n, settings());
  EXPECT_EQ(both("cut"), both("whole"));
}

TEST_F(IslandsTest, OneThatIsAheadWaitsForTheOthers) {
  run_all("whole", 9, settings());
  run_all("cut", 9, settings());
  // As if its machine had lost everything.
  std::filesystem::remove_all(folder_ / "cut" / "island-2");
  run_all("cut", 9, settings());
  EXPECT_EQ(both("cut"), both("whole"));
}

TEST_F(IslandsTest, StartFromAShareOfTheSeedsEach) {
  run_all("a", 4, settings());
  for (std::int64_t island : {1, 2}) {
    std::int64_t picked = 0;
    for (const SeedRecord& seed : CampaignReader(island_folder(folder_ / "a", island)).seeds()) {
      if (seed.picks == 0) continue;
      ++picked;
      EXPECT_EQ(seed.id % 2, island % 2) << seed.id;
    }
    EXPECT_EQ(picked, 10);
  }
  EXPECT_NE(dump("a/island-1"), dump("a/island-2"));
}

TEST_F(IslandsTest, HaveNothingToTellWhereNothingIsMeasured) {
  run_all("a", 6, settings("random"));
  EXPECT_EQ(adopted("a/island-1"), 0);
}

TEST_F(IslandsTest, AreMergedAsOneSoundCampaign) {
  run_all("a", 9, settings());
  merge_islands({folder_ / "a"}, folder_ / "merged");
  CheckReport report = check_campaign(folder_ / "merged");
  EXPECT_TRUE(report.sound()) << (report.damage.empty() ? "" : report.damage.front());
  CampaignReader merged(folder_ / "merged");
  CampaignCounters sum;
  std::int64_t own = 0;
  for (std::int64_t island : {1, 2}) {
    CampaignReader reader(island_folder(folder_ / "a", island));
    sum.faults += reader.counters().faults;
    sum.valid += reader.counters().valid;
    reader.for_each_input([&](const InputRecord& input) { own += input.origin == 0 ? 1 : 0; });
  }
  EXPECT_EQ(merged.counters().faults, sum.faults);
  EXPECT_EQ(merged.counters().valid, sum.valid);
  EXPECT_EQ(merged.counters().kept, own);
  for (const FaultRecord& fault : merged.faults()) {
    CampaignReader there(island_folder(folder_ / "a", fault.origin / kOriginStep));
    EXPECT_EQ(there.fault(fault.origin % kOriginStep).sha256, fault.sha256);
    EXPECT_TRUE(merged.image(fault).defined());
  }
  EXPECT_EQ(CampaignReader(folder_ / "a").counters().faults, sum.faults);
}

TEST_F(IslandsTest, AreMergedOnceEachAndOnlyWithTheirOwn) {
  run_all("a", 2, settings());
  run_all("b", 2, settings("nc"));
  run("alone", 2, small_settings());
  auto said = [&](const std::vector<std::string>& names) {
    std::vector<std::filesystem::path> folders;
    for (const std::string& name : names) folders.push_back(folder_ / name);
    return error_of([&] { merge_islands(folders, folder_ / "x"); });
  };
  EXPECT_NE(said({"a", "a/island-1"}).find("same island"), std::string::npos);
  EXPECT_NE(said({"a/island-1", "b/island-2"}).find("not islands of one run"), std::string::npos);
  EXPECT_NE(said({"alone"}).find("of its own"), std::string::npos);
  EXPECT_NE(said({"nothing"}).find("no such folder"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
  merge_islands({folder_ / "a" / "island-2"}, folder_ / "one");
  EXPECT_TRUE(check_campaign(folder_ / "one").sound());
  EXPECT_NE(error_of([&] { run("one", 9, CampaignReader(folder_ / "one").record().settings); }).find("merged"),
            std::string::npos);
}

TEST(Island, IsANumberOfSoMany) {
  EXPECT_EQ(parse_island("2/4").number, 2);
  EXPECT_EQ(parse_island("2/4").of, 4);
  EXPECT_EQ(parse_island("").of, 1);
  for (const char* wrong : {"2", "0/4", "5/4", "1/0", "a/4", "1/4x", "/", "1/99999"})
    EXPECT_NE(error_of([&] { parse_island(wrong); }).find("--island"), std::string::npos) << wrong;
}

}  // namespace
}  // namespace galvani
