// Word vectors: a text is the mean of its words, the rarer the heavier (smooth inverse frequency, Arora et al. 2017:
// a / (a + p)). Files of vectors list words by frequency but do not state it, so p is Zipf's law of the place in the
// list. The paper also removes what all texts of a collection have in common; here a text's vector must not depend on
// other texts, so the vocabulary's own mean is removed instead (Mu and Viswanath 2018), if asked for.
#include <ATen/ATen.h>

#include <cmath>

#include "galvani/base/parallel.h"
#include "galvani/model/fetched.h"
#include "galvani/model/word_vectors.h"
#include "semantics/text/builtin.h"
#include "semantics/text/words.h"

namespace galvani {
namespace {

// Mandelbrot's correction of Zipf's law: the first words are less frequent than 1 / rank says.
constexpr double kOffset = 2.7;

class GloveEncoder : public TextEncoder {
 public:
  explicit GloveEncoder(const Options& options) : a_(options.real("a")) {
    path_ = options.text("file");
    if (path_.empty()) {
      const FetchedModel& model = fetched_model("glove");
      path_ = (require_fetched(model) / model.main).string();
    }
    vectors_ = WordVectors::load(path_, options.integer("words"));
    for (std::int64_t rank = 0; rank < vectors_->size(); ++rank) all_ += 1 / (static_cast<double>(rank) + kOffset);
    if (options.flag("centre")) find_centre();
  }

  std::int64_t width() const override { return vectors_->width(); }
  std::map<std::string, std::string> files_sha256() const override { return {{path_, vectors_->sha256()}}; }

 private:
  double share(std::int64_t rank) const { return 1 / ((static_cast<double>(rank) + kOffset) * all_); }

  // The mean of the vocabulary, every word as often as it is used.
  void find_centre() {
    std::vector<double> sum(static_cast<std::size_t>(width()));
    for (std::int64_t rank = 0; rank < vectors_->size(); ++rank) vectors_->add_to(rank, share(rank), sum.data());
    centre_ = std::move(sum);
  }

  at::Tensor run(const std::vector<std::string>& texts) override {
    auto n = static_cast<std::int64_t>(texts.size());
    at::Tensor result = at::zeros({n, width()}, at::kFloat);
    auto* rows = result.data_ptr<float>();
    workers().run(n, [&](std::int64_t i, int) { add_text(texts[static_cast<std::size_t>(i)], rows + i * width()); });
    return result;
  }

  // "cat's" is looked for as it is, then as "cat".
  std::int64_t rank_of(const std::string& word) const {
    std::int64_t rank = vectors_->rank(word);
    std::size_t mark = word.find('\'');
    return rank >= 0 || mark == std::string::npos ? rank : vectors_->rank(word.substr(0, mark));
  }

  void add_text(const std::string& text, float* row) const {
    std::vector<double> sum(static_cast<std::size_t>(width()));
    double weights = 0;
    for (const std::string& word : words_of(text)) {
      std::int64_t rank = rank_of(word);
      if (rank < 0) continue;
      double weight = a_ / (a_ + share(rank));
      vectors_->add_to(rank, weight, sum.data());
      weights += weight;
    }
    for (std::size_t d = 0; d < sum.size(); ++d) {
      double middle = centre_.empty() ? 0 : centre_[d] * weights;
      row[d] = static_cast<float>(sum[d] - middle);
    }
  }

  std::string path_;
  double a_;
  std::unique_ptr<WordVectors> vectors_;
  double all_ = 0;              // of Zipf's law
  std::vector<double> centre_;  // empty: nothing is removed
};

}  // namespace

TextEncoderEntry glove_encoder_entry() {
  return {
      "glove",
      "mean of word vectors, rare words heavier: galvani model get glove, or a file of GloVe or fastText",
      {{"file", std::string(), "a text file of GloVe or fastText; empty: the one that was fetched", {}, {}, {}},
       {"words", std::int64_t{0}, "how many words of a text file to read; 0: all", 0, {}, {}},
       {"a", 1e-3, "words much more frequent than this weigh little", 1e-9, 1, {}},
       {"centre", true, "remove the mean of all words of the vocabulary, which every text has in common", {}, {}, {}}},
      [](const Options& options) { return std::make_unique<GloveEncoder>(options); }};
}

}  // namespace galvani
