// Texts as the numbers a network was trained on, by the files that come with it: Hugging Face's tokenizer.json, BERT's
// vocab.txt, or vocab.json with merges.txt as GPT-2, RoBERTa and CLIP have them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "semantics/text/normalizer.h"
#include "semantics/text/pieces.h"
#include "semantics/text/splitter.h"

namespace galvani {

// A piece of text that is found before anything else happens to it: "[MASK]".
struct AddedToken {
  std::string text;
  std::int64_t id = 0;
  bool eats_left = false;   // white space before it goes
  bool eats_right = false;  // and behind it
  bool whole_word = false;  // not inside a word
};

// What a tokenizer is made of.
struct TokenizerParts {
  std::vector<AddedToken> added;
  std::vector<TextStep> normalizers;
  std::vector<Splitter> splitters;
  std::unique_ptr<PieceModel> pieces;
  std::vector<std::int64_t> before;  // what stands around every text
  std::vector<std::int64_t> after;
  std::int64_t longest = 0;   // in tokens, with those; 0: no bound is known
  std::int64_t padding = 0;   // what fills up, where a network takes one length only
  bool last_sums_up = false;  // the last token of a text stands for all of it, as in GPT-2 and CLIP
};

class Tokenizer {
 public:
  explicit Tokenizer(TokenizerParts parts);

  // A file of one of the kinds above, or a folder that holds one. `merges`: empty: merges.txt beside vocab.json.
  // Error(bad_input) that names the file for what is missing, damaged or of an unknown kind.
  static Tokenizer load(const std::filesystem::path& path, const std::filesystem::path& merges);

  // With what stands around it, cut to `longest` tokens in all (0: the tokenizer's own bound). May be called by several
  // threads. REQUIRES text is UTF-8.
  std::vector<std::int64_t> encode(const std::string& text, std::int64_t longest = 0) const;

  std::int64_t longest() const { return parts_.longest; }
  std::int64_t padding() const { return parts_.padding; }
  bool last_sums_up() const { return parts_.last_sums_up; }
  const std::map<std::string, std::string>& files_sha256() const { return files_; }

 private:
  void encode_plain(std::string_view text, std::vector<std::int64_t>& ids) const;

  TokenizerParts parts_;
  std::map<std::string, std::string> files_;  // path → SHA-256
};

// tokenizer_json.cpp
TokenizerParts read_tokenizer_json(const std::string& text, const std::string& where);
// tokenizer_files.cpp
TokenizerParts read_vocab_txt(const std::string& text, const std::string& where);
TokenizerParts read_vocab_json(const std::string& vocab_text, const std::string& merges_text, const std::string& where,
                               const std::string& merges_where);

}  // namespace galvani
