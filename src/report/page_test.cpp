#include "galvani/report/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "galvani/base/files.h"
#include "report/testing.h"

namespace galvani {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const char* const kHostile = "</script><img src=x onerror=alert(1)>";

std::vector<std::string> hostile_names() {
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back(kHostile + std::to_string(i) + "%JS%&\"'");
  return names;
}

json data_of(const std::string& html) {
  std::string begin = "id=\"data\">";
  std::size_t from = html.find(begin) + begin.size();
  return json::parse(html.substr(from, html.find("</script>", from) - from));
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

class PageTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_folder = new TemporaryFolder("page");
    testing::FuzzedSubject(hostile_names()).fuzz(*shared_folder / "run");
  }
  static void TearDownTestSuite() { delete shared_folder; }
  static CampaignReader reader() { return CampaignReader(*shared_folder / "run"); }
  static TemporaryFolder* shared_folder;
};
TemporaryFolder* PageTest::shared_folder = nullptr;

TEST_F(PageTest, HoldsEveryFaultWithItsLineage) {
  CampaignReader run = reader();
  Page page = make_page(run);
  std::vector<FaultRecord> faults = run.faults();
  ASSERT_GT(faults.size(), 20U);
  EXPECT_EQ(page.shown, static_cast<std::int64_t>(faults.size()));
  json data = data_of(page.html);
  const json& columns = data["faults"];
  for (const auto& [name, column] : columns.items()) EXPECT_EQ(column.size(), faults.size()) << name;
  std::set<std::int64_t> seeds;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    EXPECT_EQ(columns["id"][i], faults[i].id);
    EXPECT_EQ(columns["true"][i], faults[i].label);
    EXPECT_EQ(columns["pred"][i], faults[i].predicted);
    bool first = faults[i].distinct && seeds.insert(faults[i].seed).second;
    EXPECT_EQ(columns["flags"][i], (faults[i].distinct ? 1 : 0) + (faults[i].kept() ? 2 : 0) + (first ? 4 : 0));
    EXPECT_GE(columns["thumb"][i].get<int>(), 0);
    std::vector<std::string> rules;
    for (auto node = columns["node"][i].get<std::int64_t>(); node >= 0; node = data["nodes"][2 * node])
      rules.insert(rules.begin(), data["rules"][data["nodes"][2 * node + 1].get<std::size_t>()]);
    EXPECT_EQ(rules, run.lineage(faults[i]).rules);
  }
}

TEST_F(PageTest, NamesFromFilesCannotBecomeMarkup) {
  std::string html = make_page(reader()).html;
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(data_of(html)["classes"][3], hostile_names()[3]);
  // Nothing that was put in is taken for a place to put something in.
  EXPECT_EQ(count(html, "window.addEventListener(\"hashchange\""), 1U);
}

TEST_F(PageTest, LoadsNothing) {
  std::string html = make_page(reader()).html;
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  for (const char* way : {"src=\"", "@import", "url(", "fetch(", "https://"})
    EXPECT_EQ(html.find(way), std::string::npos) << way;
}

TEST_F(PageTest, CapTakesDistinctFaultsFirstAndSaysSo) {
  CampaignReader run = reader();
  PageOptions options;
  options.most = 7;
  Page page = make_page(run, options);
  EXPECT_EQ(page.shown, 7);
  json data = data_of(page.html);
  for (const json& flags : data["faults"]["flags"]) EXPECT_EQ(flags.get<int>() & 1, 1);
  ASSERT_EQ(data["notes"].size(), 1U);
  EXPECT_NE(data["notes"][0].get<std::string>().find("7 of"), std::string::npos);
  options.most = 0;
  EXPECT_EQ(make_page(run, options).shown, 0);
}

TEST_F(PageTest, IsTheSameEveryTime) {
  EXPECT_EQ(make_page(reader()).html, make_page(reader()).html);
}

TEST_F(PageTest, MissingAndChangedFilesAreShownWithoutPicture) {
  fs::path copy = *shared_folder / "damaged";
  fs::copy(*shared_folder / "run", copy, fs::copy_options::recursive);
  std::vector<FaultRecord> faults = reader().faults();
  fs::remove(copy / faults[0].file);
  fs::copy_file(copy / faults[2].file, copy / faults[1].file, fs::copy_options::overwrite_existing);
  Page page = make_page(CampaignReader(copy));
  std::size_t same = faults[1].sha256 == faults[2].sha256 ? 1U : 2U;
  EXPECT_EQ(page.bad.size(), same);
  json data = data_of(page.html);
  EXPECT_EQ(data["faults"]["thumb"][0], -1);
  EXPECT_NE(data["notes"][0].get<std::string>().find("no picture"), std::string::npos);
}

}  // namespace
}  // namespace galvani
