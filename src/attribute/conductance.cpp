#include "galvani/attribute/conductance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "galvani/base/error.h"

namespace galvani {
namespace {

// Inputs between baseline and image that exist at a time; at least those of one image do.
constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;

// Rows [first, first + B) of `of_row`, the last one again where a micro-batch is padded.
at::Tensor rows_with_padding(const at::Tensor& of_row, const Pass& pass) {
  at::Tensor rows = of_row.narrow(0, pass.first, pass.count);
  std::int64_t missing = pass.logits.size(0) - pass.count;
  return missing == 0 ? rows : at::cat({rows, rows.narrow(0, pass.count - 1, 1).expand({missing})});
}

Objective target_score(const at::Tensor& targets) {
  return [targets](const Pass& pass) {
    return pass.logits.gather(1, rows_with_padding(targets, pass).unsqueeze(1)).squeeze(1);
  };
}

// The input that the network sees as all zeros: preprocessing is affine, a·x + b in each channel, so x = -b/a.
at::Tensor zero_input(const Network& network) {
  std::vector<std::int64_t> shape = network.info().input;
  shape.insert(shape.begin(), 1);
  const Preprocess& preprocess = network.card().preprocess;
  at::Tensor offset = preprocess.apply(at::zeros(shape));
  at::Tensor scale = preprocess.pull_back(at::ones_like(offset));
  return -(preprocess.pull_back(offset) / scale.square());
}

// The end of what one piece of a path saw, for the next piece.
struct Carry {
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> gradients;
};

// Adds up the paths of some images, micro-batch by micro-batch.
class PathSums {
 public:
  PathSums(const Network& network, const std::vector<int>& taps, const ConductanceOptions& options, std::int64_t images,
           bool full, const std::vector<at::Tensor>& start)
      : steps_(options.steps),
        trapezoid_(options.rule == ConductanceOptions::Rule::trapezoid),
        full_(full),
        start_(start),
        carries_(static_cast<std::size_t>(images)) {
    for (int tap : taps) taps_.push_back(&network.taps()[static_cast<std::size_t>(tap)]);
  }

  // Of the trapezoid rule: each image's gradient at the baseline, one row each.
  void start_gradients(std::vector<at::Tensor> rows) { start_gradients_ = std::move(rows); }

  // Rows are whole paths, or a piece of one: pieces of a path come to one worker in order.
  std::vector<at::Tensor> add(const Outputs& part, std::int64_t first) {
    std::int64_t count = part.logits.size(0);
    std::int64_t step = first % steps_;
    bool piece = step != 0 || count < steps_;
    Carry& carry = carries_[static_cast<std::size_t>(first / steps_)];
    std::vector<at::Tensor> sums;
    for (std::size_t i = 0; i < taps_.size(); ++i) {
      at::Tensor change = part.taps[i] - before(part.taps[i], start_[i], carry.values, i, step);
      at::Tensor gradient = part.tap_gradients[i];
      if (trapezoid_) {
        at::Tensor begin = start_gradients_[i].narrow(0, first / steps_, (count + steps_ - 1) / steps_);
        gradient = (gradient + before(gradient, begin, carry.gradients, i, step)) * 0.5;
      }
      sums.push_back(sum(change.mul_(gradient), *taps_[i], piece ? count : steps_));
    }
    bool goes_on = piece && step + count < steps_;
    carry = goes_on ? ends_of(part) : Carry();
    return sums;
  }

 private:
  // What stood one step before each row: the row above, or the start of the path, or the end of the piece before.
  at::Tensor before(const at::Tensor& rows, const at::Tensor& start, const std::vector<at::Tensor>& carried,
                    std::size_t tap, std::int64_t step) const {
    at::Tensor result = at::empty_like(rows);
    std::int64_t count = rows.size(0);
    if (count > 1) result.narrow(0, 1, count - 1).copy_(rows.narrow(0, 0, count - 1));
    if (step != 0) {
      result.narrow(0, 0, 1).copy_(carried[tap]);
      return result;
    }
    for (std::int64_t row = 0; row < count; row += steps_)
      result.narrow(0, row, 1).copy_(start.narrow(0, std::min(row / steps_, start.size(0) - 1), 1));
    return result;
  }

