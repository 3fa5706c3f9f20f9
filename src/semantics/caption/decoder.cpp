#include "semantics/caption/decoder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace galvani {
namespace {

// Places in the decoder's list.
enum DecoderPart : std::size_t {
  embedding_part,
  hidden_weight_part,
  hidden_bias_part,
  cell_weight_part,
  cell_bias_part,
  key_weight_part,
  key_bias_part,
  query_weight_part,
  attend_part,
  gate_weight_part,
  gate_bias_part,
  in_weight_part,
  state_weight_part,
  in_bias_part,
  state_bias_part,
  out_weight_part,
  out_bias_part,
  decoder_parts
};
// And in the language model's: an embedding, two LSTMs, the words.
constexpr std::size_t kLanguageLayers = 2;
constexpr std::size_t kLstmParts = 4;

// Uniform in ±1/√n, as is usual for LSTMs.
at::Tensor drawn_weights(const std::vector<std::int64_t>& shape, std::int64_t fan, Rng& rng) {
  at::Tensor result = at::empty(shape);
  rng.fill_uniform(result.data_ptr<float>(), static_cast<std::size_t>(result.numel()));
  return result.sub_(0.5).mul_(2 / std::sqrt(static_cast<double>(fan)));
}

at::Tensor log_likelihood_of(const at::Tensor& scores, const at::Tensor& words) {
  at::Tensor found = at::log_softmax(scores, 1).gather(1, words.clamp_min(0).unsqueeze(1)).squeeze(1);
  return found * (words != kPadding).to(at::kFloat);
}

// Factors that drop a share of the values and keep the mean.
at::Tensor dropping(std::int64_t rows, std::int64_t width, double share, Rng& rng) {
  if (share <= 0) return {};
  at::Tensor result = at::empty({rows, width});
  rng.fill_uniform(result.data_ptr<float>(), static_cast<std::size_t>(result.numel()));
  return (result >= share).to(at::kFloat).div_(1 - share);
}

}  // namespace

Weights CaptionDecoder::draw(const DecoderSizes& sizes, const Rng& rng) {
  Rng own = rng.derive("decoder");
  std::int64_t d = sizes.annotation;
  std::int64_t e = sizes.embedding;
  std::int64_t h = sizes.hidden;
  std::int64_t a = sizes.attention;
  Weights weights(decoder_parts);
  weights[embedding_part] = drawn_weights({sizes.vocabulary, e}, e, own);
  weights[hidden_weight_part] = drawn_weights({h, d}, d, own);
  weights[hidden_bias_part] = at::zeros({h});
  weights[cell_weight_part] = drawn_weights({h, d}, d, own);
  weights[cell_bias_part] = at::zeros({h});
  weights[key_weight_part] = drawn_weights({a, d}, d, own);
  weights[key_bias_part] = at::zeros({a});
  weights[query_weight_part] = drawn_weights({a, h}, h, own);
  weights[attend_part] = drawn_weights({a}, a, own);
  weights[gate_weight_part] = drawn_weights({d, h}, h, own);
  weights[gate_bias_part] = at::zeros({d});
  weights[in_weight_part] = drawn_weights({4 * h, e + d}, h, own);
  weights[state_weight_part] = drawn_weights({4 * h, h}, h, own);
  weights[in_bias_part] = at::zeros({4 * h});
  weights[state_bias_part] = at::zeros({4 * h});
  weights[out_weight_part] = drawn_weights({sizes.vocabulary, h}, h, own);
  weights[out_bias_part] = at::zeros({sizes.vocabulary});
  return weights;
}

CaptionDecoder::State CaptionDecoder::begin(const Weights& weights, const at::Tensor& annotations) {
  at::Tensor mean = annotations.mean(1);
  State state;
  state.annotations = annotations;
  state.keys = at::linear(annotations, weights[key_weight_part], weights[key_bias_part]);
  state.hidden = at::linear(mean, weights[hidden_weight_part], weights[hidden_bias_part]).tanh();
  state.cell = at::linear(mean, weights[cell_weight_part], weights[cell_bias_part]).tanh();
  return state;
}

at::Tensor CaptionDecoder::next(const Weights& weights, State& state, const at::Tensor& words,
                                const at::Tensor& dropped, at::Tensor* attention) {
  // Additive attention (Bahdanau et al. 2015).
  at::Tensor query = at::linear(state.hidden, weights[query_weight_part]).unsqueeze(1);
  at::Tensor attended = at::softmax((state.keys + query).tanh().matmul(weights[attend_part]), 1);
  at::Tensor context = at::bmm(attended.unsqueeze(1), state.annotations).squeeze(1);
  at::Tensor gate = at::linear(state.hidden, weights[gate_weight_part], weights[gate_bias_part]).sigmoid();
  at::Tensor input = at::cat({at::embedding(weights[embedding_part], words), gate * context}, 1);
  std::tie(state.hidden, state.cell) =
      at::lstm_cell(input, {state.hidden, state.cell}, weights[in_weight_part], weights[state_weight_part],
                    weights[in_bias_part], weights[state_bias_part]);
  if (attention != nullptr) *attention = attended;
  at::Tensor out = dropped.defined() ? state.hidden * dropped : state.hidden;
  return at::linear(out, weights[out_weight_part], weights[out_bias_part]);
}

