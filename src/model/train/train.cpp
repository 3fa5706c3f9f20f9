#include "galvani/model/train.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/script.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/log.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/model/evaluate.h"
#include "model/network_impl.h"
#include "model/train/checkpoint.h"
#include "model/train/training_graph.h"

namespace galvani {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kSaveEvery{60};

class Training {
 public:
  Training(Network& network, const Dataset& data, const Dataset& validation, const TrainOptions& options)
      : network_(network),
        impl_(network.impl()),
        data_(data),
        validation_(validation),
        options_(options),
        slots_((options.batch + options.micro_batch - 1) / options.micro_batch),
        graph_(impl_, slots_),
        optimizer_(optimizers().create(Spec::parse(options.optimizer))),
        schedule_(schedules().create(Spec::parse(options.schedule))),
        rng_(Rng(options.seed).derive("train")) {
    for (const Spec& spec : Spec::parse_list(options.augment)) {
      if (spec.name != "none") augment_.push_back(augmentations().create(spec));
    }
    optimizer_->prepare(graph_.parameters());
    state_.settings = settings();
  }

  TrainResult run(const std::function<void(const EpochReport&)>& listener) {
    TrainResult result;
    result.resumed = resume();
    for (const EpochReport& report : state_.reports) listener(report);
    while (state_.epoch < options_.epochs && state_.stopped.empty()) {
      state_.reports.push_back(run_epoch());
      listener(state_.reports.back());
      if (improved()) remember_best();
      state_.epoch += 1;
      state_.step = state_.correct = state_.seen = 0;
      state_.loss_sum = 0;
      std::int64_t since_best = state_.epoch - state_.best_epoch;
      if (state_.stopped.empty() && options_.early_stop > 0 && since_best >= options_.early_stop)
        state_.stopped = fmt::format("no improvement for {} epochs", options_.early_stop);
      save();
    }
    result.stopped = state_.stopped;
    if (options_.early_stop > 0 && !best_.empty()) restore_best();
    result.epochs = state_.reports;
    return result;
  }

 private:
  std::string settings() const {
    return fmt::format(
        "model = {}\nstart = {}\ndata = {} ({})\nbatch = {}\nmicro-batch = {}\nepochs = {}\noptimizer = {}\nschedule = "
        "{}\naugment "
        "= {}\n"
        "label smoothing = {}\nearly stop = {}\nstop at = {}\nseed = {}\nvalidation = {} ({})\n",
        sha256(impl_.executor->structure()).substr(0, 16), hash_of_start(), data_.name,
        content_hash(data_).substr(0, 16), options_.batch, options_.micro_batch, options_.epochs,
        optimizers().options(Spec::parse(options_.optimizer)).str(),
        schedules().options(Spec::parse(options_.schedule)).str(), options_.augment, options_.label_smoothing,
        options_.early_stop, options_.stop_at, options_.seed, validation_.name,
        content_hash(validation_).substr(0, 16));
  }

  // Weights and preprocessing that training sets out from.
  std::string hash_of_start() const {
    std::string all = impl_.card.preprocess.str();
    for (const auto* group : {&graph_.parameters(), &graph_.statistics()}) {
      for (const at::Tensor& t : *group)
        all += sha256({static_cast<const char*>(t.contiguous().data_ptr()), t.nbytes()});
    }
    return sha256(all).substr(0, 16);
  }

  std::vector<at::Tensor> live_tensors() {
    std::vector<at::Tensor> tensors = graph_.parameters();
    tensors.insert(tensors.end(), graph_.statistics().begin(), graph_.statistics().end());
    for (at::Tensor* t : optimizer_->state()) tensors.push_back(*t);
    return tensors;
  }

  bool resume() {
    if (options_.checkpoint.empty() || !std::filesystem::exists(options_.checkpoint)) return false;
    Checkpoint found = load_checkpoint(options_.checkpoint);
    if (std::string change = difference(found.settings, state_.settings); !change.empty())
      bad_usage("{}: is of a training with other settings ({}); delete it to start anew", options_.checkpoint.string(),
                change);
    std::vector<at::Tensor> live = live_tensors();
    std::size_t weights = graph_.parameters().size() + graph_.statistics().size();
    bool fits = found.tensors.size() == live.size() || found.tensors.size() == live.size() + weights;
    for (std::size_t i = 0; fits && i < live.size(); ++i) fits = found.tensors[i].sizes() == live[i].sizes();
    if (!fits) bad_input("{}: does not fit the model", options_.checkpoint.string());
    at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < live.size(); ++i) live[i].copy_(found.tensors[i]);
    best_.assign(found.tensors.begin() + static_cast<std::ptrdiff_t>(live.size()), found.tensors.end());
    state_ = std::move(found);
    state_.tensors.clear();
    return true;
  }

