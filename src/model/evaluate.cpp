#include "galvani/model/evaluate.h"

#include <fmt/format.h>
#include <torch/script.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/model/inputs.h"
#include "galvani/model/label_fit.h"

namespace galvani {
namespace {

constexpr float kCloseCall = 1e-4F;
constexpr std::int64_t kMicroBatchesPerChunk = 16;
constexpr std::int64_t kMostToMatch = 4096;  // classes: a table of them takes 128 MiB

// Three standard errors keep a handful of images from raising an alarm.
double sampling_noise(std::int64_t images) {
  return 3 * std::sqrt(0.25 / static_cast<double>(std::max<std::int64_t>(1, images)));
}

// The rows whose two best scores are close: a plain loop, for which a small network need not wait.
at::Tensor close_calls(const at::Tensor& logits) {
  at::Tensor scores = logits.contiguous();
  std::int64_t classes = scores.size(1);
  const float* row = scores.data_ptr<float>();
  std::vector<std::int64_t> close;
  for (std::int64_t i = 0; i < scores.size(0); ++i, row += classes) {
    float best = std::max(row[0], row[1]), second = std::min(row[0], row[1]), largest = 0;
    // Zero, unless a score is not finite; then the input is a close call.
    float probe = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      probe += row[c] * 0.0F;
      largest = std::max(largest, std::abs(row[c]));
      if (c < 2) continue;
      second = std::max(second, std::min(best, row[c]));
      best = std::max(best, row[c]);
    }
    if (probe != 0 || !(best - second > largest * kCloseCall)) close.push_back(i);
  }
  return at::tensor(close, at::kLong);
}

}  // namespace

std::int64_t settle_close_calls(Network& network, const at::Tensor& images, at::Tensor& logits,
                                const at::Tensor& references) {
  if (logits.size(1) < 2 || images.size(0) == 0) return 0;
  at::Tensor close = close_calls(logits);
  if (close.numel() == 0) return 0;
  Request alone;
  alone.alone = true;
  if (references.defined()) alone.references = references.index_select(0, close);
  logits.index_copy_(0, close, network.run(images.index_select(0, close), alone).logits);
  return close.numel();
}

at::Tensor verdicts(const at::Tensor& logits) {
  if (logits.size(0) == 0) return at::empty({0}, at::kLong);
  return at::where(at::isfinite(logits).all(1), logits.argmax(1), kNotANumber);
}

at::Tensor confidences(const at::Tensor& probabilities, const at::Tensor& verdicts) {
  at::Tensor of_class = probabilities.gather(1, verdicts.clamp_min(0).unsqueeze(1)).squeeze(1);
  return of_class.masked_fill(verdicts == kNotANumber, 0).contiguous();
}

std::string verdict_name(const Network& network, const Labelled& data, std::int64_t verdict) {
  if (verdict == kNotANumber) return kNotANumberName;
  const Question& question = network.info().question;
  const auto names = question.by_reference() ? question.verdict_names() : network.card().class_names;
  auto i = static_cast<std::size_t>(verdict);
  return i < names.size() ? names[i] : data.class_name(verdict);
}

Predictions predict(Network& network, const at::Tensor& images) {
  return predict(network, images, {});
}

Predictions predict(Network& network, const at::Tensor& images, const at::Tensor& references) {
  Predictions result;
  Request request;
  request.references = references;
  result.logits = network.run(images, request).logits;
  result.reexamined = settle_close_calls(network, images, result.logits, references);
  result.labels = verdicts(result.logits);
  result.probabilities = probabilities(network.info(), result.logits);
  result.confidence = confidences(result.probabilities, result.labels);
  return result;
}

void check_labels(const Network& network, const Labelled& data) {
  std::int64_t classes = network.info().classes;
  if (data.labels.numel() == 0) return;
  auto largest = data.labels.max().item<std::int64_t>();
  if (largest < classes) return;
  bool from_one = largest == classes && data.labels.ne(0).all().item<bool>();
  bad_input("{}: has the label {}, but {} knows {} (0 to {}){}", data.name, largest, network.info().path,
            counted(classes, "class", "classes"), classes - 1,
            from_one ? "; if the labels count from 1, --label-shift -1 takes them so" : "");
}

void predict_stream(Network& network, const DataView& data, const std::string& title,
                    const std::function<void(const Predictions&, std::int64_t)>& sink) {
  check_fits(network, data.type().shape, data.name);
  Progress progress(title, data.size(), data.type().noun());
  std::int64_t chunk = network.execution().micro_batch * kMicroBatchesPerChunk * workers().size();
  data.for_each_piece(chunk, [&](const at::Tensor& inputs, std::int64_t first) {
    sink(predict(network, inputs), first);
    progress.advance(inputs.size(0));
  });
}

Scoring::Scoring(const Network& network, const Labelled& data)
    : labels_(data.labels),
      classes_(network.info().classes),
      counts_(at::zeros(
          {network.info().classes <= kMostToMatch ? 2 : 1, network.info().classes, network.info().classes + 1},
          at::kLong)),
      class_names_(data.class_names) {
  if (!data.labelled()) bad_input("{}: has images without a label, so accuracy cannot be measured", data.name);
  check_labels(network, data);
}

