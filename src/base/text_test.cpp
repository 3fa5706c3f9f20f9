#include "galvani/base/text.h"

#include <gtest/gtest.h>

namespace galvani {
namespace {

TEST(Text, MarkupIsEscaped) {
  EXPECT_EQ(escape_markup("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
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

}  // namespace
}  // namespace galvani
