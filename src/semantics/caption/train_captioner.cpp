#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/model/train.h"
#include "galvani/model/trainer.h"
#include "galvani/semantics/captioner.h"
#include "semantics/caption/annotated.h"
#include "semantics/caption/captioner.h"
#include "semantics/caption/scenes.h"

namespace galvani {
namespace {

constexpr std::int64_t kSlotRows = 16;  // what one worker takes of a batch
constexpr std::int64_t kBeam = 50;
constexpr double kLambda = 0.2;
constexpr double kMargin = 1;
constexpr double kLeastDeviation = 1e-3;

using Sentences = std::vector<std::vector<std::int64_t>>;

// Gradient descent on a list of weights. The slots of a batch are added up in their order.
class WeightsTrainer {
 public:
  // The sum of the losses of some rows.
  using RowsLoss = std::function<at::Tensor(const Weights& weights, const at::Tensor& rows, const Rng& rng)>;

  WeightsTrainer(Weights& weights, double rate) : weights_(weights) {
    optimizer_ = optimizers().create(Spec::parse(fmt::format("adam:lr={},weight_decay=0.01", rate)));
    optimizer_->prepare(weights_);
  }

  // Returns the sum of the losses.
  double step(const std::vector<std::int64_t>& rows, const RowsLoss& loss, const Rng& rng) {
    auto n = static_cast<std::int64_t>(rows.size());
    std::int64_t slots = (n + kSlotRows - 1) / kSlotRows;
    std::vector<Weights> gradients(static_cast<std::size_t>(slots));
    std::vector<double> losses(static_cast<std::size_t>(slots));
    workers().run(slots, [&](std::int64_t slot, int) {
      at::AutoGradMode enable(true);
      Weights leaves;
      for (const at::Tensor& weight : weights_) leaves.push_back(weight.detach().requires_grad_());
      std::int64_t first = slot * kSlotRows;
      std::vector<std::int64_t> own(rows.begin() + first, rows.begin() + std::min(n, first + kSlotRows));
      at::Tensor value = loss(leaves, at::tensor(own, at::kLong), rng.derive(static_cast<std::uint64_t>(slot)));
      value.backward();
      auto place = static_cast<std::size_t>(slot);
      losses[place] = value.item<double>();
      for (const at::Tensor& leaf : leaves) gradients[place].push_back(leaf.grad());
    });
    ++steps_;
    workers().run(static_cast<std::int64_t>(weights_.size()), [&](std::int64_t i, int) {
      auto place = static_cast<std::size_t>(i);
      at::Tensor sum = at::zeros_like(weights_[place]);
      for (const Weights& slot : gradients) {
        if (slot[place].defined()) sum.add_(slot[place]);
      }
      optimizer_->update(place, weights_[place], sum.div_(static_cast<double>(n)), optimizer_->base_rate(), steps_);
    });
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }

