#include <gtest/gtest.h>

#include <regex>

#include "galvani/model/evaluate.h"
#include "listeners.h"

namespace galvani::cli {
namespace {

std::string without_colours(const std::string& text) {
  return std::regex_replace(text, std::regex("\033\\[[0-9;]*m"), "");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = {""};
  for (char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

int columns(const std::string& line) {
  int n = 0;
  for (char c : line) n += (static_cast<unsigned char>(c) & 0xc0U) != 0x80 ? 1 : 0;
  return n;
}

class StatusScreenTest : public ::testing::Test {
 protected:
  StatusScreenTest() {
    record_.model = "/models/lenet5.onnx";
    record_.data = "mnist:test";
    record_.settings = completed({});
    record_.settings.guide = "kmnc:k=100";
    record_.settings.scheduler = "decay:gamma=5,min=0.01";
    status_.record = &record_;
    status_.folder = "run1";
    status_.stage = CampaignStage::running;
    status_.seeds = 1000;
    status_.corpus = 1200;
    status_.never_picked = 300;
    status_.seconds = 100;
    status_.rate = 1234;
    status_.since_fault = 65;
    status_.since_kept = -1;
    status_.tried_seeds = 900;
    status_.broken_seeds = 400;
    status_.counters.iterations = 2000;
    status_.counters.mutants = 128000;
    status_.counters.valid = 64000;
    status_.counters.kept = 200;
    status_.counters.faults = 6400;
    status_.counters.distinct_faults = 5000;
    status_.counters.kept_faults = 50;
    status_.counters.covered = 25;
    status_.counters.coverable = 100;
    for (int i = 0; i <= 10; ++i) {
      TimelinePoint point;
      point.iterations = i * 200;
      point.seconds = i * 10;
      point.covered = 20 + i * 0.5;
      point.coverable = 100;
      point.faults = i * 640;
      status_.history.push_back(point);
    }
    status_.kinds = {{"blur", 100, 90, 1, 3, 0}, {"rotation", 500, 400, 20, 100, 9}};
    for (const char* name : {"zero", "one"}) status_.classes.push_back({name, 10, 10, 1, 1, 1});
    FaultRecord fault;
    fault.label = 0;
    fault.predicted = 1;
    fault.confidence = 0.875;
    fault.rule = "rotation:angle=-12";
    status_.recent = {fault};
  }
  std::string shown(int width = 100, int height = 26) const {
    return without_colours(render_status(status_, width, height));
  }

  CampaignRecord record_;
  CampaignStatus status_;
};

TEST_F(StatusScreenTest, ShowsWhatThereIs) {
  std::string text = shown();
  for (const char* part : {"run1",
                           "lenet5.onnx on mnist:test",
                           "kmnc:k=100",
                           "2,000",
                           "1:40",
                           "1,234",
                           "128,000 50.0% valid",
                           "400 of 900 tried, 44.4%",
                           "6,400 5,000 distinct",
                           "RFT 0.2500",
                           "1:05 ago",
                           "25.00%",
                           "25 of 100",
                           "1,200 1,000 seeds, 200 kept",
                           "300 100 of them seeds",
                           "not in this session",
                           "zero → one",
                           "88%",
                           "rotation:angle=-12",
                           "running"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  // The mutator with the most faults comes first.
  EXPECT_LT(text.find("rotation  "), text.find("blur  "));
}

TEST_F(StatusScreenTest, FillsTheWindowExactly) {
  for (int width : {80, 99, 140, 300}) {
    for (int height : {22, 24, 50}) {
      std::vector<std::string> lines = lines_of(shown(width, height));
      EXPECT_EQ(lines.size(), static_cast<std::size_t>(std::min(height, 26)));
      for (const std::string& line : lines) EXPECT_EQ(columns(line), std::min(width, 140)) << line;
    }
  }
}

TEST_F(StatusScreenTest, ASmallWindowGetsOneLine) {
  for (auto [width, height] : {std::pair{79, 40}, {100, 21}, {5, 5}, {0, 0}}) {
    std::string text = shown(width, height);
    EXPECT_EQ(lines_of(text).size(), 1U);
    EXPECT_LE(columns(text), std::max(1, width));
  }
  EXPECT_NE(shown(79, 10).find("400 of 900 seeds broke, 6,400 faults, coverage 25.00%"), std::string::npos);
}

// 20 iterations and 64 faults a second: the limit that is reached first counts.
TEST_F(StatusScreenTest, EtaOfTheNearestLimit) {
  status_.budget.iterations = 10000;  // 20 a second: 400 s
  EXPECT_NE(shown().find("ETA 6:40"), std::string::npos) << shown();
  EXPECT_NE(shown().find("20% of 10,000 iterations"), std::string::npos) << shown();
  status_.budget.seconds = 160;  // 60 s
  EXPECT_NE(shown().find("ETA 1:00"), std::string::npos) << shown();
  status_.budget.faults = 7040;  // 64 a second: 10 s
  EXPECT_NE(shown().find("ETA 0:10"), std::string::npos) << shown();
  EXPECT_NE(shown().find("91% of 7,040 faults"), std::string::npos) << shown();
}

TEST_F(StatusScreenTest, ScoresThatAreNotANumberAreNamedAndCounted) {
  EXPECT_EQ(shown().find("not a number"), std::string::npos);
  status_.recent[0].predicted = kNotANumber;
  status_.not_a_number = 1234;
  EXPECT_NE(shown().find("zero → not a number"), std::string::npos) << shown();
  EXPECT_NE(shown().find("1,234 not a number"), std::string::npos) << shown();
}

TEST_F(StatusScreenTest, TextFromFilesCannotDrive) {
  status_.classes[1].name = "\033[2J\n\t漢字 long name that goes on";
  record_.data = "\033]0;title\007";
  status_.recent[0].rule = "x\r\n\033[31m\xc2\x9b-\xe2\x80\xae";
  std::string raw = render_status(status_, 100, 26);
  for (char c : {'\r', '\t', '\007'}) EXPECT_EQ(raw.find(c), std::string::npos);
  std::string text = without_colours(raw);
  for (const char* control : {"\033", "\xc2\x9b", "\xe2\x80\xae"}) EXPECT_EQ(text.find(control), std::string::npos);
  for (const std::string& line : lines_of(text)) EXPECT_EQ(columns(line), 100) << line;
}

TEST_F(StatusScreenTest, NothingDoneYet) {
  status_ = CampaignStatus();
  status_.record = &record_;
  EXPECT_NE(shown().find("starting"), std::string::npos);
  EXPECT_NE(shown().find("none yet"), std::string::npos);
}

}  // namespace
}  // namespace galvani::cli
