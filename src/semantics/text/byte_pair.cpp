#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/utf8.h"
#include "semantics/text/pieces.h"

namespace galvani {
namespace {

class BytePairs : public PieceModel {
 public:
  BytePairs(Vocabulary vocabulary, const std::vector<std::pair<std::string, std::string>>& merges, BytePairRules rules)
      : vocabulary_(std::move(vocabulary)), rules_(std::move(rules)) {
    for (std::size_t i = 0; i < merges.size(); ++i) rank_.emplace(key(merges[i].first, merges[i].second), i);
  }

  void add(const std::string& word, std::vector<std::int64_t>& ids) const override {
    if (rules_.whole_words) {
      auto known = vocabulary_.find(word);
      if (known != vocabulary_.end()) {
        ids.push_back(known->second);
        return;
      }
    }
    bool after_unknown = false;
    for (const std::string& piece : merged(letters_of(word))) {
      auto known = vocabulary_.find(piece);
      bool unknown = known == vocabulary_.end();
      if (!unknown) {
        ids.push_back(known->second);
      } else if (rules_.bytes && add_bytes(piece, ids)) {
        unknown = false;
      } else if (rules_.unknown >= 0 && !(rules_.join_unknown && after_unknown)) {
        ids.push_back(rules_.unknown);
      }
      after_unknown = unknown;
    }
  }

 private:
  // No piece holds a zero byte that a file's text could bring about: it stands between the two.
  static std::string key(const std::string& left, const std::string& right) { return left + '\0' + right; }

  std::vector<std::string> letters_of(const std::string& word) const {
    std::vector<std::string> letters;
    for (std::size_t i = 0; i < word.size();) {
      std::size_t length = first_character(std::string_view(word).substr(i)).length;
      letters.push_back((i == 0 ? "" : rules_.continuation) + word.substr(i, length));
      i += length;
    }
    if (!letters.empty()) letters.back() += rules_.word_end;
    return letters;
  }

  std::vector<std::string> merged(std::vector<std::string> pieces) const {
    while (pieces.size() > 1) {
      std::size_t best = rank_.size();
      std::size_t place = 0;
      for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
        auto found = rank_.find(key(pieces[i], pieces[i + 1]));
        if (found == rank_.end() || found->second >= best) continue;
        best = found->second;
        place = i;
      }
      if (best == rank_.size()) break;
      pieces[place] += pieces[place + 1].substr(rules_.continuation.size());
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
    return pieces;
  }

  // False, and nothing done, unless the vocabulary has all of them.
  bool add_bytes(const std::string& piece, std::vector<std::int64_t>& ids) const {
    std::vector<std::int64_t> found;
    for (char c : piece) {
      auto known = vocabulary_.find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(c)));
      if (known == vocabulary_.end()) return false;
      found.push_back(known->second);
    }
    ids.insert(ids.end(), found.begin(), found.end());
    return true;
  }

  Vocabulary vocabulary_;
  BytePairRules rules_;
  std::unordered_map<std::string, std::size_t> rank_;
};

}  // namespace

std::unique_ptr<PieceModel> byte_pairs(Vocabulary vocabulary,
                                       const std::vector<std::pair<std::string, std::string>>& merges,
                                       const BytePairRules& rules) {
  return std::make_unique<BytePairs>(std::move(vocabulary), merges, rules);
}

}  // namespace galvani