at::Tensor CaptionDecoder::loss(const Weights& weights, const at::Tensor& annotations, const at::Tensor& sentences,
                                double dropout, double penalty, Rng rng) {
  State state = begin(weights, annotations);
  std::int64_t rows = sentences.size(0);
  at::Tensor total = at::zeros({});
  at::Tensor seen = at::zeros({rows, annotations.size(1)});
  for (std::int64_t t = 0; t + 1 < sentences.size(1); ++t) {
    at::Tensor attention;
    at::Tensor scores =
        next(weights, state, sentences.select(1, t), dropping(rows, state.hidden.size(1), dropout, rng), &attention);
    at::Tensor wanted = sentences.select(1, t + 1);
    total = total - log_likelihood_of(scores, wanted).sum();
    seen = seen + attention * (wanted != kPadding).to(at::kFloat).unsqueeze(1);
  }
  // Every place should be attended to about as often as the sentence has words, shared among the places.
  at::Tensor words = (sentences != kPadding).to(at::kFloat).sum(1, true) - 1;
  at::Tensor even = words / static_cast<double>(annotations.size(1));
  return total + (seen - even).square().mean(1).sum() * penalty;
}

at::Tensor caption_likelihood(const Weights& decoder, const at::Tensor& annotations, const at::Tensor& sentences) {
  CaptionDecoder::State state = CaptionDecoder::begin(decoder, annotations);
  at::Tensor total = at::zeros({sentences.size(0)});
  for (std::int64_t t = 0; t + 1 < sentences.size(1); ++t) {
    at::Tensor scores = CaptionDecoder::next(decoder, state, sentences.select(1, t), {});
    total = total + log_likelihood_of(scores, sentences.select(1, t + 1));
  }
  return total;
}

Weights LanguageModel::draw(const DecoderSizes& sizes, const Rng& rng) {
  Rng own = rng.derive("language");
  std::int64_t h = sizes.language;
  Weights weights = {drawn_weights({sizes.vocabulary, sizes.embedding}, sizes.embedding, own)};
  for (std::size_t layer = 0; layer < kLanguageLayers; ++layer) {
    weights.push_back(drawn_weights({4 * h, layer == 0 ? sizes.embedding : h}, h, own));
    weights.push_back(drawn_weights({4 * h, h}, h, own));
    weights.push_back(at::zeros({4 * h}));
    weights.push_back(at::zeros({4 * h}));
  }
  weights.push_back(drawn_weights({sizes.vocabulary, h}, h, own));
  weights.push_back(at::zeros({sizes.vocabulary}));
  return weights;
}

at::Tensor LanguageModel::log_likelihood(const Weights& weights, const at::Tensor& sentences, double dropout, Rng rng) {
  std::int64_t rows = sentences.size(0);
  std::int64_t h = weights[2].size(1);
  std::vector<at::Tensor> hidden(kLanguageLayers, at::zeros({rows, h}));
  std::vector<at::Tensor> cell = hidden;
  at::Tensor total = at::zeros({rows});
  for (std::int64_t t = 0; t + 1 < sentences.size(1); ++t) {
    at::Tensor value = at::embedding(weights[0], sentences.select(1, t));
    for (std::size_t layer = 0; layer < kLanguageLayers; ++layer) {
      const at::Tensor* part = &weights[1 + layer * kLstmParts];
      std::tie(hidden[layer], cell[layer]) =
          at::lstm_cell(value, {hidden[layer], cell[layer]}, part[0], part[1], part[2], part[3]);
      value = hidden[layer];
      if (at::Tensor dropped = dropping(rows, h, dropout, rng); dropped.defined()) value = value * dropped;
    }
    at::Tensor scores = at::linear(value, weights[weights.size() - 2], weights.back());
    total = total + log_likelihood_of(scores, sentences.select(1, t + 1));
  }
  return total;
}

