#include "galvani/base/nesting.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "galvani/base/error.h"

namespace galvani {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

bool too_deep(const std::string& toml) {
  try {
    check_toml_nesting(toml, "x.toml");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_input);
    EXPECT_STREQ(e.what(), "x.toml: nests deeper than the 200 levels accepted");
    return true;
  }
  return false;
}

TEST(Nesting, EveryWayToNestInTomlIsBounded) {
  for (int n : {100, 100000}) {
    bool deep = n > 200;
    std::string dots = repeated("a.", n) + "a";
    EXPECT_EQ(too_deep(dots + " = 1"), deep);
    EXPECT_EQ(too_deep("x = 1\n[" + dots + "]\n"), deep);
    EXPECT_EQ(too_deep("[[" + dots + "]]\n"), deep);
    EXPECT_EQ(too_deep("x = { " + dots + " = 1 }"), deep);
    EXPECT_EQ(too_deep("x = [\n{ " + dots + " = 1 }]"), deep);
    EXPECT_EQ(too_deep(repeated("\"a b\" . ", n) + "a = 1"), deep);
    EXPECT_EQ(too_deep("x = " + repeated("[", n)), deep);
    EXPECT_EQ(too_deep("x = " + repeated("[\n", n)), deep);
    EXPECT_EQ(too_deep(repeated("a = { ", n)), deep);
    EXPECT_EQ(too_deep("x = '\"'\n" + dots + " = 1 # \""), deep);
    EXPECT_EQ(too_deep("x = \"\\\"\"\n" + dots + " = 1"), deep);
    EXPECT_EQ(too_deep("x = [\"\"\"a\"\"\"\", { " + dots + " = 1 }]"), deep);
    EXPECT_EQ(too_deep("x = \"never closed\n" + dots + " = 1"), deep);
    EXPECT_EQ(too_deep("# it's\n" + dots + " = 1"), deep);
  }
  std::string half = repeated("a.", 120) + "a";
  EXPECT_TRUE(too_deep("[" + half + "]\n" + half + " = 1")) << "a table and its key";
  EXPECT_TRUE(too_deep(half + " = [ { " + half + " = 1 } ]")) << "keys of an inline table";
  EXPECT_TRUE(too_deep(half + " = { b = 1, " + half + " = 1 }"));
}

TEST(Nesting, LongTomlThatIsFlatIsRead) {
  EXPECT_FALSE(too_deep("mean = [" + repeated("0.5, ", 5000) + "0.5]"));
  EXPECT_FALSE(too_deep(repeated("[a.b]\nx = 1.5\n", 5000)));
  EXPECT_FALSE(too_deep(repeated("[[a.b]]\nx = { y.z = 1.5 }\n", 5000)));
  EXPECT_FALSE(too_deep("x = \"" + repeated("a.[{", 5000) + "\""));
  EXPECT_FALSE(too_deep("x = '''\n" + repeated("'a.[{\n", 5000) + "'''\ny = 1"));
  EXPECT_FALSE(too_deep("x = \"\"\"\n" + repeated("\\\"\"a.[{\n", 5000) + "\"\"\"\ny = 1"));
  EXPECT_FALSE(too_deep("# " + repeated("a.[{", 5000)));
}

TEST(Nesting, JsonIsBounded) {
  for (const char* open : {"[", "{\"a\":"}) {
    EXPECT_FALSE(json_nests_too_deep(repeated(open, 100)));
    EXPECT_TRUE(json_nests_too_deep(repeated(open, 100000)));
    EXPECT_TRUE(parse_json<nlohmann::json>(repeated(open, 100000)).is_discarded());
  }
  EXPECT_FALSE(json_nests_too_deep("[" + repeated("[],", 5000) + "[]]"));
  EXPECT_FALSE(json_nests_too_deep("\"" + repeated("\\\"[", 5000) + "\""));
  EXPECT_TRUE(json_nests_too_deep("\"\\\\\"" + repeated("[", 5000)));
  EXPECT_EQ(parse_json<nlohmann::json>("[1, [2]]").dump(), "[1,[2]]");
  EXPECT_TRUE(parse_json<nlohmann::json>("[1, ").is_discarded());
}

}  // namespace
}  // namespace galvani
