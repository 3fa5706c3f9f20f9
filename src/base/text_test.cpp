#include "galvani/base/text.h"

#include <gtest/gtest.h>

namespace galvani {
namespace {

TEST(Text, MarkupIsEscaped) {
  EXPECT_EQ(escape_markup("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
}

TEST(Text, MarkupHoldsWhatXmlAllows) {
  const std::string none = "\xef\xbf\xbd";  // U+FFFD
  EXPECT_EQ(escape_markup(std::string_view("a\0\x1b\t\xff", 5)), "a" + none + none + "\t" + none);
  EXPECT_EQ(escape_markup("\xef\xbf\xbe|\xef\xbf\xbf|漢<"), none + "|" + none + "|漢&lt;");
}

TEST(Text, CellsAreQuotedOnlyIfTheyMustBe) {
  EXPECT_EQ(csv_cell("plain text"), "plain text");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell("say \"a\""), "\"say \"\"a\"\"\"");
  EXPECT_EQ(csv_cell("two\nlines"), "\"two\nlines\"");
}

TEST(Text, CellsComeBack) {
  std::vector<std::string> cells = {"", "a,b", "say \"a\"", "plain"};
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  EXPECT_EQ(line, ",\"a,b\",\"say \"\"a\"\"\",plain");
  EXPECT_EQ(split_csv_line(line + "\r"), cells);
}

TEST(Text, CellsAreNoFormulas) {
  EXPECT_EQ(csv_cell("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
  EXPECT_EQ(csv_cell("+1"), "'+1");
  EXPECT_EQ(csv_cell("-cat"), "'-cat");
  EXPECT_EQ(csv_cell("@SUM(1)"), "'@SUM(1)");
  EXPECT_EQ(csv_cell("\tx"), "'\tx");
  EXPECT_EQ(csv_cell("=1,2"), "\"'=1,2\"");
  EXPECT_EQ(csv_cell("a=b"), "a=b");
  EXPECT_EQ(csv_cell("'quoted'"), "'quoted'");
  for (std::string text :
       {"=1", "'=1", "''=1", "'", "''", "'''", "-", "'-", "'a", "=\"1,2\"", "", "\t", "rock 'n' roll", "'\"=\""})
    EXPECT_EQ(split_csv_line("x," + csv_cell(text) + ",y"), (std::vector<std::string>{"x", text, "y"})) << text;
}

TEST(Text, NamesInTablesCannotDriveATerminal) {
  EXPECT_EQ(csv_name("\x1b[31mred\n, \xc2\x9b"), "\"?[31mred?, ?\"");
  EXPECT_EQ(csv_name("=grün"), "'=grün");
  EXPECT_EQ(csv_name(std::string(500, 'x')).size(), 500U);
}

TEST(Text, OneOfAThingIsNotSeveral) {
  EXPECT_EQ(counted(0, "image"), "0 images");
  EXPECT_EQ(counted(1, "image"), "1 image");
  EXPECT_EQ(counted(1234, "image"), "1,234 images");
  EXPECT_EQ(counted(1, "class", "classes"), "1 class");
  EXPECT_EQ(counted(2, "class", "classes"), "2 classes");
}

TEST(ShellWord, IsQuotedWhereAShellWouldReadItOtherwise) {
  EXPECT_EQ(shell_word("photos/cat.png"), "photos/cat.png");
  EXPECT_EQ(shell_word("Bär"), "Bär");
  EXPECT_EQ(shell_word("digits:test[0:9]"), "'digits:test[0:9]'");
  EXPECT_EQ(shell_word("my photos"), "'my photos'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace galvani
