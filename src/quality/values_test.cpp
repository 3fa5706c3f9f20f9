#include "galvani/quality/values.h"

#include <gtest/gtest.h>

#include <fstream>

#include "galvani/base/error.h"

namespace galvani {
namespace {

class ValuesTest : public ::testing::Test {
 protected:
  std::filesystem::path path_ = std::filesystem::path(::testing::TempDir()) / "values_test.csv";

  void write(const std::string& text) { std::ofstream(path_) << text; }
  std::vector<ValueTest> tested(ValueTestKind kind) { return test_values(read_values(path_, kind), kind, Rng(1)); }
  std::string error(ValueTestKind kind) {
    try {
      read_values(path_, kind);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_input);
      return e.what();
    }
    return "";
  }
};

// Every value of x is below every one of y: the two extreme orders of 20, p = 2/20. Of z none is: p = 2/20 as well, so
// Holm doubles both.
TEST_F(ValuesTest, GroupsOfDifferentSize) {
  write("measure,x,y\nlow,1,4\nlow,2,5\nlow,3,6\nhigh,9,1\nhigh,8,2\nhigh,7,\nhigh,,3\n");
  std::vector<ValueTest> tests = tested(ValueTestKind::u);
  ASSERT_EQ(tests.size(), 2U);
  EXPECT_EQ(tests[0].measure, "low");
  EXPECT_DOUBLE_EQ(tests[0].statistic, 0);
  EXPECT_NEAR(tests[0].p, 0.1, 1e-12);
  EXPECT_NEAR(tests[0].corrected_p, 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(tests[0].effect, 0);
  EXPECT_TRUE(tests[0].exact);
  EXPECT_DOUBLE_EQ(tests[0].mean_a, 2);
  EXPECT_GE(tests[0].interval_a.low, 1);
  EXPECT_LE(tests[0].interval_a.high, 3);
  EXPECT_EQ(tests[1].n_a, 3U);
  EXPECT_EQ(tests[1].n_b, 3U);
  EXPECT_DOUBLE_EQ(tests[1].effect, 1);
}

// Differences 1, 2, 3, -4: ranks of the positive ones 1 + 2 + 3 = 6 of 10.
TEST_F(ValuesTest, Pairs) {
  write("measure,x,y\nm,2,1\nm,4,2\nm,6,3\nm,1,5\n");
  std::vector<ValueTest> tests = tested(ValueTestKind::wilcoxon);
  ASSERT_EQ(tests.size(), 1U);
  EXPECT_DOUBLE_EQ(tests[0].statistic, 6);
  EXPECT_DOUBLE_EQ(tests[0].effect, 0.6);
  EXPECT_NEAR(tests[0].p, 14.0 / 16, 1e-12);  // 7 of the 16 choices of signs reach 6
}

TEST_F(ValuesTest, Correlations) {
  write("measure,x,y\nm,1,1\nm,2,8\nm,3,27\n");
  EXPECT_DOUBLE_EQ(tested(ValueTestKind::spearman)[0].effect, 1);
  EXPECT_NEAR(tested(ValueTestKind::pearson)[0].effect, 26 / std::sqrt(2 * 362.0), 1e-12);
  EXPECT_NE(error(ValueTestKind::point_biserial).find("line 3: '2' is neither 0 nor 1"), std::string::npos);
  write("measure,x,y\nm,0,1\nm,0,2\nm,1,3\nm,1,4\n");
  EXPECT_NEAR(tested(ValueTestKind::point_biserial)[0].effect, 2 / std::sqrt(5.0), 1e-12);
}

TEST_F(ValuesTest, BadFilesAreNamed) {
  write("measure,x,y\nm,1\n");
  EXPECT_NE(error(ValueTestKind::u).find("line 2: has 2 cells"), std::string::npos);
  write("measure,x,y\nm,1,two\n");
  EXPECT_NE(error(ValueTestKind::u).find("'two' is no number"), std::string::npos);
  write("measure,x,y\nm,1,nan\n");
  EXPECT_NE(error(ValueTestKind::u).find("'nan' is no number"), std::string::npos);
  write("measure,x,y\nm,1,\n");
  EXPECT_NE(error(ValueTestKind::wilcoxon).find("a value is missing"), std::string::npos);
  EXPECT_NE(error(ValueTestKind::u).find("has no values of y"), std::string::npos);
  write("measure,x,y\n");
  EXPECT_NE(error(ValueTestKind::u).find("has no values"), std::string::npos);
  EXPECT_THROW(parse_value_test("t"), Error);
}

}  // namespace
}  // namespace galvani
