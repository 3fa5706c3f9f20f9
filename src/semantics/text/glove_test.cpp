#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/semantics/text_encoder.h"

namespace galvani {
namespace {

std::unique_ptr<TextEncoder> glove_of(const std::filesystem::path& file, const std::string& more = "") {
  return make_text_encoder(Spec::parse("glove:file=" + file.string() + more));
}

class GloveEncoderTest : public ::testing::Test {
 protected:
  GloveEncoderTest() { write_file(folder_ / "g.txt", "the 4 0\ncat 0 2\ndog 0 -1\n"); }
  TemporaryFolder folder_;
};

TEST_F(GloveEncoderTest, WeighsRareWordsMore) {
  auto encoder = glove_of(folder_ / "g.txt", ",centre=false,a=0.1");
  // Zipf's law of three words: 1/2.7, 1/3.7, 1/4.7 of their sum.
  double all = 1 / 2.7 + 1 / 3.7 + 1 / 4.7;
  double the = 0.1 / (0.1 + 1 / 2.7 / all);
  double cat = 0.1 / (0.1 + 1 / 3.7 / all);
  at::Tensor row = encoder->encode({"the CAT"})[0];
  double length = std::hypot(4 * the, 2 * cat);
  EXPECT_NEAR(row[0].item<double>(), 4 * the / length, 1e-6);
  EXPECT_NEAR(row[1].item<double>(), 2 * cat / length, 1e-6);
  EXPECT_EQ(encoder->width(), 2);
  EXPECT_EQ(encoder->files_sha256().size(), 1U);
}

TEST_F(GloveEncoderTest, KnowsNothingOfOtherWords) {
  auto encoder = glove_of(folder_ / "g.txt", ",centre=false");
  at::Tensor rows = encoder->encode({"zebra", "cat zebra", "cat", "cat's", "!"});
  EXPECT_EQ(rows[0].abs().max().item<double>(), 0);
  EXPECT_EQ(rows[4].abs().max().item<double>(), 0);
  EXPECT_TRUE(rows[1].equal(rows[2]));
  EXPECT_TRUE(rows[3].equal(rows[2]));
}

TEST_F(GloveEncoderTest, RemovesWhatAllWordsHaveInCommon) {
  double all = 1 / 2.7 + 1 / 3.7 + 1 / 4.7;
  double x = 4 / 2.7 / all;
  double y = (2 / 3.7 - 1 / 4.7) / all;
  at::Tensor row = glove_of(folder_ / "g.txt")->encode({"cat"})[0];
  double length = std::hypot(-x, 2 - y);
  EXPECT_NEAR(row[0].item<double>(), -x / length, 1e-6);
  EXPECT_NEAR(row[1].item<double>(), (2 - y) / length, 1e-6);
}

TEST_F(GloveEncoderTest, SaysWhatIsWrong) {
  auto refused = [](const std::string& spec) {
    try {
      make_text_encoder(Spec::parse(spec));
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_input);
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refused("glove:file=" + (folder_ / "none").string()).find("none: cannot be read"), std::string::npos);
  const char* now = std::getenv("GALVANI_CACHE");
  std::string before = now == nullptr ? "" : now;
  ::setenv("GALVANI_CACHE", (folder_ / "cache").c_str(), 1);
  EXPECT_EQ(refused("glove"), "glove has not been fetched yet: galvani model get glove");
  EXPECT_EQ(refused("minilm"), "minilm has not been fetched yet: galvani model get minilm");
  if (now == nullptr)
    ::unsetenv("GALVANI_CACHE");
  else
    ::setenv("GALVANI_CACHE", before.c_str(), 1);
}

}  // namespace
}  // namespace galvani