  // [rows, ...shape] → [rows / length, neurons] or [rows / length, ...shape].
  at::Tensor sum(const at::Tensor& products, const Tap& tap, std::int64_t length) const {
    at::Tensor paths = products.unflatten(0, std::vector<std::int64_t>{-1, length}).sum(1);
    std::vector<std::int64_t> axes = tap.other_axes();
    return full_ || axes.empty() ? paths.contiguous() : paths.mean(axes);
  }

  Carry ends_of(const Outputs& part) const {
    Carry carry;
    std::int64_t last = part.logits.size(0) - 1;
    for (std::size_t i = 0; i < taps_.size(); ++i) {
      carry.values.push_back(part.taps[i].narrow(0, last, 1).clone());
      if (trapezoid_) carry.gradients.push_back(part.tap_gradients[i].narrow(0, last, 1).clone());
    }
    return carry;
  }

  std::int64_t steps_;
  bool trapezoid_;
  bool full_;
  const std::vector<at::Tensor>& start_;
  std::vector<at::Tensor> start_gradients_;
  std::vector<const Tap*> taps_;
  std::vector<Carry> carries_;  // of each image, while it is cut
};

}  // namespace

OptionSchema ConductanceOptions::schema() {
  return {
      {"steps", std::int64_t{50}, "points between baseline and input, a forward and backward pass each", 1, 1e5, {}},
      {"rule",
       std::string("riemann"),
       "a step's gradient: at its end, or the mean of both ends",
       {},
       {},
       {"riemann", "trapezoid"}},
      {"baseline",
       std::string("zero"),
       "where paths start: what the network sees as zero, or a black image",
       {},
       {},
       {"zero", "black"}}};
}

ConductanceOptions ConductanceOptions::from(const Options& options) {
  ConductanceOptions result;
  result.steps = options.integer("steps");
  result.rule = options.text("rule") == "trapezoid" ? Rule::trapezoid : Rule::riemann;
  result.baseline = options.text("baseline") == "black" ? Baseline::black : Baseline::zero;
  return result;
}

Conductance::Conductance(Network& network, std::vector<int> taps, const ConductanceOptions& options)
    : network_(network), taps_(std::move(taps)), options_(options), version_(network.weights_version()) {
  if (taps_.empty()) bad_usage("conductance: no layer is chosen");
  if (options_.steps < 1) bad_usage("conductance: at least one step is needed");
  baseline_ = zero_input(network);
  if (options_.baseline == ConductanceOptions::Baseline::black) baseline_.zero_();
}

// Values and scores at the baseline are the same for every image, gradients for every image of a class.
void Conductance::learn_baseline(const at::Tensor& targets) {
  std::lock_guard<std::mutex> lock(mutex_);
  bool trapezoid = options_.rule == ConductanceOptions::Rule::trapezoid;
  std::vector<std::int64_t> missing;
  for (std::int64_t i = 0; i < targets.size(0); ++i) {
    auto label = targets.data_ptr<std::int64_t>()[i];
    if (trapezoid && gradient_.count(label) == 0) {
      gradient_[label] = {};
      missing.push_back(label);
    }
  }
  if (start_.empty() && missing.empty()) missing.push_back(0);
  if (missing.empty()) return;
  auto n = static_cast<std::int64_t>(missing.size());
  std::vector<std::int64_t> many(static_cast<std::size_t>(baseline_.dim()), -1);
  many[0] = n;
  Request request;
  request.taps = taps_;
  request.form = TapForm::full;
  request.objective = target_score(at::tensor(missing, at::kLong));
  request.tap_gradients = true;
  Outputs outputs = network_.run(baseline_.expand(many).contiguous(), request);
  if (start_.empty()) {
    for (const at::Tensor& tap : outputs.taps) start_.push_back(tap.narrow(0, 0, 1).clone());
    start_scores_ = outputs.logits[0].clone();
  }
  for (std::int64_t i = 0; trapezoid && i < n; ++i) {
    for (const at::Tensor& of_tap : outputs.tap_gradients)
      gradient_[missing[static_cast<std::size_t>(i)]].push_back(of_tap.narrow(0, i, 1).clone());
  }
}

void Conductance::run_some(const at::Tensor& images, const at::Tensor& targets, bool full, Conductances& all,
                           std::int64_t first) {
  std::int64_t n = images.size(0);
  std::int64_t steps = options_.steps;
  std::vector<std::int64_t> per_step(static_cast<std::size_t>(images.dim()) + 1, 1);
  per_step[1] = steps;
  at::Tensor share = at::arange(1, steps + 1, at::kFloat).div_(static_cast<double>(steps)).view(per_step);
  at::Tensor way = (images.to(at::kFloat) - baseline_).unsqueeze(1);
  at::Tensor points = (way * share).add_(baseline_.unsqueeze(1)).flatten(0, 1);
  PathSums sums(network_, taps_, options_, n, full, start_);
  if (options_.rule == ConductanceOptions::Rule::trapezoid) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<at::Tensor> begins;
    for (std::size_t tap = 0; tap < taps_.size(); ++tap) {
      std::vector<at::Tensor> rows;
      for (std::int64_t i = 0; i < n; ++i) rows.push_back(gradient_.at(targets[i].item<std::int64_t>())[tap]);
      begins.push_back(at::cat(rows));
    }
    sums.start_gradients(std::move(begins));
  }
  Request request;
  request.taps = taps_;
  request.form = TapForm::full;
  request.objective = target_score(targets.repeat_interleave(steps));
  request.tap_gradients = true;
  request.group = steps;
  request.reducer = [&sums](const Outputs& part, std::int64_t row) { return sums.add(part, row); };
  Outputs outputs = network_.run(points, request);
  passes_ += n * steps;
  for (std::size_t tap = 0; tap < taps_.size(); ++tap) {
    // A path that was cut left a row for each of its pieces.
    const at::Tensor& rows = outputs.reduced[tap];
    at::Tensor joined = rows.size(0) == n ? rows : rows.unflatten(0, std::vector<std::int64_t>{n, -1}).sum(1);
    all.taps[tap].narrow(0, first, n).copy_(joined);
  }
  at::Tensor ends = at::arange(1, n + 1, at::kLong).mul_(steps).sub_(1);
  at::Tensor scores = outputs.logits.index_select(0, ends).gather(1, targets.unsqueeze(1)).squeeze(1);
  all.difference.narrow(0, first, n).copy_(scores - start_scores_.index_select(0, targets));
}

