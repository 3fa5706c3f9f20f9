#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/semantics/text_encoder.h"
#include "semantics/text/words.h"

namespace galvani {
namespace {

std::unique_ptr<TextEncoder> make(const std::string& spec) {
  return make_text_encoder(Spec::parse(spec));
}

double alike(TextEncoder& encoder, const std::string& a, const std::string& b) {
  at::Tensor rows = encoder.encode({a, b});
  return cosine(rows[0], rows[1]);
}

TEST(Words, AreRunsOfLettersAndDigitsInLowerCase) {
  EXPECT_EQ(words_of("A photo of a Cat, with red-ish EDGES!"),
            (std::vector<std::string>{"a", "photo", "of", "a", "cat", "with", "red", "ish", "edges"}));
  EXPECT_EQ(words_of("Don't stop 'now' 3D"), (std::vector<std::string>{"don't", "stop", "now", "3d"}));
  EXPECT_EQ(words_of("ÉCOLE Straße"), (std::vector<std::string>{"école", "straße"}));
  EXPECT_TRUE(words_of(" -- ").empty());
}

TEST(Words, ThatHoldASentenceTogether) {
  for (const char* word : {"a", "of", "with", "the", "which"}) EXPECT_TRUE(is_function_word(word)) << word;
  for (const char* word : {"cat", "edge", "", "zebra"}) EXPECT_FALSE(is_function_word(word)) << word;
}

TEST(HashEncoder, SharedWordsAndStemsAreNear) {
  auto encoder = make("hash");
  double same = alike(*encoder, "a photo of a cat", "A photo of a cat.");
  double stem = alike(*encoder, "a photo of a cat", "photos of the cats");
  double half = alike(*encoder, "a photo of a cat", "a photo of a truck");
  double none = alike(*encoder, "a photo of a cat", "blue sky");
  EXPECT_NEAR(same, 1, 1e-6);
  EXPECT_GT(stem, 0.3);
  EXPECT_LT(stem, same);
  // One of the two words that count is the same.
  EXPECT_NEAR(half, 0.5, 0.12);
  EXPECT_NEAR(none, 0, 0.15);
}

TEST(HashEncoder, AWordWeighsTheSameWhateverItsLength) {
  auto encoder = make("hash:width=4096");
  EXPECT_NEAR(alike(*encoder, "ox extraordinarily", "ox"), 0.7071, 0.04);
  EXPECT_NEAR(alike(*encoder, "ox extraordinarily", "extraordinarily"), 0.7071, 0.04);
}

TEST(HashEncoder, FunctionWordsCountLittle) {
  EXPECT_GT(alike(*make("hash"), "a cat of the house", "cat house"), 0.95);
  EXPECT_LT(alike(*make("hash:function-words=1"), "a cat of the house", "cat house"), 0.8);
  EXPECT_EQ(alike(*make("hash:function-words=0"), "a cat of the house", "the cat in a house"), 1);
}

TEST(HashEncoder, IsTheSameOnEveryMachine) {
  // "<a>" has no shorter pieces; its signs by FNV-1a and SplitMix64 come from a Python program.
  constexpr std::uint64_t kSigns = 0x87774478a0c806e2U;
  at::Tensor row = make("hash:width=64,function-words=1")->encode({"a"})[0];
  for (int d = 0; d < 64; ++d)
    EXPECT_NEAR(row[d].item<double>(), ((kSigns >> d) & 1U) != 0 ? 0.125 : -0.125, 1e-7) << d;
}

TEST(TextEncoder, EncodesEveryDistinctTextOnce) {
  auto encoder = make("hash");
  at::Tensor rows = encoder->encode({"cat", "dog", "cat", ""});
  EXPECT_EQ(rows.sizes(), (std::vector<std::int64_t>{4, encoder->width()}));
  EXPECT_TRUE(rows[0].equal(rows[2]));
  EXPECT_EQ(encoder->kept(), 2U);
  EXPECT_NEAR(rows[0].norm().item<double>(), 1, 1e-6);
  EXPECT_EQ(rows[3].abs().max().item<double>(), 0);
  EXPECT_EQ(cosine(rows[0], rows[3]), 0);
  EXPECT_TRUE(encoder->encode({"dog"})[0].equal(rows[1]));
  EXPECT_EQ(encoder->kept(), 2U);
  EXPECT_EQ(encoder->encode({}).sizes(), (std::vector<std::int64_t>{0, encoder->width()}));
}

TEST(TextEncoder, SaysWhatIsWrong) {
  EXPECT_EQ(make("hash")->spec(), "hash:width=512,function-words=0.1");
  EXPECT_THROW(make("hash")->encode({"\xff"}), Error);
  try {
    make("hsh");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "there is no text encoder called 'hsh'; did you mean 'hash'?");
  }
}

}  // namespace
}  // namespace galvani
