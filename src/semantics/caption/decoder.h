// The two networks of a captioner: one says how likely a sentence is for what a neuron shows, p(d|R), an LSTM that
// attends to annotation vectors (Show, Attend and Tell); the other how likely it is at all, p(d), an LSTM of two
// layers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "galvani/base/archive.h"
#include "galvani/base/rng.h"

namespace galvani {

struct DecoderSizes {
  std::int64_t vocabulary = 0;
  std::int64_t annotation = 0;  // D
  std::int64_t embedding = 128;
  std::int64_t hidden = 256;
  std::int64_t attention = 256;
  std::int64_t language = 128;  // hidden, of the language model
};

// Words as numbers; these three are no words.
inline constexpr std::int64_t kPadding = 0;
inline constexpr std::int64_t kStart = 1;
inline constexpr std::int64_t kEnd = 2;
inline constexpr std::int64_t kFirstWord = 3;
inline constexpr std::int64_t kMostWords = 15;

// Weights by place: a list that an optimizer walks.
using Weights = std::vector<at::Tensor>;

class CaptionDecoder {
 public:
  static Weights draw(const DecoderSizes& sizes, const Rng& rng);

  // What is carried from word to word, a row each.
  struct State {
    at::Tensor annotations;  // [N, L, D]
    at::Tensor keys;         // [N, L, A]
    at::Tensor hidden, cell;
  };
  static State begin(const Weights& weights, const at::Tensor& annotations);
  // Scores of the next word, [N, V], after these, [N]; attention [N, L]. `dropped` [N, hidden]: factors; undefined:
  // none.
  static at::Tensor next(const Weights& weights, State& state, const at::Tensor& words, const at::Tensor& dropped,
                         at::Tensor* attention = nullptr);
  // The sum over rows of -log p of the words after the first, and of the penalty for places that nothing attended to.
  // sentences [N, T] int64.
  static at::Tensor loss(const Weights& weights, const at::Tensor& annotations, const at::Tensor& sentences,
                         double dropout, double penalty, Rng rng);
};

class LanguageModel {
 public:
  static Weights draw(const DecoderSizes& sizes, const Rng& rng);
  // log p of every word of each sentence, summed: [N].
  static at::Tensor log_likelihood(const Weights& weights, const at::Tensor& sentences, double dropout, Rng rng);
};

// log p(d|R) of each sentence, [N].
at::Tensor caption_likelihood(const Weights& decoder, const at::Tensor& annotations, const at::Tensor& sentences);

struct Caption {
  std::vector<std::int64_t> words;  // without start and end
  double likelihood = 0;            // log p(d|R)
  double usual = 0;                 // log p(d)
  double score = 0;                 // log p(d|R) - lambda log p(d)
};
// The sentences of a beam search under p(d|R), the best score first; those whose log p(d|R) is more than `margin` below
// the largest come after all others. Without that, what is rare because it is no sentence would win, as soon as the
// beam is wide enough to hold it. annotations [L, D].
std::vector<Caption> search_captions(const Weights& decoder, const Weights& language, const at::Tensor& annotations,
                                     std::int64_t beam, double lambda, double margin);

// Sentences as rows of words, from the start to the end, padded.
at::Tensor sentence_rows(const std::vector<std::vector<std::int64_t>>& sentences);

void put_weights(ArchiveWriter& out, const Weights& weights);
// As many of the same shapes as `like`; anything else is a broken file.
Weights get_weights(ArchiveReader& in, const Weights& like);

}  // namespace galvani