Conductances Conductance::run(const at::Tensor& images, const at::Tensor& targets, bool full) {
  if (network_.weights_version() != version_)
    bad_usage("{}: its weights changed after its baseline was looked at", network_.info().path);
  std::int64_t n = images.size(0);
  if (targets.dim() != 1 || targets.size(0) != n || targets.scalar_type() != at::kLong)
    bad_usage("conductance needs one class for each of {} inputs", n);
  Conductances all;
  for (int index : taps_) {
    const Tap& tap = network_.taps()[static_cast<std::size_t>(index)];
    std::vector<std::int64_t> shape = full ? tap.shape : std::vector<std::int64_t>{tap.neurons()};
    shape.insert(shape.begin(), n);
    all.taps.push_back(at::empty(shape));
  }
  all.difference = at::empty({n});
  if (n == 0) return all;
  at::Tensor wanted = targets.contiguous();
  if (wanted.min().item<std::int64_t>() < 0 || wanted.max().item<std::int64_t>() >= network_.info().classes)
    bad_usage("conductance: there is a target that is none of the {} classes", network_.info().classes);
  learn_baseline(wanted);
  // Whole micro-batches, so that what shares one does not depend on how much memory there is.
  std::int64_t bytes = images[0].numel() * 4 * options_.steps;
  std::int64_t together = std::max<std::int64_t>(1, network_.execution().micro_batch / options_.steps);
  std::int64_t piece = std::max<std::int64_t>(1, kMostBytes / (bytes * together)) * together;
  for (std::int64_t first = 0; first < n; first += piece) {
    std::int64_t count = std::min(piece, n - first);
    run_some(images.narrow(0, first, count), wanted.narrow(0, first, count), full, all, first);
  }
  return all;
}

std::vector<int> evenly_chosen(const std::vector<int>& taps, std::int64_t count) {
  auto n = static_cast<std::int64_t>(taps.size());
  if (count >= n) return taps;
  if (count == 1) return {taps.back()};
  std::vector<int> result;
  for (std::int64_t i = 0; i < count; ++i) {
    double place = static_cast<double>(i) * static_cast<double>(n - 1) / static_cast<double>(count - 1);
    result.push_back(taps[static_cast<std::size_t>(std::llround(place))]);
  }
  return result;
}

}  // namespace galvani
