#include "semantics/text/tokenizer.h"

#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "semantics/text/unicode.h"

namespace galvani {
namespace {

using TokenIds = std::vector<std::int64_t>;

std::string tokenizer_refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_input);
    return e.what();
  }
  return "nothing was refused";
}

std::vector<std::string> split_by(const Splitter& splitter, const std::string& text) {
  std::vector<icu::UnicodeString> pieces = {from_utf8(text)};
  splitter(pieces);
  std::vector<std::string> result;
  for (const auto& piece : pieces) result.push_back(to_utf8(piece));
  return result;
}

std::string normalised(const TextStep& step, const std::string& text) {
  icu::UnicodeString value = from_utf8(text);
  step(value);
  return to_utf8(value);
}

using WordList = std::vector<std::string>;

TEST(Normalizer, DoesWhatBertDoes) {
  TextStep bert = bert_normalizer({});
  EXPECT_EQ(normalised(bert, "Café\tNAÏVE\x01"), "cafe naive");
  EXPECT_EQ(normalised(bert, "中文a"), " 中  文 a");
  BertNormalization cased;
  cased.lower = cased.strip_accents = false;
  EXPECT_EQ(normalised(bert_normalizer(cased), "Café"), "Café");
  EXPECT_EQ(normalised(to_lower, "ΑΣ"), "ασ");  // no special sigma at the end
  EXPECT_EQ(normalised(unicode_form("nfc"), "e\xCC\x81"), "é");
  EXPECT_EQ(normalised(replace_matches("\\s+", " ", "x"), "a \t b"), "a b");
  EXPECT_EQ(normalised(strip_white(true, false), "  a "), "a ");
}

TEST(Splitter, CutsAsTheFamiliesDo) {
  EXPECT_EQ(split_by(bert_splitter(), "red-ish edges!"), (WordList{"red", "-", "ish", "edges", "!"}));
  EXPECT_EQ(split_by(gpt2_splitter(), "it's  3D, they'll"),
            (WordList{"it", "'s", " ", " 3", "D", ",", " they", "'ll"}));
  EXPECT_EQ(split_by(gpt2_splitter(), "a\nb  "), (WordList{"a", "\n", "b", "  "}));
  EXPECT_EQ(split_by(clip_splitter(), "it's 42!? ok"), (WordList{"it", "'s", "4", "2", "!?", "ok"}));
  EXPECT_EQ(split_by(word_splitter(), "a_b, c--d"), (WordList{"a_b", ",", "c", "--", "d"}));
  EXPECT_EQ(split_by(digit_splitter(true), "ab12"), (WordList{"ab", "1", "2"}));
  EXPECT_EQ(split_by(byte_letters(), " é"), (WordList{"Ġ\xC3\x83\xC2\xA9"}));  // the bytes C3 and A9 as letters
}

