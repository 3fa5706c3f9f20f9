#include "galvani/report/compare.h"

#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "report/testing.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

class CompareTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_folder = new TemporaryFolder("compare");
    testing::FuzzedSubject subject;
    for (const char* guide : {"random", "tknc"}) {
      for (int seed : {1, 2}) subject.fuzz(*shared_folder / (guide + std::to_string(seed)), guide, seed, 16);
    }
    subject.fuzz(*shared_folder / "long", "random", 2, 32);
  }
  static void TearDownTestSuite() { delete shared_folder; }
  static std::vector<fs::path> folders(const std::vector<std::string>& names) {
    std::vector<fs::path> result;
    for (const std::string& name : names) result.push_back(*shared_folder / name);
    return result;
  }
  static bool noted(const Comparison& c, const std::string& what) {
    return std::any_of(c.notes.begin(), c.notes.end(),
                       [&](const std::string& note) { return note.find(what) != std::string::npos; });
  }
  static TemporaryFolder* shared_folder;
};
TemporaryFolder* CompareTest::shared_folder = nullptr;

TEST_F(CompareTest, FiguresForConditions) {
  Comparison c = compare_runs(folders({"random1", "tknc1", "random2", "tknc2"}), GroupBy::guide);
  Figures figures = figures_of(c);
  EXPECT_EQ(Gate("runs>0").value(figures), 4);
  EXPECT_EQ(Gate("groups>0").value(figures), 2);
  EXPECT_EQ(Gate("faults-p>0").value(figures), c.tests[0].corrected_p);
  EXPECT_EQ(Gate("faults-a12>0").value(figures), c.tests[0].a12);
  EXPECT_FALSE(Gate("coverage-p<=1").met(figures)) << "there is no such test";
}

TEST_F(CompareTest, GroupsByGuideAndTestsPairs) {
  Comparison c = compare_runs(folders({"random1", "tknc1", "random2", "tknc2"}), GroupBy::guide);
  ASSERT_EQ(c.groups.size(), 2U);
  EXPECT_EQ(c.groups[0].name, "random");
  EXPECT_EQ(c.groups[0].runs, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(c.groups[1].name, "tknc:k=10");
  double first = static_cast<double>(CampaignReader(*shared_folder / "random1").counters().faults);
  double second = static_cast<double>(CampaignReader(*shared_folder / "random2").counters().faults);
  auto faults = std::find_if(measures().begin(), measures().end(),
                             [](const auto& m) { return std::string_view(m.name) == "faults"; });
  ASSERT_NE(faults, measures().end());
  EXPECT_DOUBLE_EQ(c.groups[0].measured[static_cast<std::size_t>(faults - measures().begin())].mean,
                   (first + second) / 2);
  for (const PairTest& test : c.tests) {
    EXPECT_STRNE(measures()[test.measure].name, "coverage") << "of different criteria";
    EXPECT_EQ(test.corrected_p, test.test.p) << "one pair needs no correction";
  }
  EXPECT_TRUE(noted(c, "no p can be below"));
  EXPECT_FALSE(noted(c, "equally long"));
}

TEST_F(CompareTest, SaysWhatIsWrongWithTheChoice) {
  EXPECT_TRUE(noted(compare_runs(folders({"random1", "random2", "long"}), GroupBy::guide), "same seed"));
  EXPECT_TRUE(noted(compare_runs(folders({"random1", "long"}), GroupBy::guide), "equally long"));
  EXPECT_TRUE(noted(compare_runs(folders({"random1", "tknc1"}), GroupBy::model), "in guide"));
  EXPECT_THROW(compare_runs(folders({"random1"}), GroupBy::guide), Error);
  EXPECT_THROW(compare_runs(folders({"random1", "random1"}), GroupBy::guide), Error);
  EXPECT_THROW(compare_runs(folders({"random1", "nothing"}), GroupBy::guide), Error);
  EXPECT_THROW(parse_group_by("seed"), Error);
}

TEST_F(CompareTest, SettingsNameWhatDiffers) {
  Comparison c = compare_runs(folders({"random1", "tknc1", "tknc2"}), GroupBy::settings);
  ASSERT_EQ(c.groups.size(), 2U);
  EXPECT_EQ(c.groups[1].name, "tknc:k=10");
  EXPECT_EQ(compare_runs(folders({"tknc1", "tknc2"}), GroupBy::settings).groups[0].name, "all");
}

TEST_F(CompareTest, Draws) {
  std::string svg = comparison_svg(compare_runs(folders({"random1", "tknc1"}), GroupBy::guide));
  EXPECT_NE(svg.find("tknc:k=10"), std::string::npos);
  EXPECT_NE(svg.find("Faults among kept mutants"), std::string::npos);
}

}  // namespace
}  // namespace galvani
