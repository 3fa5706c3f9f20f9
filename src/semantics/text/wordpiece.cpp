#include "galvani/base/utf8.h"
#include "semantics/text/pieces.h"

namespace galvani {
namespace {

class WordPieces : public PieceModel {
 public:
  WordPieces(Vocabulary vocabulary, WordPieceRules rules)
      : vocabulary_(std::move(vocabulary)), rules_(std::move(rules)) {}

  void add(const std::string& word, std::vector<std::int64_t>& ids) const override {
    std::vector<std::size_t> starts;  // of characters
    for (std::size_t i = 0; i < word.size(); i += first_character(std::string_view(word).substr(i)).length)
      starts.push_back(i);
    if (static_cast<std::int64_t>(starts.size()) > rules_.longest) {
      ids.push_back(rules_.unknown);
      return;
    }
    starts.push_back(word.size());
    std::vector<std::int64_t> found;
    std::string piece;
    for (std::size_t first = 0; first + 1 < starts.size();) {
      std::size_t last = starts.size() - 1;
      for (; last > first; --last) {
        piece = first == 0 ? "" : rules_.continuation;
        piece.append(word, starts[first], starts[last] - starts[first]);
        auto known = vocabulary_.find(piece);
        if (known == vocabulary_.end()) continue;
        found.push_back(known->second);
        break;
      }
      if (last == first) {
        ids.push_back(rules_.unknown);
        return;
      }
      first = last;
    }
    ids.insert(ids.end(), found.begin(), found.end());
  }

 private:
  Vocabulary vocabulary_;
  WordPieceRules rules_;
};

}  // namespace

std::unique_ptr<PieceModel> word_pieces(Vocabulary vocabulary, const WordPieceRules& rules) {
  return std::make_unique<WordPieces>(std::move(vocabulary), rules);
}

}  // namespace galvani
