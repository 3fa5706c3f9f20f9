#include "galvani/data/spec.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/data/dataset.h"

namespace galvani {
namespace {

using Rows = std::vector<std::int64_t>;

Rows rows_of(const std::string& selectors, std::int64_t n = 10) {
  at::Tensor labels = at::arange(n, at::kLong).remainder(3);
  return select_rows(parse_data_specs("digits" + selectors)[0].selectors, labels, {"cat", "dog", "owl"}, "test");
}

TEST(DataSpec, PartsAndCanonicalText) {
  struct Case {
    std::string text;
    std::string source;
    std::string split;
    bool is_path;
    std::string canonical;
  };
  const Case cases[] = {
      {"mnist", "mnist", "", false, "mnist"},
      {"mnist:train", "mnist", "train", false, "mnist:train"},
      {"mnist:test[0:1000]", "mnist", "test", false, "mnist:test[0:1000]"},
      {"digits[:5:1]", "digits", "", false, "digits[:5]"},
      {"digits[::-2]", "digits", "", false, "digits[::-2]"},
      {"digits[80%:]", "digits", "", false, "digits[80%:]"},
      {"digits[sample=10%,seed=3]", "digits", "", false, "digits[sample=10%,seed=3]"},
      {"digits[seed=3,per-class=4]", "digits", "", false, "digits[per-class=4,seed=3]"},
      {"fashion-mnist[class=Ankle boot,T-shirt/top]", "fashion-mnist", "", false,
       "fashion-mnist[class=Ankle boot,T-shirt/top]"},
      {"a/b", "a/b", "", true, "a/b"},
      {"a/b[length=16000][:5]", "a/b", "", true, "a/b[length=16000][:5]"},
      {"x.npz:train[-1]", "x.npz", "train", true, "x.npz:train[-1]"},
      {"./mnist", "./mnist", "", true, "./mnist"},
      {"odd:name/x", "odd:name/x", "", true, "odd:name/x"},
  };
  for (const Case& each : cases) {
    std::vector<DataSpec> specs = parse_data_specs(each.text);
    ASSERT_EQ(specs.size(), 1U) << each.text;
    EXPECT_EQ(specs[0].source, each.source);
    EXPECT_EQ(specs[0].split, each.split);
    EXPECT_EQ(specs[0].is_path, each.is_path);
    EXPECT_EQ(specs[0].str(), each.canonical);
    EXPECT_EQ(parse_data_specs(specs[0].str())[0].str(), each.canonical);
  }
  EXPECT_EQ(parse_data_specs("digits[class=1]+a/b+mnist:train").size(), 3U);
}

TEST(DataSpec, SpacesMayStandAroundThePlus) {
  std::vector<DataSpec> parts = parse_data_specs("digits:test[:5] + digits:train[class=1] ");
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].str(), "digits:test[:5]");
  EXPECT_EQ(parts[1].str(), "digits:train[class=1]");
  TemporaryFolder folder;
  std::string odd = folder / "photos ";
  std::filesystem::create_directory(odd);
  EXPECT_EQ(parse_data_specs(odd)[0].source, odd);
  EXPECT_EQ(parse_data_specs("digits+" + odd)[1].source, odd);
}

TEST(DataSpec, ExistingPathsMayHoldAnyCharacter) {
  TemporaryFolder folder;
  std::string odd = folder / "a+b[1]:c";
  std::filesystem::create_directory(odd);
  std::string plus = folder / "a+b";
  std::filesystem::create_directory(plus);
  EXPECT_EQ(parse_data_specs(odd)[0].source, odd);
  ASSERT_EQ(parse_data_specs(plus + "[:5]").size(), 1U);
  EXPECT_EQ(parse_data_specs(plus + "[:5]")[0].source, plus);
  // Its selection is not its name.
  ASSERT_EQ(parse_data_specs(plus + "[:5]+digits").size(), 2U);
  EXPECT_EQ(parse_data_specs(plus + "[:5]+digits")[0].source, plus);
  EXPECT_EQ(parse_data_specs(plus + "[:5]+digits")[1].source, "digits");
}

