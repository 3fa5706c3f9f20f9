// An encoder that needs no file: words are the sets of their pieces (the word itself and its runs of 3 to 5 letters, as
// fastText cuts them), every piece has a fixed vector of signs drawn from its hash, and a text is the weighted mean of
// its words. Texts that share words or stems are near; of synonyms it knows nothing.
#include <ATen/ATen.h>

#include <cmath>

#include "galvani/base/parallel.h"
#include "galvani/base/rng.h"
#include "galvani/base/utf8.h"
#include "semantics/text/builtin.h"
#include "semantics/text/words.h"

namespace galvani {
namespace {

constexpr std::size_t kShortest = 3;
constexpr std::size_t kLongestPiece = 5;

// FNV-1a, which is the same on every machine.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// "<cat>", then "<ca", "cat", "at>", "<cat", "cat>".
std::vector<std::string_view> pieces_of(const std::string& marked) {
  std::vector<std::size_t> starts;  // of characters
  for (std::size_t i = 0; i < marked.size(); i += first_character(std::string_view(marked).substr(i)).length)
    starts.push_back(i);
  starts.push_back(marked.size());
  std::size_t characters = starts.size() - 1;
  std::vector<std::string_view> pieces = {marked};
  for (std::size_t length = kShortest; length <= kLongestPiece && length < characters; ++length) {
    for (std::size_t i = 0; i + length <= characters; ++i)
      pieces.push_back(std::string_view(marked).substr(starts[i], starts[i + length] - starts[i]));
  }
  return pieces;
}

class HashEncoder : public TextEncoder {
 public:
  explicit HashEncoder(const Options& options)
      : width_(options.integer("width")), function_words_(options.real("function-words")) {}
  std::int64_t width() const override { return width_; }

 private:
  at::Tensor run(const std::vector<std::string>& texts) override {
    auto n = static_cast<std::int64_t>(texts.size());
    at::Tensor result = at::zeros({n, width_}, at::kFloat);
    auto* rows = result.data_ptr<float>();
    workers().run(n, [&](std::int64_t i, int) { add_text(texts[static_cast<std::size_t>(i)], rows + i * width_); });
    return result;
  }

  void add_text(const std::string& text, float* row) const {
    std::vector<double> sum(static_cast<std::size_t>(width_));
    for (const std::string& word : words_of(text)) add_word(word, sum);
    for (std::size_t d = 0; d < sum.size(); ++d) row[d] = static_cast<float>(sum[d]);
  }

  // A word weighs the same however many pieces it has.
  void add_word(const std::string& word, std::vector<double>& sum) const {
    const std::string marked = "<" + word + ">";
    std::vector<std::string_view> pieces = pieces_of(marked);
    double weight = is_function_word(word) ? function_words_ : 1;
    double share = weight / std::sqrt(static_cast<double>(pieces.size()));
    for (std::string_view piece : pieces) {
      std::uint64_t hash = hash_of(piece);
      for (std::size_t block = 0; block * 64 < sum.size(); ++block) {
        std::uint64_t signs = mix(hash, block);
        for (std::size_t bit = 0; bit < 64 && block * 64 + bit < sum.size(); ++bit)
          sum[block * 64 + bit] += ((signs >> bit) & 1U) != 0 ? share : -share;
      }
    }
  }

  std::int64_t width_;
  double function_words_;
};

}  // namespace

TextEncoderEntry hash_encoder_entry() {
  return {"hash",
          "shared words and pieces of words; built in, no file",
          {{"width", std::int64_t{512}, "numbers in a vector", 16, 65536, {}},
           {"function-words", 0.1, "how much a word such as 'of' weighs against others", 0, 1, {}}},
          [](const Options& options) { return std::make_unique<HashEncoder>(options); }};
}

}  // namespace galvani