TEST(Splitter, MatchesAreJoinedAsAsked) {
  auto at = [](SplitBehavior behavior, bool inverted = false) {
    return split_by(expression_splitter("-", behavior, inverted, "x"), "the-final--countdown");
  };
  EXPECT_EQ(at(SplitBehavior::removed), (WordList{"the", "final", "countdown"}));
  EXPECT_EQ(at(SplitBehavior::isolated), (WordList{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(at(SplitBehavior::merged_with_previous), (WordList{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(at(SplitBehavior::merged_with_next), (WordList{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(at(SplitBehavior::contiguous), (WordList{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(at(SplitBehavior::removed, /*inverted=*/true), (WordList{"-", "-", "-"}));
  EXPECT_EQ(split_by(expression_splitter(escape_expression("a.b"), SplitBehavior::removed, false, "x"), "1a.b2axb"),
            (WordList{"1", "2axb"}));
}

TEST(Expression, ThatIsWrongOrRunsForEverIsRefused) {
  EXPECT_NE(tokenizer_refusal([] {
              expression_splitter("(", SplitBehavior::removed, false, "t.json");
            }).find("t.json: the expression '(' is not understood"),
            std::string::npos);
  Splitter slow = expression_splitter("(a+)+b", SplitBehavior::removed, false, "t.json");
  EXPECT_NE(tokenizer_refusal([&] { split_by(slow, std::string(40, 'a')); }).find("takes too long"), std::string::npos);
}

// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, un 4, ##aff 5, ##able 6, the 7, ##s 8, cat 9, , 10
const char* const kBert = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\nthe\n##s\ncat\n,\n";

TEST(Tokenizer, WordPieceTakesTheLongestPiece) {
  Tokenizer tokenizer(read_vocab_txt(kBert, "vocab.txt"));
  EXPECT_EQ(tokenizer.encode("The cats, unaffable"), (TokenIds{2, 7, 9, 8, 10, 4, 5, 6, 3}));
  // A word that does not come out even is unknown as a whole.
  EXPECT_EQ(tokenizer.encode("unaffab cat"), (TokenIds{2, 1, 9, 3}));
  EXPECT_EQ(tokenizer.encode(""), (TokenIds{2, 3}));
  EXPECT_EQ(tokenizer.encode("cat [SEP] cat"), (TokenIds{2, 9, 3, 9, 3}));
  // What stands around a text stays when it is cut.
  EXPECT_EQ(tokenizer.encode("cat cat cat cat", 4), (TokenIds{2, 9, 9, 3}));
  EXPECT_EQ(tokenizer.encode(std::string(101, 'x')), (TokenIds{2, 1, 3}));
  EXPECT_EQ(tokenizer.padding(), 0);
  EXPECT_FALSE(tokenizer.last_sums_up());
}

TEST(Tokenizer, CapitalsStayWhereTheVocabularyHasThem) {
  std::string cased = std::string(kBert) + "Cat\n";
  EXPECT_EQ(Tokenizer(read_vocab_txt(cased, "v")).encode("Cat cat"), (TokenIds{2, 11, 9, 3}));
}

// Merges in the order of their rank: l+o, lo+w, e+r, Ġ+low, w+er.
const char* const kMerges = "#version: 0.2\nl o\nlo w\ne r\nĠ low\nw er\n";
const char* const kLetters = R"("l":0,"o":1,"w":2,"e":3,"r":4,"Ġ":5,"lo":6,"low":7,"er":8,"Ġlow":9,"wer":10)";

TEST(Tokenizer, BytePairsMergeTheEarliestFirst) {
  std::string vocabulary = std::string("{") + kLetters + R"(,"<|endoftext|>":11})";
  Tokenizer tokenizer(read_vocab_json(vocabulary, kMerges, "vocab.json", "merges.txt"));
  // "lower": l+o, lo+w, e+r; "w er" would need the w that "low" took.
  EXPECT_EQ(tokenizer.encode("lower low"), (TokenIds{7, 8, 9}));
  EXPECT_EQ(tokenizer.encode("ower"), (TokenIds{1, 10}));
  EXPECT_EQ(tokenizer.encode("low<|endoftext|>low"), (TokenIds{7, 11, 7}));
  EXPECT_EQ(tokenizer.encode("lxo"), (TokenIds{0, 1}));  // x has no number, and nothing stands for the unknown
  EXPECT_TRUE(tokenizer.last_sums_up());
  EXPECT_EQ(tokenizer.longest(), 1024);
}

TEST(Tokenizer, RobertaAndClipAreKnownByTheirVocabulary) {
  std::string roberta = std::string("{") + kLetters + R"(,"<s>":11,"</s>":12,"<pad>":13,"<unk>":14,"<mask>":15})";
  Tokenizer first(read_vocab_json(roberta, kMerges, "v", "m"));
  EXPECT_EQ(first.encode("low lower"), (TokenIds{11, 7, 9, 8, 12}));
  EXPECT_EQ(first.encode("low  <mask>"), (TokenIds{11, 7, 15, 12}));  // it eats the blanks before it
  EXPECT_EQ(first.padding(), 13);
  EXPECT_FALSE(first.last_sums_up());

  const char* clip =
      R"({"l":0,"o":1,"w":2,"w</w>":3,"lo":4,"low</w>":5,"e":6,"r</w>":7,"<|startoftext|>":8,"<|endoftext|>":9})";
  Tokenizer second(read_vocab_json(clip, "#version: 0.2\nl o\nlo w</w>\n", "v", "m"));
  EXPECT_EQ(second.encode("LOW   lower"), (TokenIds{8, 5, 4, 2, 6, 7, 9}));
  EXPECT_TRUE(second.last_sums_up());
  EXPECT_EQ(second.longest(), 77);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "low ";
  TokenIds cut = second.encode(many);
  EXPECT_EQ(cut.size(), 77U);
  EXPECT_EQ(cut.back(), 9);
}

const char* const kJson = R"({
  "version": "1.0", "truncation": {"max_length": 6, "strategy": "LongestFirst", "stride": 0},
  "padding": {"pad_id": 3, "pad_token": "[PAD]"},
  "added_tokens": [{"id": 9, "content": "[MASK]", "lstrip": false, "rstrip": true, "single_word": false}],
  "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"},
    {"type": "Replace", "pattern": {"String": "`"}, "content": "b"}]},
  "pre_tokenizer": {"type": "WhitespaceSplit"},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<A>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "<B>", "type_id": 0}}],
    "special_tokens": {"<A>": {"id": "<A>", "ids": [7], "tokens": ["<A>"]}, "<B>": {"id": "<B>", "ids": [8], "tokens": ["<B>"]}}},
  "model": {"type": "BPE", "unk_token": "?", "fuse_unk": true, "vocab": {"?": 0, "a": 1, "b": 2, "ab": 4, "é": 5},
            "merges": [["a", "b"]]}})";

TEST(TokenizerJson, IsAPipeline) {
  Tokenizer tokenizer(read_tokenizer_json(kJson, "t.json"));
  EXPECT_EQ(tokenizer.encode("AB a"), (TokenIds{7, 4, 1, 8}));
  EXPECT_EQ(tokenizer.encode("á` xyz"), (TokenIds{7, 4, 0, 8}));         // unknown letters in a row are one
  EXPECT_EQ(tokenizer.encode("a[MASK]  b"), (TokenIds{7, 1, 9, 2, 8}));  // it eats the blanks behind it
  EXPECT_EQ(tokenizer.encode("a b a b a b"), (TokenIds{7, 1, 2, 1, 2, 8}));
  EXPECT_EQ(tokenizer.padding(), 3);
}

TEST(TokenizerJson, IsRefusedForWhatItCannotDo) {
  std::string whole = kJson;
  auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = whole;
    changed.replace(changed.find(from), from.size(), to);
    return tokenizer_refusal([&] { read_tokenizer_json(changed, "t.json"); });
  };
  EXPECT_EQ(with("\"type\": \"BPE\"", "\"type\": \"Unigram\""),
            "t.json: a model of the kind 'Unigram' is not supported");
  EXPECT_EQ(with("WhitespaceSplit", "Metaspace"), "t.json: a pre-tokenizer of the kind 'Metaspace' is not supported");
  EXPECT_EQ(with("\"NFD\"", "\"Odd\""), "t.json: a normalizer of the kind 'Odd' is not supported");
  EXPECT_NE(with("\"vocab\"", "\"vocabulary\"").find("t.json: is not a tokenizer as expected"), std::string::npos);
  EXPECT_NE(with("\"max_length\": 6", "\"max_length\": -6").find("'max_length' is -6"), std::string::npos);
  EXPECT_EQ(tokenizer_refusal([&] { read_tokenizer_json(whole.substr(0, whole.size() / 2), "t.json"); }),
            "t.json: is no JSON; it may be cut short");
}

// Whatever is cut off or changed, there is a sentence or a tokenizer, never anything worse.
TEST(TokenizerJson, SurvivesDamage) {
  std::string whole = kJson;
  for (std::size_t i = 0; i < whole.size(); i += 3) {
    std::string changed = whole;
    changed[i] = changed[i] == '1' ? '"' : '1';
    try {
      Tokenizer(read_tokenizer_json(changed, "t.json")).encode("a b ab [MASK] xyz");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_input);
    }
  }
}

TEST(Tokenizer, FilesAreKnownByTheirContent) {
  TemporaryFolder folder;
  write_file(folder / "vocab.txt", kBert);
  EXPECT_EQ(Tokenizer::load(folder.path(), "").encode("cat"), (TokenIds{2, 9, 3}));
  write_file(folder / "vocab.json", std::string("{") + kLetters + R"(,"<|endoftext|>":11})");
  EXPECT_NE(tokenizer_refusal([&] { Tokenizer::load(folder.path(), ""); }).find("merges.txt"), std::string::npos);
  write_file(folder / "merges.txt", kMerges);
  Tokenizer two = Tokenizer::load(folder.path(), "");
  EXPECT_EQ(two.encode("low"), (TokenIds{7}));
  EXPECT_EQ(two.files_sha256().size(), 2U);
  write_file(folder / "tokenizer.json", kJson);
  EXPECT_EQ(Tokenizer::load(folder.path(), "").encode("ab"), (TokenIds{7, 4, 8}));

  EXPECT_NE(tokenizer_refusal([&] { Tokenizer::load(folder / "none.json", ""); }).find("none.json"), std::string::npos);
  write_file(folder / "empty", "");
  EXPECT_NE(tokenizer_refusal([&] { Tokenizer::load(folder / "empty", ""); }).find("is empty"), std::string::npos);
  write_file(folder / "bytes", "\xff\xfe");
  EXPECT_NE(tokenizer_refusal([&] { Tokenizer::load(folder / "bytes", ""); }).find("is no text in UTF-8"),
            std::string::npos);
  write_file(folder / "words.txt", "cat\ndog\n");
  EXPECT_NE(tokenizer_refusal([&] { Tokenizer::load(folder / "words.txt", ""); }).find("it has no '[CLS]'"),
            std::string::npos);
  write_file(folder / "merges.txt", "l\n");
  EXPECT_NE(tokenizer_refusal([&] { Tokenizer::load(folder / "vocab.json", ""); }).find("merges.txt: line 1"),
            std::string::npos);
  write_file(folder / "half.json", R"({"l":0,"o")");
  EXPECT_NE(tokenizer_refusal([&] {
              Tokenizer::load(folder / "half.json", folder / "merges.txt");
            }).find("half.json: is no JSON"),
            std::string::npos);
  write_file(folder / "nothing.json", "{}");
  EXPECT_NE(tokenizer_refusal([&] {
              Tokenizer::load(folder / "nothing.json", "");
            }).find("nothing.json: is neither a tokenizer, which has a model, nor a vocabulary"),
            std::string::npos);
  std::filesystem::create_directory(folder / "void");
  EXPECT_NE(tokenizer_refusal([&] { Tokenizer::load(folder / "void", ""); }).find("holds no tokenizer.json"),
            std::string::npos);
}

}  // namespace
}  // namespace galvani