TEST(DataSpec, SelectsAsPythonDoes) {
  EXPECT_EQ(rows_of("[2:5]"), (Rows{2, 3, 4}));
  EXPECT_EQ(rows_of("[-3:]"), (Rows{7, 8, 9}));
  EXPECT_EQ(rows_of("[:-7]"), (Rows{0, 1, 2}));
  EXPECT_EQ(rows_of("[::4]"), (Rows{0, 4, 8}));
  EXPECT_EQ(rows_of("[8:100]"), (Rows{8, 9}));
  EXPECT_EQ(rows_of("[8:1:-3]"), (Rows{8, 5, 2}));
  EXPECT_EQ(rows_of("[::-5]"), (Rows{9, 4}));
  EXPECT_EQ(rows_of("[::4503599627370496]"), (Rows{0}));
  EXPECT_EQ(rows_of("[-1]"), (Rows{9}));
  EXPECT_EQ(rows_of("[class=dog]"), (Rows{1, 4, 7}));
  EXPECT_EQ(rows_of("[class=2,cat]"), (Rows{0, 2, 3, 5, 6, 8, 9}));
  EXPECT_EQ(rows_of("[class=dog][1:]"), (Rows{4, 7}));
  EXPECT_EQ(rows_of("[80%:]"), (Rows{8, 9}));
  for (std::int64_t n : {1, 5, 7, 99, 101}) {
    for (const char* share : {"80%", "33.3%", "50%"}) {
      Rows head;
      Rows tail;
      if (n > 1) {
        head = rows_of(std::string("[:") + share + "]", n);
        tail = rows_of(std::string("[") + share + ":]", n);
        EXPECT_EQ(head.size() + tail.size(), static_cast<std::size_t>(n)) << share;
      }
    }
  }
  EXPECT_EQ(rows_of("[:80%]", 5).size() + rows_of("[-20%:]", 5).size(), 5U);
}

TEST(DataSpec, DrawsAreSeededAndDistinct) {
  Rows drawn = rows_of("[sample=50,seed=3]", 100);
  EXPECT_EQ(drawn.size(), 50U);
  EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
  EXPECT_EQ(std::unique(drawn.begin(), drawn.end()), drawn.end());
  EXPECT_EQ(drawn, rows_of("[sample=50,seed=3]", 100));
  EXPECT_NE(drawn, rows_of("[sample=50,seed=4]", 100));
  EXPECT_EQ(rows_of("[per-class=5,seed=1]", 100).size(), 15U);
}

TEST(DataSpec, MistakesNameTheSpec) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "names no data"},
      {"digits+", "names no data"},
      {"mnis", "did you mean 'mnist'"},
      {"digits:", "split such as test"},
      {"digits:dev", "has no split 'dev'"},
      {"digits[", "not closed"},
      {"digits[]", "empty"},
      {"digits[a:b]", "'a' is not a whole number"},
      {"digits[1:2:3:4]", "more than start"},
      {"digits[::0]", "step"},
      {"digits[5%]", "percentage"},
      {"digits[120%:]", "percentage"},
      {"digits[nan%:]", "percentage"},
      {"digits[99999999999999999999:]", "not a whole number"},
      {"digits[sample=0]", "more than 0"},
      {"digits[sample=-5%]", "more than 0"},
      {"digits[sample=99999]", "only 10000"},
      {"digits[samples=5]", "does not belong"},
      {"digits[sample=5,sample=6]", "does not belong"},
      {"digits[seed=5]", "nothing to draw"},
      {"digits[class=]", "no value"},
      {"digits[length=0]", "from 1 to"},
      {"digits[length=5,seed=1]", "no seed"},
      {"digits[length=99999999999]", "from 1 to"},
      {"digits[class=eleven]", "no class 'eleven'"},
      {"digits[0:5][9]", "no image 9"},
      {"digits[5:5]", "leaves no images"},
      {"digits[1:2]x", "follows the closing bracket"},
      {"no/such/path", "no such file"},
  };
  for (const auto& [text, message] : cases) {
    try {
      load_data(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << text << ": " << e.what();
    }
  }
}

}  // namespace
}  // namespace galvani