 private:
  Weights& weights_;
  std::unique_ptr<Optimizer> optimizer_;
  std::int64_t steps_ = 0;
};

Weights copy_of(const Weights& weights) {
  Weights result;
  for (const at::Tensor& weight : weights) result.push_back(weight.detach().clone());
  return result;
}

// The likeliest word at a time.
Sentences greedy(const Weights& decoder, const at::Tensor& annotations) {
  c10::InferenceMode inference;
  std::int64_t n = annotations.size(0);
  CaptionDecoder::State state = CaptionDecoder::begin(decoder, annotations);
  Sentences sentences(static_cast<std::size_t>(n));
  std::vector<char> ended(static_cast<std::size_t>(n), 0);
  at::Tensor words = at::full({n}, kStart, at::kLong);
  for (std::int64_t step = 0; step < kMostWords; ++step) {
    at::Tensor scores = CaptionDecoder::next(decoder, state, words, {});
    words = (scores.narrow(1, kEnd, scores.size(1) - kEnd).argmax(1) + kEnd).contiguous();
    for (std::size_t i = 0; i < sentences.size(); ++i) {
      auto word = words.data_ptr<std::int64_t>()[i];
      if (word == kEnd) ended[i] = 1;
      if (ended[i] == 0) sentences[i].push_back(word);
    }
  }
  return sentences;
}

struct Split {
  std::vector<std::int64_t> learned, held_out;
};

Split split_of(std::int64_t n, double share, const Rng& rng) {
  Rng own = rng.derive("held out");
  auto out = std::clamp<std::int64_t>(std::llround(share * static_cast<double>(n)), 1, n - 1);
  std::vector<std::int64_t> order = own.sample(n, n);
  Split split{{order.begin() + out, order.end()}, {order.begin(), order.begin() + out}};
  std::sort(split.learned.begin(), split.learned.end());
  std::sort(split.held_out.begin(), split.held_out.end());
  return split;
}

// Epochs until `judge`, of which more is better, has not risen for a while; the best weights stay.
struct Learned {
  std::int64_t epochs = 0;  // until the best
  double loss = 0;          // of it, a row
};
Learned learn(Weights& weights, const CaptionerOptions& options, const char* title,
              const std::vector<std::int64_t>& rows, const WeightsTrainer::RowsLoss& loss,
              const std::function<double()>& judge, const Rng& rng) {
  WeightsTrainer trainer(weights, options.rate);
  ShuffledRows order(static_cast<std::int64_t>(rows.size()), options.batch, rng.derive("order"));
  Progress progress(title, options.epochs * order.steps(), "steps");
  Weights best;
  double most = -std::numeric_limits<double>::infinity();
  Learned learned;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    double sum = 0;
    for (std::int64_t step = 0; step < order.steps(); ++step) {
      check_interrupt();
      std::vector<std::int64_t> own;
      for (std::int64_t place : order.rows(epoch, step)) own.push_back(rows[static_cast<std::size_t>(place)]);
      auto number = static_cast<std::uint64_t>(epoch * order.steps() + step);
      sum += trainer.step(own, loss, rng.derive("dropout").derive(number));
      progress.advance();
    }
    double now = judge();
    progress.note(fmt::format("epoch {}, {:.3f}", epoch + 1, now));
    if (now > most) {
      most = now;
      best = copy_of(weights);
      learned = {epoch + 1, sum / static_cast<double>(rows.size())};
    }
    if (epoch + 1 - learned.epochs >= options.patience) break;
  }
  weights = std::move(best);
  return learned;
}

// With the sentences of all held-out neurons, and with everybody having the sentence of the next.
std::vector<CaptionedAttribute> by_attribute(const std::vector<std::string>& found,
                                             const std::vector<std::string>& wanted) {
  std::vector<CaptionedAttribute> result;
  for (std::size_t a = 0; a < kSceneAttributes; ++a) {
    CaptionedAttribute attribute;
    attribute.name = scene_attribute_name(static_cast<SceneAttribute>(a));
    std::map<int, double> counts;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      int truth = scene_truth(wanted[i])[a];
      counts[truth] += 1;
      attribute.right += scene_truth(found[i])[a] == truth ? 1 : 0;
      attribute.shuffled += scene_truth(found[(i + 1) % found.size()])[a] == truth ? 1 : 0;
    }
    for (const auto& [value, count] : counts) attribute.usual = std::max(attribute.usual, count);
    for (double* share : {&attribute.right, &attribute.shuffled, &attribute.usual})
      *share /= static_cast<double>(wanted.size());
    result.push_back(attribute);
  }
  return result;
}

void check_options(const CaptionerOptions& options) {
  if (options.folder.empty() && options.neurons < 20) bad_usage("a captioner needs at least 20 neurons to learn from");
  if (options.held_out <= 0 || options.held_out >= 1) bad_usage("the share that is held out must be between 0 and 1");
}

}  // namespace

double bleu(const std::vector<std::vector<std::int64_t>>& found, const std::vector<std::vector<std::int64_t>>& wanted) {
  constexpr std::size_t kLongest = 4;
  double log_sum = 0;
  int orders = 0;
  std::size_t found_words = 0;
  std::size_t wanted_words = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    found_words += found[i].size();
    wanted_words += wanted[i].size();
  }
  for (std::size_t n = 1; n <= kLongest; ++n) {
    double matched = 0;
    std::int64_t all = 0;
    std::int64_t possible = 0;  // in what is wanted
    for (std::size_t i = 0; i < found.size(); ++i) {
      std::map<std::vector<std::int64_t>, int> left;
      for (std::size_t w = 0; w + n <= wanted[i].size(); ++w, ++possible)
        ++left[{wanted[i].begin() + static_cast<std::ptrdiff_t>(w),
                wanted[i].begin() + static_cast<std::ptrdiff_t>(w + n)}];
      for (std::size_t w = 0; w + n <= found[i].size(); ++w, ++all) {
        int& count = left[{found[i].begin() + static_cast<std::ptrdiff_t>(w),
                           found[i].begin() + static_cast<std::ptrdiff_t>(w + n)}];
        matched += count > 0 ? 1 : 0;
        --count;
      }
    }
    if (possible == 0) continue;
    if (matched == 0) return 0;
    log_sum += std::log(matched / static_cast<double>(all));
    ++orders;
  }
  if (orders == 0 || found_words == 0) return 0;
  double brevity = std::min(0.0, 1 - static_cast<double>(wanted_words) / static_cast<double>(found_words));
  return std::exp(log_sum / orders + brevity);
}

