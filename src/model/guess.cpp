#include "galvani/model/guess.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/label_fit.h"
#include "model/input_arithmetic.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

constexpr double kAlike = 0.05;   // p from which two presets count as not told apart
constexpr double kNothing = 0.3;  // and from which their accuracies say nothing at all, about one standard error

Preprocess scaled(double low, double high, std::vector<double> mean = {}, std::vector<double> deviation = {}) {
  Preprocess result;
  result.low = low;
  result.high = high;
  result.mean = std::move(mean);
  result.deviation = std::move(deviation);
  return result;
}

// The numbers of a card are in the order of the model's channels.
Preprocess in_bgr(Preprocess rgb) {
  std::reverse(rgb.mean.begin(), rgb.mean.end());
  std::reverse(rgb.deviation.begin(), rgb.deviation.end());
  rgb.bgr = true;
  return rgb;
}

bool same(const Preprocess& a, const Preprocess& b) {
  return a.str() == b.str();
}

// Two-sided: how probable a split of wins + losses coin tosses at least as uneven is.
double sign_test(std::int64_t wins, std::int64_t losses) {
  std::int64_t n = wins + losses;
  std::int64_t fewer = std::min(wins, losses);
  double sum = 0;
  for (std::int64_t k = 0; k <= fewer; ++k) {
    auto of = [](std::int64_t i) { return std::lgamma(static_cast<double>(i) + 1); };
    sum += std::exp(of(n) - of(k) - of(n - k) - static_cast<double>(n) * std::log(2.0));
  }
  return std::min(1.0, 2 * sum);
}

struct Trial {
  PresetScore score;
  at::Tensor right;  // [N] bool
  at::Tensor said;   // [N] int64
};

Trial try_preset(Network& network, const PreprocessPreset& preset, const at::Tensor& images, const at::Tensor& labels,
                 Progress& progress) {
  ModelCard card = network.card();
  card.preprocess = preset.preprocess;
  network.set_card(card);
  Trial trial;
  trial.score.name = preset.name;
  trial.score.preprocess = preset.preprocess;
  std::vector<at::Tensor> said_all;
  std::int64_t n = images.size(0);
  std::int64_t piece = network.execution().micro_batch * 4 * workers().size();
  for (std::int64_t first = 0; first < n; first += piece) {
    std::int64_t count = std::min(piece, n - first);
    Predictions said = predict(network, images.narrow(0, first, count));
    at::Tensor truth = labels.narrow(0, first, count);
    said_all.push_back(said.labels);
    // A score that is no number counts as the worst one a float can tell.
    at::Tensor likelihood = said.logits.log_softmax(1).gather(1, truth.unsqueeze(1)).squeeze(1);
    trial.score.loss -= at::nan_to_num(likelihood, -100, -100, -100).clamp_min(-100).sum().item<double>();
    progress.advance(count);
    check_interrupt();
  }
  trial.said = at::cat(said_all);
  trial.right = trial.said == labels;
  trial.score.correct = trial.right.sum().item<std::int64_t>();
  trial.score.accuracy = static_cast<double>(trial.score.correct) / static_cast<double>(n);
  trial.score.loss /= static_cast<double>(n);
  ShareInterval interval = wilson_interval(trial.score.correct, n);
  trial.score.low = interval.low;
  trial.score.high = interval.high;
  return trial;
}

// p of the hypothesis that both are right equally often, from the images where only one is.
double told_apart(const Trial& a, const Trial& b) {
  return sign_test((a.right & ~b.right).sum().item<std::int64_t>(), (b.right & ~a.right).sum().item<std::int64_t>());
}

// By accuracy; but of those within a standard error of the most accurate one the one with the least loss comes first:
// it says more of each image than right or wrong does.
// Where the graph itself makes small numbers of bytes, bytes are what it takes, as far as the images do not say
// otherwise.
void best_first(std::vector<Trial>& trials, bool graph_takes_bytes) {
  auto less_loss = [](const Trial& a, const Trial& b) { return a.score.loss < b.score.loss; };
  std::stable_sort(trials.begin(), trials.end(), [&](const Trial& a, const Trial& b) {
    return a.score.correct != b.score.correct ? a.score.correct > b.score.correct : less_loss(a, b);
  });
  auto close_end = std::find_if(trials.begin(), trials.end(),
                                [&](const Trial& trial) { return told_apart(trials[0], trial) < kNothing; });
  auto best = std::min_element(trials.begin(), close_end, less_loss);
  std::rotate(trials.begin(), best, best + 1);
  if (!graph_takes_bytes) return;
  auto bytes = std::find_if(trials.begin(), trials.end(), [&](const Trial& trial) {
    const Preprocess& p = trial.score.preprocess;
    return p.low == 0 && p.high == 255 && p.mean.empty() && told_apart(trials[0], trial) >= kAlike;
  });
  if (bytes != trials.end()) std::rotate(trials.begin(), bytes, bytes + 1);
}