  void save() {
    saved_ = Clock::now();
    if (options_.checkpoint.empty()) return;
    state_.tensors = live_tensors();
    state_.tensors.insert(state_.tensors.end(), best_.begin(), best_.end());
    save_checkpoint(options_.checkpoint, state_);
    state_.tensors.clear();
  }

  bool improved() const {
    double best = 0;
    for (std::size_t i = 0; i + 1 < state_.reports.size(); ++i) best = std::max(best, state_.reports[i].accuracy);
    return state_.reports.size() == 1 || state_.reports.back().accuracy > best;
  }

  void remember_best() {
    state_.best_epoch = state_.epoch + 1;
    if (options_.early_stop == 0) return;
    best_.clear();
    for (const at::Tensor& t : graph_.parameters()) best_.push_back(t.detach().clone());
    for (const at::Tensor& t : graph_.statistics()) best_.push_back(t.clone());
  }

  void restore_best() {
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> live = live_tensors();
    for (std::size_t i = 0; i < best_.size(); ++i) live[i].copy_(best_[i]);
  }

  [[noreturn]] void stop_here() {
    save();
    fail(ErrorCode::interrupted, "interrupted{}",
         options_.checkpoint.empty() ? "" : "; the same command goes on from " + options_.checkpoint.string());
  }

  // The accuracy on the validation data; an interrupt meanwhile loses nothing.
  double validate() {
    try {
      return evaluate(network_, validation_).accuracy;
    } catch (const Error& e) {
      if (e.code() == ErrorCode::interrupted) stop_here();
      throw;
    }
  }

  double rate_at(std::int64_t step, std::int64_t steps) const {
    double epoch = static_cast<double>(state_.epoch) + static_cast<double>(step) / static_cast<double>(steps);
    return optimizer_->base_rate() * schedule_(epoch, static_cast<double>(options_.epochs));
  }

  // Under-training looks ten times an epoch, before a step, so that a resumed run looks at the same moments.
  bool good_enough(std::int64_t steps, double& accuracy) {
    std::int64_t every = std::max<std::int64_t>(1, steps / 10);
    if (options_.stop_at <= 0 || state_.step == 0 || state_.step % every != 0) return false;
    accuracy = validate();
    return accuracy >= options_.stop_at;
  }

  EpochReport run_epoch() {
    auto start = Clock::now();
    std::vector<std::int64_t> order(static_cast<std::size_t>(data_.size()));
    std::iota(order.begin(), order.end(), 0);
    rng_.derive("order").derive(static_cast<std::uint64_t>(state_.epoch)).shuffle(order);
    std::int64_t steps = (data_.size() + options_.batch - 1) / options_.batch;
    Progress progress(fmt::format("epoch {}/{}", state_.epoch + 1, options_.epochs), data_.size(), "images");
    progress.advance(state_.step * options_.batch);
    double accuracy = 0;
    bool reached = false;
    while (state_.step < steps && !(reached = good_enough(steps, accuracy))) {
      std::int64_t first = state_.step * options_.batch;
      std::int64_t count = std::min(options_.batch, data_.size() - first);
      // One image alone has no batch statistics.
      if (count > 1 || data_.size() == 1) step(order.data() + first, count, rate_at(state_.step, steps));
      state_.step += 1;
      progress.advance(count);
      progress.note(fmt::format("loss {:.3f}", mean_loss()));
      if (interrupted()) stop_here();
      if (Clock::now() - saved_ > kSaveEvery) save();
    }
    progress.finish();
    if (!reached) {
      accuracy = validate();
      reached = options_.stop_at > 0 && accuracy >= options_.stop_at;
    }
    if (reached) state_.stopped = fmt::format("the accuracy reached {:.2f}%", accuracy * 100);
    return {state_.epoch + 1,
            rate_at(std::max<std::int64_t>(0, state_.step - 1), steps),
            mean_loss(),
            static_cast<double>(state_.correct) / static_cast<double>(std::max<std::int64_t>(1, state_.seen)),
            accuracy,
            std::chrono::duration<double>(Clock::now() - start).count()};
  }

  double mean_loss() const { return state_.loss_sum / static_cast<double>(std::max<std::int64_t>(1, state_.seen)); }

