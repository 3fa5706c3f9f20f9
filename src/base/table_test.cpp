#include "galvani/base/table.h"

#include <gtest/gtest.h>

#include "galvani/base/error.h"

namespace galvani {
namespace {

TEST(Table, AlignsColumnsByWhatATerminalShows) {
  Table table({"name", ">images", "note"});
  table.add({"zebra", "7", ""});
  table.add({"Bär", "1,234", "two bytes for ä"});
  EXPECT_EQ(table.str(),
            "name   images  note\n"
            "─────  ──────  ───────────────\n"
            "zebra       7\n"
            "Bär     1,234  two bytes for ä\n");
}

TEST(Table, WhatIsInItCannotDriveATerminal) {
  Table table({"name", "note"});
  table.add({"a\x1b[2J\n\xff", "b"});
  EXPECT_EQ(table.str(), "name     note\n───────  ────\na?[2J??  b\n");
}

TEST(Table, WithoutRowsIsItsHeader) {
  EXPECT_EQ(Table({"a", ">bc"}).str(), "a  bc\n─  ──\n");
}

TEST(Table, WithoutTitlesIsItsRows) {
  Table table({"", ">"});
  table.add({"images", "60"});
  table.add({"bad", "5"});
  EXPECT_EQ(table.str(), "images  60\nbad      5\n");
}

TEST(Table, WidestColumnsGiveWayToTheTerminal) {
  Table table({"name", ">images", "what it does"});
  table.add({"ähnlichkeitsmaß", "1,234", "tells how near two images are"});
  table.add({"b", "7", "short"});
  EXPECT_EQ(table.str(0), table.str(200));
  EXPECT_EQ(table.str(40),
            "name             images  what it does\n"
            "───────────────  ──────  ───────────────\n"
            "ähnlichkeitsmaß   1,234  tells how near\n"
            "                         two images are\n"
            "b                     7  short\n");
  EXPECT_EQ(table.str(30),
            "name        images  what it\n"
            "                    does\n"
            "──────────  ──────  ──────────\n"
            "ähnlichke…   1,234  tells how\n"
            "                    near two\n"
            "                    images are\n"
            "b                7  short\n");
}

TEST(Table, NumbersAreNeverCut) {
  Table table({">accuracy", ">1234567890"});
  table.add({"1,234,567", "1,234,567"});
  EXPECT_EQ(table.str(12),
            " accuracy  12345678…\n"
            "─────────  ─────────\n"
            "1,234,567  1,234,567\n");
}

TEST(Table, RefusesARowOfAnotherLength) {
  Table table({"a", "b"});
  EXPECT_THROW(table.add({"1"}), Error);
  EXPECT_THROW(table.add({"1", "2", "3"}), Error);
  EXPECT_EQ(table.str(), Table({"a", "b"}).str());
}

}  // namespace
}  // namespace galvani
