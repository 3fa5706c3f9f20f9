#include "galvani/base/progress.h"

#include <gtest/gtest.h>

namespace galvani {
namespace {

TEST(ProgressText, BarOnATerminal) {
  EXPECT_EQ(Progress::render("fuzzing", 50, 100, "images", 10, "", 100),
            "fuzzing [############------------]  50% 50/100 images, 5/s, 0:10, ETA 0:10");
  EXPECT_EQ(Progress::render("fuzzing", 0, 100, "images", 0, "", 100),
            "fuzzing [------------------------]   0% 0/100 images, 0/s, 0:00");
  EXPECT_EQ(Progress::render("fuzzing", 100, 100, "images", 4, "loss 0.1", 100),
            "fuzzing [########################] 100% 100/100 images, 25/s, 0:04, loss 0.1");
}

TEST(ProgressText, PlainLineElsewhere) {
  EXPECT_EQ(Progress::render("epoch 1/4", 30000, 60000, "images", 100, "loss 0.31", 0),
            "epoch 1/4  50% 30,000/60,000 images, 300/s, 1:40, ETA 1:40, loss 0.31");
}

TEST(ProgressText, UnknownTotalHasNoShareAndNoEta) {
  EXPECT_EQ(Progress::render("reading", 1234, 0, "files", 10, "", 100), "reading 1,234 files, 123/s, 0:10");
}

TEST(ProgressText, NeverMoreThanTheWidthOrTheWhole) {
  for (int width : {10, 40, 79}) {
    std::string line = Progress::render("title", 5, 10, "images", 1, "a note that is rather long", width);
    EXPECT_LE(line.size(), static_cast<std::size_t>(width - 1));
  }
  // More than was announced: a full bar, no ETA.
  EXPECT_EQ(Progress::render("fuzzing", 17408, 640000, "mutants", 10, "", 61),
            "fuzzing   3% 17,408/640,000 mutants, 1,741/s, 0:10, ETA 5:58");
  // No number is cut in two.
  EXPECT_EQ(Progress::render("fuzzing", 17408, 640000, "mutants", 10, "", 60),
            "fuzzing   3% 17,408/640,000 mutants, 1,741/s, 0:10");
  EXPECT_EQ(Progress::render("fuzzing", 50, 100, "images", 10, "", 60),
            "fuzzing [####-----]  50% 50/100 images, 5/s, 0:10, ETA 0:10");
  EXPECT_EQ(Progress::render("t", 20, 10, "images", 2, "", 200),
            "t [########################] 100% 20/10 images, 10/s, 0:02");
}

TEST(Format, Durations) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(-3), "0:00");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(75), "1:15");
  EXPECT_EQ(format_duration(3700), "1:01:40");
}

TEST(Format, Counts) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(-999), "-999");
}

TEST(Format, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(std::uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16.0 EiB");
}

}  // namespace
}  // namespace galvani