  // One batch: every slot's gradient from its own micro-batch, summed in slot order.
  void step(const std::int64_t* indices, std::int64_t count, double rate) {
    std::int64_t used = (count + options_.micro_batch - 1) / options_.micro_batch;
    std::vector<SlotResult> results(static_cast<std::size_t>(used));
    graph_.spread_statistics();
    workers().run(used, [&](std::int64_t slot, int) {
      std::int64_t first = slot * count / used;
      std::int64_t last = (slot + 1) * count / used;
      results[static_cast<std::size_t>(slot)] = gradients(slot, indices + first, last - first, count);
    });
    graph_.merge_statistics(used);
    double loss = 0;
    for (const SlotResult& r : results) {
      loss += r.loss;
      state_.correct += r.correct;
    }
    if (!std::isfinite(loss))
      bad_usage("training diverged: the loss is {}; lower the learning rate (--optimizer {}:lr=...)", loss,
                Spec::parse(options_.optimizer).name);
    state_.loss_sum += loss;
    state_.seen += count;
    state_.updates += 1;
    const auto& parameters = graph_.parameters();
    workers().run(static_cast<std::int64_t>(parameters.size()), [&](std::int64_t i, int) {
      at::NoGradGuard no_grad;
      auto p = static_cast<std::size_t>(i);
      at::Tensor sum = results[0].gradients[p];
      if (!sum.defined()) return;
      sum = sum.contiguous();
      for (std::size_t s = 1; s < results.size(); ++s) sum.add_(results[s].gradients[p]);
      at::Tensor parameter = parameters[p];
      optimizer_->update(p, parameter, sum, rate, state_.updates);
    });
  }

  struct SlotResult {
    std::vector<at::Tensor> gradients;
    double loss = 0;  // summed over the images
    std::int64_t correct = 0;
  };

  SlotResult gradients(std::int64_t slot, const std::int64_t* indices, std::int64_t count, std::int64_t batch) {
    Rng stream = rng_.derive({static_cast<std::uint64_t>(state_.epoch), static_cast<std::uint64_t>(state_.step)});
    at::Tensor images = at::empty({count, impl_.info.input[0], impl_.info.input[1], impl_.info.input[2]}, at::kByte);
    at::Tensor labels = at::empty({count}, at::kLong);
    std::int64_t bytes = images[0].numel();
    for (std::int64_t k = 0; k < count; ++k) {
      std::memcpy(images.data_ptr<std::uint8_t>() + k * bytes,
                  data_.images.data_ptr<std::uint8_t>() + indices[k] * bytes, static_cast<std::size_t>(bytes));
      labels.data_ptr<std::int64_t>()[k] = data_.labels.data_ptr<std::int64_t>()[indices[k]];
      if (augment_.empty()) continue;
      at::Tensor image = images[k];
      Rng rng = stream.derive("augment").derive(static_cast<std::uint64_t>(indices[k]));
      for (const Augmentation& change : augment_) change(image, rng);
    }
    at::AutoGradMode enable(true);
    Rng dropout = stream.derive("dropout").derive(static_cast<std::uint64_t>(slot));
    at::Tensor logits = graph_.forward(slot, impl_.card.preprocess.apply(images), dropout);
    at::Tensor loss = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum, -100, options_.label_smoothing);
    SlotResult result;
    result.gradients = torch::autograd::grad({loss / static_cast<double>(batch)}, graph_.parameters(), {}, c10::nullopt,
                                             /*create_graph=*/false, /*allow_unused=*/true);
    result.loss = loss.item<double>();
    result.correct = (verdicts(logits) == labels).sum().item<std::int64_t>();
    return result;
  }

  Network& network_;
  Network::Impl& impl_;
  const Dataset& data_;
  const Dataset& validation_;
  TrainOptions options_;
  std::int64_t slots_;
  TrainingGraph graph_;
  std::unique_ptr<Optimizer> optimizer_;
  Schedule schedule_;
  std::vector<Augmentation> augment_;
  Rng rng_;
  Checkpoint state_;
  std::vector<at::Tensor> best_;
  Clock::time_point saved_ = Clock::now();
};

}  // namespace

TrainResult train(Network& network, const Dataset& data, const Dataset& validation, const TrainOptions& options,
                  const std::function<void(const EpochReport&)>& listener) {
  if (options.epochs < 0 || options.batch < 1 || options.micro_batch < 1)
    bad_usage("epochs, batch and micro-batch must be positive");
  for (const Dataset* part : {&data, &validation}) {
    check_fits(network, part->images, part->name);
    if (part->size() == 0) bad_input("{}: has no images", part->name);
    if (!part->images.is_contiguous() || !part->labels.is_contiguous())
      fail(ErrorCode::internal, "{}: images and labels must be contiguous", part->name);
    if (!part->labelled()) bad_input("{}: has images without a label, so it cannot be trained on", part->name);
    check_labels(network, *part);
  }
  if (network.info().fixed_batch > 0)
    bad_input("{}: takes batches of {} only, so it cannot be trained", network.info().path, network.info().fixed_batch);
  return Training(network, data, validation, options).run(listener);
}

}  // namespace galvani