void Scoring::add(const Predictions& predictions, std::int64_t first) {
  at::Tensor truth = labels_.narrow(0, first, predictions.labels.size(0));
  at::Tensor half = held_out_rows(first, truth.size(0)).clamp_max(counts_.size(0) - 1);
  at::Tensor cells = (half * classes_ + truth) * (classes_ + 1) + (predictions.labels - kNotANumber);
  counts_ += at::bincount(cells, {}, counts_.numel()).view(counts_.sizes());
  reexamined_ += predictions.reexamined;
}

Evaluation Scoring::result() const {
  Evaluation result;
  at::Tensor both = counts_.sum(0);
  result.not_a_number = both.select(1, 0).contiguous();
  result.confusion = both.narrow(1, 1, classes_).contiguous();
  if (counts_.size(0) == 2) result.held_out = counts_[1].narrow(1, 1, classes_).contiguous();
  result.class_names = class_names_;
  result.images = both.sum().item<std::int64_t>();
  result.correct = result.confusion.diagonal().sum().item<std::int64_t>();
  result.accuracy = static_cast<double>(result.correct) / static_cast<double>(result.images);
  result.reexamined = reexamined_;
  return result;
}

Evaluation evaluate(Network& network, const DataView& data) {
  Scoring scoring(network, data);
  predict_stream(network, data, "evaluating",
                 [&](const Predictions& predictions, std::int64_t first) { scoring.add(predictions, first); });
  return scoring.result();
}

Evaluation evaluate_some(Network& network, const DataView& data, std::int64_t most) {
  std::vector<std::int64_t> rows;
  std::int64_t n = std::min(most, data.size());
  for (std::int64_t i = 0; i < n; ++i) rows.push_back(i * data.size() / n);
  Labelled about = subset_of(data, rows);
  Scoring scoring(network, about);
  scoring.add(predict(network, data.fetch(rows)), 0);
  return scoring.result();
}

ShareInterval wilson_interval(std::int64_t correct, std::int64_t images) {
  constexpr double kZ = 1.959963984540054;  // of the normal distribution, for 95%
  if (images <= 0) return {0, 1};
  auto n = static_cast<double>(images);
  double p = static_cast<double>(correct) / n;
  double middle = (p + kZ * kZ / (2 * n)) / (1 + kZ * kZ / n);
  double half = kZ / (1 + kZ * kZ / n) * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

bool near_chance(double accuracy, double chance, std::int64_t images) {
  return accuracy < 1 && accuracy <= chance * 2 && accuracy < chance + sampling_noise(images) + 0.05;
}

std::optional<std::string> suspicious(const Network& network, const Evaluation& evaluation, const std::string& data) {
  constexpr double kDoubtful = 0.7;        // below it, an assumption is worth a look
  constexpr std::int64_t kFewImages = 30;  // say nothing
  if (evaluation.held_out.defined()) {
    if (auto fit = fit_labels(evaluation.confusion - evaluation.held_out, evaluation.held_out))
      return fmt::format("accuracy is {:.2f}%, but {}", evaluation.accuracy * 100,
                         remedy_text(*fit, evaluation.class_names));
  }
  const ModelCard& card = network.card();
  double chance = 1.0 / static_cast<double>(network.info().classes);
  double noise = sampling_noise(evaluation.images);
  std::string hint = fmt::format("the first suspect is preprocessing, which is {} ({})", preprocessing_text(network),
                                 card.preprocess_known ? "stated" : "assumed, for the file does not say");
  if (network.info().input.size() == 3)
    hint += fmt::format("; find it with `galvani inspect {} --data {} --guess`", shell_word(network.info().path),
                        shell_word(data));
  if (card.accuracy && evaluation.accuracy < *card.accuracy - 0.05 - noise)
    return fmt::format("accuracy is {:.2f}% where the model states {:.2f}%{}: {}", evaluation.accuracy * 100,
                       *card.accuracy * 100, card.accuracy_data.empty() ? "" : " on " + card.accuracy_data, hint);
  if (network.info().classes < 2 || evaluation.images < kFewImages) return std::nullopt;
  // A network that is only fed wrongly is seldom so wrong.
  auto correct = std::llround(evaluation.accuracy * static_cast<double>(evaluation.images));
  if (wilson_interval(correct, evaluation.images).high < chance)
    return fmt::format(
        "accuracy is {:.2f}%, far below chance: inputs that were chosen for being wrong, such as exported faults? "
        "Labels "
        "that mean other classes than the network's? Else {}",
        evaluation.accuracy * 100, hint);
  if (near_chance(evaluation.accuracy, chance, evaluation.images))
    return fmt::format("accuracy is {:.2f}%, near chance: {}", evaluation.accuracy * 100, hint);
  if (!card.preprocess_known && evaluation.accuracy < kDoubtful)
    return fmt::format("accuracy is {:.2f}%: {}", evaluation.accuracy * 100, hint);
  return std::nullopt;
}

}  // namespace galvani
