// Words into pieces of a vocabulary, by number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace galvani {

using Vocabulary = std::unordered_map<std::string, std::int64_t>;

class PieceModel {
 public:
  virtual ~PieceModel() = default;
  // Appends the numbers of the word's pieces. `word` is UTF-8.
  virtual void add(const std::string& word, std::vector<std::int64_t>& ids) const = 0;
};

// BERT's: the longest piece that begins the word, then the longest continuation ("##ing"), and so on; a word that does
// not come out even is unknown as a whole.
struct WordPieceRules {
  std::string continuation = "##";
  std::int64_t unknown = 0;
  std::int64_t longest = 100;  // words of more characters are unknown
};
std::unique_ptr<PieceModel> word_pieces(Vocabulary vocabulary, const WordPieceRules& rules);

// Byte-pair encoding: letters, of which the pair that was merged earliest in training is joined, again and again.
struct BytePairRules {
  std::string word_end;       // put behind a word's last letter: "</w>"
  std::string continuation;   // put before all but the first
  std::int64_t unknown = -1;  // -1: letters that are not in the vocabulary are left out
  bool join_unknown = false;  // unknown letters in a row are one
  bool bytes = false;         // an unknown letter becomes "<0xC3>" and so on
  bool whole_words = false;   // a word that is in the vocabulary is taken as it is
};
std::unique_ptr<PieceModel> byte_pairs(Vocabulary vocabulary,
                                       const std::vector<std::pair<std::string, std::string>>& merges,
                                       const BytePairRules& rules);

}  // namespace galvani