CaptionerTraining train_captioner(const CaptionerOptions& options, const std::filesystem::path& output) {
  check_options(options);
  auto start = std::chrono::steady_clock::now();
  Rng rng = Rng(options.seed).derive("captioner");
  Captioner captioner;
  AnnotatedNeurons data = options.folder.empty() ? drawn_neurons(options, captioner.annotator)
                                                 : neurons_of_folder(options, captioner.annotator);
  std::int64_t n = data.annotations.size(0);
  if (n < 20) bad_input("{}: has {} annotated neurons, too few to learn from", options.folder.string(), n);
  Split split = split_of(n, options.held_out, rng);
  at::Tensor learned_rows = at::tensor(split.learned, at::kLong);
  at::Tensor held_rows = at::tensor(split.held_out, at::kLong);
  at::Tensor learned = data.annotations.index_select(0, learned_rows).flatten(0, 1);
  captioner.mean = learned.mean(0);
  captioner.scale = learned.std(0).clamp_min(kLeastDeviation);
  at::Tensor annotations = (data.annotations - captioner.mean) / captioner.scale;
  std::vector<std::string> learned_sentences;
  for (std::int64_t row : split.learned) learned_sentences.push_back(data.sentences[static_cast<std::size_t>(row)]);
  captioner.vocabulary = CaptionWords::of(learned_sentences);
  captioner.sizes = {captioner.vocabulary.size(), captioner.annotator.width(),
                     options.embedding,           options.hidden,
                     options.attention,           options.language};
  captioner.trained_on = options.folder.empty() ? fmt::format("{} drawn neurons", split.learned.size())
                                                : options.folder.lexically_normal().filename().string();
  Sentences sentences;
  for (const std::string& sentence : data.sentences) sentences.push_back(captioner.vocabulary.encode(sentence));
  at::Tensor all_sentences = sentence_rows(sentences);
  Sentences wanted;
  for (std::int64_t row : split.held_out) wanted.push_back(sentences[static_cast<std::size_t>(row)]);
  at::Tensor held_out = annotations.index_select(0, held_rows);

  captioner.decoder = CaptionDecoder::draw(captioner.sizes, rng);
  Learned decoder = learn(
      captioner.decoder, options, "captions", split.learned,
      [&](const Weights& weights, const at::Tensor& rows, const Rng& own) {
        return CaptionDecoder::loss(weights, annotations.index_select(0, rows), all_sentences.index_select(0, rows),
                                    options.dropout, options.penalty, own);
      },
      [&] { return bleu(greedy(captioner.decoder, held_out), wanted); }, rng.derive("decoder"));
  captioner.language = LanguageModel::draw(captioner.sizes, rng);
  at::Tensor held_sentences = all_sentences.index_select(0, held_rows);
  learn(
      captioner.language, options, "language", split.learned,
      [&](const Weights& weights, const at::Tensor& rows, const Rng& own) {
        return -LanguageModel::log_likelihood(weights, all_sentences.index_select(0, rows), options.dropout, own).sum();
      },
      [&] {
        c10::InferenceMode inference;
        return LanguageModel::log_likelihood(captioner.language, held_sentences, 0, rng).mean().item<double>();
      },
      rng.derive("language"));

  CaptionerTraining result;
  Sentences found(wanted.size());
  Sentences likeliest(wanted.size());
  workers().run(held_out.size(0), [&](std::int64_t i, int) {
    std::vector<Caption> beam =
        search_captions(captioner.decoder, captioner.language, held_out[i], kBeam, kLambda, kMargin);
    auto most = std::max_element(beam.begin(), beam.end(),
                                 [](const Caption& a, const Caption& b) { return a.likelihood < b.likelihood; });
    found[static_cast<std::size_t>(i)] = beam[0].words;
    likeliest[static_cast<std::size_t>(i)] = most->words;
  });
  std::vector<std::string> said, truth;
  std::int64_t words = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    said.push_back(captioner.vocabulary.decode(found[i]));
    truth.push_back(data.sentences[static_cast<std::size_t>(split.held_out[i])]);
    result.same += found[i] == wanted[i] ? 1 : 0;
  }
  for (std::int64_t row : split.learned)
    words += static_cast<std::int64_t>(sentences[static_cast<std::size_t>(row)].size()) + 1;
  Sentences shifted = found;
  std::rotate(shifted.begin(), shifted.begin() + 1, shifted.end());
  result.neurons = static_cast<std::int64_t>(split.learned.size());
  result.held_out = static_cast<std::int64_t>(split.held_out.size());
  result.vocabulary = static_cast<std::int64_t>(captioner.vocabulary.words().size());
  result.epochs = decoder.epochs;
  result.loss = decoder.loss * static_cast<double>(result.neurons) / static_cast<double>(words);
  result.bleu = bleu(found, wanted);
  result.bleu_likeliest = bleu(likeliest, wanted);
  result.bleu_shuffled = bleu(shifted, wanted);
  result.same /= static_cast<double>(wanted.size());
  if (options.folder.empty()) result.attributes = by_attribute(said, truth);
  captioner.save(output);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace galvani