// What would make more of the labels right than the best preset does of them as they are.
std::optional<LabelFit> labels_of_other_classes(const std::vector<Trial>& trials, const at::Tensor& labels,
                                                std::int64_t classes) {
  std::optional<LabelFit> best;
  double as_they_are = 0;
  for (const Trial& trial : trials) {
    as_they_are = std::max(as_they_are, trial.score.accuracy);
    auto fit = fit_labels(labels, trial.said, classes);
    if (fit && (!best || fit->accuracy > best->accuracy)) best = fit;
  }
  return best && best->accuracy > as_they_are ? best : std::nullopt;
}

struct Candidate {
  std::unique_ptr<Network> network;
  DataView data;
};

// One for every layout that the graph takes the data in.
std::vector<Candidate> in_every_layout(const GuessSource& source, const CardFlags& flags) {
  std::vector<std::string> layouts = {"nchw", "nhwc"};
  if (!flags.layout.empty()) layouts = {flags.layout};
  std::vector<Candidate> result;
  std::optional<Error> first;
  for (const std::string& layout : layouts) {
    try {
      std::unique_ptr<Network> network = source.load(layout);
      // One channel has one order.
      if (!result.empty() && !network->info().graph_input.empty() && network->info().input[0] == 1) continue;
      DataView data = source.data(*network);
      check_fits(*network, data.type().shape, data.name);
      result.push_back({std::move(network), std::move(data)});
    } catch (const Error& e) {
      if (e.code() != ErrorCode::bad_input) throw;
      if (!first) first = e;
    }
  }
  if (result.empty()) throw Error(*first);
  return result;
}

std::vector<PreprocessPreset> presets_for(const Network& network, const ModelCard& stated, const CardFlags& flags) {
  std::vector<PreprocessPreset> result;
  auto add = [&](PreprocessPreset preset) {
    preset.preprocess.channels_last = network.card().preprocess.channels_last;
    auto known = [&](const PreprocessPreset& other) { return same(other.preprocess, preset.preprocess); };
    if (std::none_of(result.begin(), result.end(), known)) result.push_back(std::move(preset));
  };
  for (const PreprocessPreset& preset : preprocess_presets(network.info().input.at(0))) {
    const Preprocess& p = preset.preprocess;
    bool bytes_only = network.info().number == "uint8" && (p.high != 255 || !p.mean.empty());
    bool other_order = !flags.channels.empty() && p.bgr != (flags.channels == "bgr");
    if (!bytes_only && !other_order) add(preset);
  }
  if (stated.preprocess_known) add({"as stated", stated.preprocess});
  return result;
}

}  // namespace

std::vector<PreprocessPreset> preprocess_presets(std::int64_t channels) {
  std::vector<PreprocessPreset> result = {{"0..1", scaled(0, 1)}};
  if (channels == 3) {
    result.push_back({"ImageNet mean and std", scaled(0, 1, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})});
    result.push_back({"-1..1", scaled(-1, 1)});
    result.push_back({"0..255", scaled(0, 255)});
    result.push_back({"0..255 less the mean (caffe)", scaled(0, 255, {123.68, 116.779, 103.939})});
    result.push_back({"CIFAR-10 mean and std", scaled(0, 1, {0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616})});
    // Many repositories have this one, the mean of the deviations within each image.
    result.push_back(
        {"CIFAR-10 mean, std of images", scaled(0, 1, {0.4914, 0.4822, 0.4465}, {0.2023, 0.1994, 0.2010})});
    for (std::size_t i = 0, n = result.size(); i < n; ++i)
      result.push_back({result[i].name, in_bgr(result[i].preprocess)});
  } else {
    result.push_back({"-1..1", scaled(-1, 1)});
    result.push_back({"0..255", scaled(0, 255)});
    if (channels != 1) return result;
    result.push_back({"MNIST mean and std", scaled(0, 1, {0.1307}, {0.3081})});
    result.push_back({"Fashion-MNIST mean and std", scaled(0, 1, {0.2860}, {0.3530})});
    result.push_back({"ImageNet mean and std of grey", scaled(0, 1, {0.449}, {0.226})});
    result.push_back({"MNIST mean alone", scaled(0, 1, {0.1307})});
    result.push_back({"-0.5..0.5", scaled(-0.5, 0.5)});
  }
  return result;
}

std::int64_t PreprocessGuess::tied() const {
  return std::count_if(scores.begin(), scores.end(), [](const PresetScore& s) { return s.tied; });
}

