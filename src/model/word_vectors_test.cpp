#include "galvani/model/word_vectors.h"

#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;

std::vector<double> vector_of(const WordVectors& vectors, const std::string& word) {
  std::vector<double> sum(static_cast<std::size_t>(vectors.width()));
  std::int64_t rank = vectors.rank(word);
  if (rank >= 0) vectors.add_to(rank, 1, sum.data());
  return sum;
}

TEST(WordVectors, OfGloveAndFastText) {
  TemporaryFolder folder;
  write_file(folder / "glove.txt", "the 1 -0.5\n. . . 3 4\ncat 0.25 2e-1\r\nthe 9 9\n");
  auto glove = WordVectors::load(folder / "glove.txt");
  EXPECT_EQ(glove->width(), 2);
  EXPECT_EQ(glove->size(), 4);
  EXPECT_EQ(vector_of(*glove, "the"), (std::vector<double>{1, -0.5}));  // the first counts
  EXPECT_EQ(vector_of(*glove, ". . ."), (std::vector<double>{3, 4}));
  EXPECT_EQ(glove->rank("cat"), 2);
  EXPECT_NEAR(vector_of(*glove, "cat")[1], 0.2, 1e-4);  // float16
  EXPECT_EQ(glove->rank("dog"), -1);
  EXPECT_EQ(glove->sha256(), sha256_file(folder / "glove.txt"));

  write_file(folder / "fast.vec", "4 2\nthe 1 2 \ncat 3 4 \n  7 8 \ndog 5 6 \n");
  auto fast = WordVectors::load(folder / "fast.vec");
  EXPECT_EQ(fast->size(), 3);
  EXPECT_EQ(vector_of(*fast, "dog"), (std::vector<double>{5, 6}));
  EXPECT_EQ(WordVectors::load(folder / "fast.vec", 2)->rank("dog"), -1);
}

TEST(WordVectors, CompactFile) {
  TemporaryFolder folder;
  WordVectors::Builder builder(3);
  const float one[] = {1, 2, 3};
  const float two[] = {-1, 0.5, 1024};
  builder.add("the", one);
  builder.add("é", two);
  builder.save(folder / "w");
  auto vectors = WordVectors::load(folder / "w");
  EXPECT_EQ(vectors->word(1), "é");
  EXPECT_EQ(vector_of(*vectors, "é"), (std::vector<double>{-1, 0.5, 1024}));
  std::string bytes = read_file(folder / "w");
  for (std::size_t n = 0; n < bytes.size(); n += 7) {
    write_file(folder / "cut", bytes.substr(0, n));
    EXPECT_NE(error_of([&] { WordVectors::load(folder / "cut"); }).find("cut: "), std::string::npos) << n;
    std::string changed = bytes;
    changed[n] = static_cast<char>(changed[n] ^ 4);
    write_file(folder / "cut", changed);
    EXPECT_NE(error_of([&] { WordVectors::load(folder / "cut"); }).find("cut: "), std::string::npos) << n;
  }
}

TEST(WordVectors, SayWhatIsWrong) {
  TemporaryFolder folder;
  auto refused = [&](const std::string& text) {
    write_file(folder / "v", text);
    std::string what = error_of([&] { WordVectors::load(folder / "v"); });
    return what.substr(what.find("v: ") + 3);
  };
  EXPECT_EQ(refused(""), "is empty");
  EXPECT_NE(refused("hello\n").find("holds no word vectors"), std::string::npos);
  EXPECT_NE(refused("a story of words\n").find("holds no word vectors"), std::string::npos);
  EXPECT_EQ(refused("the 1 2\ncat 1\n"), "line 2 is not a word and 2 numbers");
  EXPECT_EQ(refused("the 1 2\ncat 1 nan\n"), "line 2 is not a word and 2 numbers");
  EXPECT_EQ(refused("3 2\nthe 1 2\n"), "is cut short: it says 3 words and has 1 lines of them");
  EXPECT_NE(error_of([&] { WordVectors::load(folder / "none"); }).find("none: cannot be read"), std::string::npos);
  EXPECT_NE(error_of([&] { WordVectors::load(folder.path()); }).find("is a folder"), std::string::npos);
}

}  // namespace
}  // namespace galvani