at::Tensor sentence_rows(const std::vector<std::vector<std::int64_t>>& sentences) {
  std::size_t longest = 0;
  for (const auto& sentence : sentences) longest = std::max(longest, sentence.size());
  at::Tensor rows = at::full({static_cast<std::int64_t>(sentences.size()), static_cast<std::int64_t>(longest) + 2},
                             kPadding, at::kLong);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    auto* row = rows.data_ptr<std::int64_t>() + static_cast<std::int64_t>(i) * rows.size(1);
    *row++ = kStart;
    row = std::copy(sentences[i].begin(), sentences[i].end(), row);
    *row = kEnd;
  }
  return rows;
}

std::vector<Caption> search_captions(const Weights& decoder, const Weights& language, const at::Tensor& annotations,
                                     std::int64_t beam, double lambda, double margin) {
  c10::InferenceMode inference;
  struct Candidate {
    double likelihood;
    std::int64_t row, word;
  };
  CaptionDecoder::State state = CaptionDecoder::begin(decoder, annotations.unsqueeze(0));
  std::vector<std::vector<std::int64_t>> open = {{}};
  std::vector<double> likelihood = {0};
  std::vector<Caption> done;
  for (std::int64_t step = 0; step <= kMostWords && !open.empty(); ++step) {
    auto rows = static_cast<std::int64_t>(open.size());
    at::Tensor words = at::full({rows}, kStart, at::kLong);
    for (std::int64_t i = 0; step > 0 && i < rows; ++i) words[i] = open[static_cast<std::size_t>(i)].back();
    CaptionDecoder::State expanded = state;
    expanded.annotations = state.annotations.expand({rows, -1, -1});
    expanded.keys = state.keys.expand({rows, -1, -1});
    at::Tensor scores = at::log_softmax(CaptionDecoder::next(decoder, expanded, words, {}), 1).contiguous();
    std::vector<Candidate> candidates;
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto* row = scores.data_ptr<float>() + i * scores.size(1);
      for (std::int64_t word = kEnd; word < scores.size(1); ++word) {
        if (step == kMostWords && word != kEnd) break;
        candidates.push_back({likelihood[static_cast<std::size_t>(i)] + static_cast<double>(row[word]), i, word});
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.likelihood > b.likelihood; });
    std::vector<std::vector<std::int64_t>> next_open;
    std::vector<double> next_likelihood;
    std::vector<std::int64_t> from;
    // Sentences that have ended keep their place in the beam.
    auto places = beam - static_cast<std::int64_t>(done.size());
    for (std::size_t c = 0; c < candidates.size() && places > 0; ++c, --places) {
      const Candidate& candidate = candidates[c];
      const auto& before = open[static_cast<std::size_t>(candidate.row)];
      if (candidate.word == kEnd) {
        if (before.empty()) {
          ++places;
          continue;
        }
        done.push_back({before, candidate.likelihood, 0, 0});
        continue;
      }
      next_open.push_back(before);
      next_open.back().push_back(candidate.word);
      next_likelihood.push_back(candidate.likelihood);
      from.push_back(candidate.row);
    }
    if (!from.empty()) {
      at::Tensor index = at::tensor(from, at::kLong);
      state.hidden = expanded.hidden.index_select(0, index);
      state.cell = expanded.cell.index_select(0, index);
    }
    open = std::move(next_open);
    likelihood = std::move(next_likelihood);
  }
  std::vector<std::vector<std::int64_t>> sentences;
  for (const Caption& caption : done) sentences.push_back(caption.words);
  at::Tensor usual = LanguageModel::log_likelihood(language, sentence_rows(sentences), 0, Rng(0)).contiguous();
  for (std::size_t i = 0; i < done.size(); ++i) {
    done[i].usual = static_cast<double>(usual.data_ptr<float>()[i]);
    done[i].score = done[i].likelihood - lambda * done[i].usual;  // NSGen eq. 4
  }
  double least = -std::numeric_limits<double>::infinity();
  for (const Caption& caption : done) least = std::max(least, caption.likelihood - margin);
  std::stable_sort(done.begin(), done.end(), [least](const Caption& a, const Caption& b) {
    bool first = a.likelihood >= least;
    return first != (b.likelihood >= least) ? first : a.score > b.score;
  });
  return done;
}

void put_weights(ArchiveWriter& out, const Weights& weights) {
  for (const at::Tensor& weight : weights) {
    at::Tensor flat = weight.detach().contiguous();
    const auto* values = flat.data_ptr<float>();
    out.put(std::vector<float>(values, values + flat.numel()));
  }
}

Weights get_weights(ArchiveReader& in, const Weights& like) {
  Weights weights;
  for (const at::Tensor& shape : like) {
    std::vector<float> values = in.get_vector<float>(static_cast<std::uint64_t>(shape.numel()));
    if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
      in.broken("holds a weight that is not finite");
    weights.push_back(at::tensor(values).view(shape.sizes()));
  }
  return weights;
}

}  // namespace galvani