std::vector<std::int64_t> even_sample(const Labelled& data, std::int64_t most) {
  std::map<std::int64_t, std::vector<std::int64_t>> rows_of;
  auto labels = data.labels.accessor<std::int64_t, 1>();
  for (std::int64_t i = 0; i < labels.size(0); ++i) rows_of[labels[i]].push_back(i);
  std::vector<const std::vector<std::int64_t>*> classes;
  for (const auto& [label, rows] : rows_of) classes.push_back(&rows);
  // One more of every class in turn, until there are enough; where not all can have one more, those spread evenly.
  std::vector<std::size_t> quota(classes.size(), 0);
  for (auto left = static_cast<std::size_t>(most); left > 0;) {
    std::vector<std::size_t> open;
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (quota[c] < classes[c]->size()) open.push_back(c);
    }
    std::size_t round = std::min(left, open.size());
    if (round == 0) break;
    for (std::size_t i = 0; i < round; ++i) ++quota[open[i * open.size() / round]];
    left -= round;
  }
  std::vector<std::int64_t> result;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    for (std::size_t i = 0; i < quota[c]; ++i) result.push_back((*classes[c])[i * classes[c]->size() / quota[c]]);
  }
  std::sort(result.begin(), result.end());
  return result;
}

PreprocessGuess guess_preprocessing(const GuessSource& source, const CardFlags& flags, std::int64_t most) {
  std::vector<Candidate> candidates = in_every_layout(source, flags);
  const DataView& data = candidates[0].data;
  if (data.type().kind != SampleKind::image)
    bad_usage("{}: the usual preprocessings are those of images, and these are sounds", data.name);
  if (!data.labelled())
    bad_input("{}: has images without a label, so which preprocessing is right cannot be measured", data.name);
  check_labels(*candidates[0].network, data);
  std::vector<std::int64_t> rows = even_sample(data, most);
  at::Tensor images = data.fetch(rows);
  at::Tensor labels = data.labels.index_select(0, at::tensor(rows, at::kLong));
  auto n = static_cast<std::int64_t>(rows.size());
  std::vector<std::pair<Network*, PreprocessPreset>> plan;
  for (const Candidate& candidate : candidates) {
    Network& network = *candidate.network;
    for (PreprocessPreset& preset : presets_for(network, network.card(), flags))
      plan.emplace_back(&network, std::move(preset));
  }
  std::vector<Trial> trials;
  Progress progress("trying presets", n * static_cast<std::int64_t>(plan.size()), "images");
  for (const auto& [network, preset] : plan) trials.push_back(try_preset(*network, preset, images, labels, progress));
  progress.finish();
  PreprocessGuess guess;
  if (auto fit = labels_of_other_classes(trials, labels, candidates[0].network->info().classes)) {
    guess.label_shift = fit->shift;
    if (fit->shift == 0) guess.labels = remedy_text(*fit, data.class_names);
  }
  if (guess.label_shift != 0) {
    labels = labels + guess.label_shift;
    trials.clear();
    Progress again("with other labels", n * static_cast<std::int64_t>(plan.size()), "images");
    for (const auto& [network, preset] : plan) trials.push_back(try_preset(*network, preset, images, labels, again));
    again.finish();
  }
  std::optional<InputArithmetic> arithmetic = input_arithmetic(*candidates[0].network);
  guess.graph_takes_bytes = arithmetic && takes_bytes_as_they_are(*arithmetic);
  best_first(trials, guess.graph_takes_bytes);
  guess.data = data.name;
  guess.available = data.size();
  guess.images = n;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    PresetScore& score = trials[i].score;
    score.p = told_apart(trials[0], trials[i]);
    score.tied = i > 0 && score.p >= kAlike;
    guess.scores.push_back(score);
  }
  auto commonest = at::bincount(labels).max().item<std::int64_t>();
  double chance = static_cast<double>(commonest) / static_cast<double>(n);
  // Of one class alone chance is always right.
  guess.better_than_chance = chance < 1 && !near_chance(guess.scores[0].accuracy, chance, n);
  return guess;
}

fs::path card_beside(const fs::path& model) {
  return fs::path(model).replace_extension(".toml");
}

void refuse_card_beside(const fs::path& model) {
  for (const fs::path& path : {card_beside(model), fs::path(model.string() + ".toml")}) {
    std::error_code ignored;
    if (fs::exists(fs::symlink_status(path, ignored)))
      bad_usage("{} exists and is not overwritten: take it away, or leave out --write and change it by hand",
                path.string());
  }
}

void write_card_beside(const fs::path& model, const Preprocess& p, const std::string& remark,
                       std::int64_t label_shift) {
  refuse_card_beside(model);
  auto list = [](const std::vector<double>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); };
  std::string text = fmt::format("# {}\nrange = {}\n", remark, list({p.low, p.high}));
  if (!p.mean.empty()) text += "mean = " + list(p.mean) + "\n";
  if (!p.deviation.empty()) text += "std = " + list(p.deviation) + "\n";
  text += fmt::format("channels = \"{}\"\nlayout = \"{}\"\n", p.bgr ? "bgr" : "rgb", p.channels_last ? "nhwc" : "nchw");
  if (label_shift != 0) text += fmt::format("label_shift = {}\n", label_shift);
  write_file(card_beside(model), text);
}

}  // namespace galvani
