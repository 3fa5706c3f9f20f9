#include "galvani/model/evaluate.h"

#include <fmt/format.h>
#include <torch/script.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"

namespace galvani {
namespace {

constexpr float kCloseCall = 1e-4F;
constexpr std::int64_t kMicroBatchesPerChunk = 16;

}  // namespace

std::int64_t settle_close_calls(Network& network, const at::Tensor& images, at::Tensor& logits) {
  if (logits.size(1) < 2 || images.size(0) == 0) return 0;
  at::Tensor best = std::get<0>(logits.topk(2, 1));
  at::Tensor margin = best.select(1, 0) - best.select(1, 1);
  // Written so that a margin that is no number is a close call.
  at::Tensor close = (margin > logits.abs().amax(1) * kCloseCall).logical_not().nonzero().flatten();
  if (close.numel() == 0) return 0;
  Request alone;
  alone.alone = true;
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

std::string verdict_name(const Network& network, const Dataset& data, std::int64_t verdict) {
  if (verdict == kNotANumber) return kNotANumberName;
  const auto& names = network.card().class_names;
  auto i = static_cast<std::size_t>(verdict);
  return i < names.size() ? names[i] : data.class_name(verdict);
}

Predictions predict(Network& network, const at::Tensor& images) {
  Predictions result;
  result.logits = network.run(images).logits;
  result.reexamined = settle_close_calls(network, images, result.logits);
  result.labels = verdicts(result.logits);
  result.probabilities = result.logits.softmax(1);
  result.confidence = confidences(result.probabilities, result.labels);
  return result;
}

Predictions predict_all(Network& network, const Dataset& data, const std::string& title) {
  check_fits(network, data.images, data.name);
  std::int64_t chunk = network.execution().micro_batch * kMicroBatchesPerChunk * workers().size();
  Progress progress(title, data.size(), "images");
  std::vector<at::Tensor> labels, logits, probabilities, confidence;
  Predictions result{};
  for (std::int64_t first = 0; first < data.size(); first += chunk) {
    check_interrupt();
    std::int64_t count = std::min(chunk, data.size() - first);
    Predictions part = predict(network, data.images.narrow(0, first, count));
    labels.push_back(part.labels);
    logits.push_back(part.logits);
    probabilities.push_back(part.probabilities);
    confidence.push_back(part.confidence);
    result.reexamined += part.reexamined;
    progress.advance(count);
  }
  if (labels.empty()) return predict(network, data.images);
  result.labels = at::cat(labels);
  result.logits = at::cat(logits);
  result.probabilities = at::cat(probabilities);
  result.confidence = at::cat(confidence);
  return result;
}

Evaluation score(const Network& network, const Dataset& data, const Predictions& predictions) {
  if (!data.labelled()) bad_input("{}: has images without a label, so accuracy cannot be measured", data.name);
  std::int64_t classes = network.info().classes;
  if (auto largest = data.labels.max().item<std::int64_t>(); largest >= classes)
    bad_input("{}: has the label {}, but {} knows {} classes (0 to {})", data.name, largest, network.info().path,
              classes, classes - 1);
  Evaluation result;
  result.images = data.size();
  result.correct = (predictions.labels == data.labels).sum().item<std::int64_t>();
  result.accuracy = static_cast<double>(result.correct) / static_cast<double>(result.images);
  result.reexamined = predictions.reexamined;
  // Column 0 is kNotANumber.
  at::Tensor cells = data.labels * (classes + 1) + (predictions.labels - kNotANumber);
  at::Tensor counts = at::bincount(cells, {}, classes * (classes + 1)).view({classes, classes + 1});
  result.not_a_number = counts.select(1, 0).contiguous();
  result.confusion = counts.narrow(1, 1, classes).contiguous();
  return result;
}

Evaluation evaluate(Network& network, const Dataset& data) {
  return score(network, data, predict_all(network, data, "evaluating"));
}

std::optional<std::string> suspicious(const Network& network, const Evaluation& evaluation) {
  const ModelCard& card = network.card();
  double chance = 1.0 / static_cast<double>(network.info().classes);
  // Three standard errors keep a handful of images from raising an alarm.
  double noise = 3 * std::sqrt(0.25 / static_cast<double>(std::max<std::int64_t>(1, evaluation.images)));
  std::string hint = fmt::format(
      "the first suspect is preprocessing, which is {} ({}); set it with --range, --mean, --std, --channels, --layout",
      card.preprocess.str(), card.preprocess_known ? "stated" : "assumed, for the file does not say");
  if (card.accuracy && evaluation.accuracy < *card.accuracy - 0.05 - noise)
    return fmt::format("accuracy is {:.2f}% where the model states {:.2f}%{}: {}", evaluation.accuracy * 100,
                       *card.accuracy * 100, card.accuracy_data.empty() ? "" : " on " + card.accuracy_data, hint);
  if (network.info().classes > 1 && evaluation.images >= 30 && evaluation.accuracy < chance * 2 &&
      evaluation.accuracy < chance + noise + 0.05)
    return fmt::format("accuracy is {:.2f}%, near chance: {}", evaluation.accuracy * 100, hint);
  return std::nullopt;
}

}  // namespace galvani
