#include "galvani/fuzz/summary.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fuzz/testing.h"
#include "galvani/base/files.h"

namespace galvani {
namespace {

TEST(Summary, PielouEvenness) {
  EXPECT_DOUBLE_EQ(pielou_evenness({5, 5, 5, 5}), 1);
  EXPECT_DOUBLE_EQ(pielou_evenness({20, 0, 0, 0}), 0);
  EXPECT_DOUBLE_EQ(pielou_evenness({0, 0}), 0);
  EXPECT_DOUBLE_EQ(pielou_evenness({}), 0);
  // Two of four classes, evenly: log 2 / log 4.
  EXPECT_DOUBLE_EQ(pielou_evenness({7, 7, 0, 0}), 0.5);
  // 1/2, 1/4, 1/4 of three: (1.5 log 2) / log 3.
  EXPECT_NEAR(pielou_evenness({2, 1, 1}), 0.946394630, 1e-9);
}

TEST(Summary, FiguresForConditions) {
  CampaignSummary summary;
  summary.counters.faults = 3;
  summary.rft = 0.25;
  summary.impartiality = 0.5;
  Figures figures = figures_of(summary);
  for (const char* holds : {"faults>0", "rft<0.3", "oi==0.5", "distinct==0"}) EXPECT_TRUE(Gate(holds).met(figures));
  for (const char* does_not : {"faults>3", "rft<=0.2", "oi!=0.5"}) EXPECT_FALSE(Gate(does_not).met(figures));
}

TEST(Summary, SeedsBrokenByAChangeAreFigures) {
  CampaignSummary summary;
  summary.seeds.tried = 4;
  summary.seeds.smallest = {0.004, 0.05, 0.3};
  Figures figures = figures_of(summary);
  auto broken = [&](int percent) { return Gate(fmt::format("broken-at-{}%>0", percent)).value(figures); };
  for (double step : change_steps())
    EXPECT_EQ(broken(static_cast<int>(std::lround(step * 100))), summary.seeds.broken_by(step)) << step;
  EXPECT_EQ(broken(2), 0.25);
  EXPECT_EQ(broken(5), 0.5);
  EXPECT_EQ(broken(50), 0.75);
  EXPECT_TRUE(Gate("broken-at-5%>49%").met(figures));
}

TEST(Settings, Durations) {
  EXPECT_EQ(parse_duration("90"), 90);
  EXPECT_EQ(parse_duration("90s"), 90);
  EXPECT_EQ(parse_duration("1.5m"), 90);
  EXPECT_EQ(parse_duration("6h"), 21600);
  EXPECT_EQ(parse_duration("1d"), 86400);
  for (const char* wrong : {"", "h", "6x", "-3s", "0", "inf", "1e400"})
    EXPECT_NE(testing::error_of([&] { parse_duration(wrong); }), "") << wrong;
}

TEST(Settings, RecordsComeBackFromToml) {
  TemporaryFolder folder;
  CampaignRecord record;
  record.settings = completed({});
  record.settings.guide = "kmnc:k=1000";
  record.settings.seed = 0xffffffffffffffffULL;
  record.settings.generator = "mutate:set=(nsgen,noise:sigma=60),alpha=0.1";
  record.settings.reset_when_full = true;
  record.model = R"(/some/"odd" \ path.onnx)";
  record.classes = 10;
  record.execution = {32, true, true};
  record.input = record.preprocess.input = "1,28,28";
  record.preprocess.mean = "0.1,0.2,0.30000000000000004";
  write_file(folder / "campaign.toml", record.to_toml());
  CampaignRecord back = CampaignRecord::from_toml(folder / "campaign.toml");
  EXPECT_EQ(back.to_toml(), record.to_toml());
  EXPECT_TRUE(back.differences(record).empty());
  EXPECT_EQ(back.settings.seed, record.settings.seed);
  EXPECT_EQ(back.preprocess.input, "1,28,28");
  CampaignRecord other = record;
  other.settings.guide = "nc";
  other.settings.energy = 7;
  other.model = "elsewhere";
  other.data_sha256 = "x";
  std::vector<std::string> expected = {"guide is kmnc:k=1000 there and nc here", "energy is 64 there and 7 here",
                                       "the data has another content"};
  EXPECT_EQ(record.differences(other), expected);
  CampaignRecord before = record;  // the option snr came later
  before.settings.generator = "mutate:set=nsgen,alpha=0.2,beta=0.4,tries=50,exempt=none,validity=nsgen";
  CampaignRecord after = record;
  after.settings.generator = "mutate:set=nsgen,alpha=0.2,beta=0.4,snr=5,tries=50,exempt=none,validity=nsgen";
  EXPECT_TRUE(before.differences(after).empty());
  after.settings.generator = "mutate:set=nsgen,alpha=0.2,beta=0.4,snr=6,tries=50,exempt=none,validity=nsgen";
  EXPECT_EQ(before.differences(after).size(), 1U);
  EXPECT_TRUE(back.execution.fused);
  // Records of the time before fused layers do not mention them.
  CampaignRecord plain = record;
  plain.execution.fused = false;
  EXPECT_EQ(plain.to_toml().find("fused"), std::string::npos);
  write_file(folder / "plain.toml", plain.to_toml());
  EXPECT_FALSE(CampaignRecord::from_toml(folder / "plain.toml").execution.fused);
  EXPECT_NE(plain.identity(), record.identity());
  EXPECT_EQ(plain.differences(record), std::vector<std::string>{"execution fused is false there and true here"});
  write_file(folder / "bad.toml", "this is not TOML");
  EXPECT_NE(testing::error_of([&] { CampaignRecord::from_toml(folder / "bad.toml"); }).find("is not TOML"),
            std::string::npos);
  write_file(folder / "little.toml", "[settings]\nguide = 3\n");
  EXPECT_NE(testing::error_of([&] { CampaignRecord::from_toml(folder / "little.toml"); }).find("does not say"),
            std::string::npos);
}

TEST(Settings, NamesOfAnyBytesComeBackFromToml) {
  TemporaryFolder folder;
  for (const char* name : {"/a/m\xff.onnx", "/a/100%25.onnx", "/a/\x1b[31m\x7f\xc2\x9b.onnx", "/a/two\nlines\t'\".onnx",
                           "/a/\xef\xbf\xbe.onnx"}) {
    CampaignRecord record;
    record.model = record.data = record.profile = record.style = name;
    write_file(folder / "campaign.toml", record.to_toml());
    CampaignRecord back = CampaignRecord::from_toml(folder / "campaign.toml");
    EXPECT_EQ(back.model, name);
    EXPECT_EQ(back.data, name);
    EXPECT_EQ(back.profile, name);
    EXPECT_EQ(back.style, name);
  }
}

}  // namespace
}  // namespace galvani
