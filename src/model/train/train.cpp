#include "galvani/model/train.h"

#include <fmt/format.h>
#include <torch/script.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/trainer.h"
#include "model/network_impl.h"

namespace galvani {
namespace {

// What an epoch's reports become in a checkpoint, and back.
void put_report(std::vector<double>& numbers, const EpochReport& r) {
  for (double v : {static_cast<double>(r.epoch), r.rate, r.loss, r.train_accuracy, r.accuracy, r.seconds})
    numbers.push_back(v);
}

std::vector<EpochReport> reports_of(const std::vector<double>& n) {
  std::vector<EpochReport> reports;
  for (std::size_t i = 0; i + 6 <= n.size(); i += 6)
    reports.push_back({static_cast<std::int64_t>(n[i]), n[i + 1], n[i + 2], n[i + 3], n[i + 4], n[i + 5]});
  return reports;
}

class Training {
 public:
  Training(Network& network, const Dataset& data, const Dataset& validation, const TrainOptions& options)
      : network_(network),
        impl_(network.impl()),
        data_(data),
        validation_(validation),
        options_(options),
        trainer_({&network}, {{"network", {{0, "*", options.frozen}}, options.optimizer}},
                 {options.batch, options.micro_batch, options.seed, options.batch_statistics}),
        shuffled_(data.size(), options.batch, trainer_.rng()),
        schedule_(schedules().create(Spec::parse(options.schedule))) {
    for (const Spec& spec : Spec::parse_list(options.augment)) {
      if (spec.name != "none") augment_.push_back(augmentations().create(spec));
    }
    if (options.share > 0)
      mixed_.emplace(data.size() - options.apart, options.apart, options.share, options.batch, trainer_.rng());
  }

  TrainResult run(const std::function<void(const EpochReport&)>& listener) {
    TrainLoop loop;
    loop.epochs = options_.epochs;
    loop.rows = mixed_ ? mixed_->size() : data_.size();
    loop.batch = options_.batch;
    loop.unit = data_.type().noun();
    loop.checkpoint = options_.checkpoint;
    loop.settings = settings();
    loop.step = [this] { return step(); };
    loop.enough = [this] { return good_enough(); };
    loop.note = [this] { return fmt::format("loss {:.3f}", mean_loss()); };
    loop.resumed = [&] {
      for (const EpochReport& report : reports_of(trainer_.state().numbers)) listener(report);
    };
    loop.epoch_ended = [&] { end_epoch(listener); };
    TrainResult result;
    result.resumed = trainer_.run(loop);
    const TrainState& state = trainer_.state();
    result.stopped = state.stopped;
    if (options_.early_stop > 0 && !state.kept.empty()) trainer_.set_weights(state.kept);
    result.epochs = reports_of(state.numbers);
    return result;
  }

 private:
  static constexpr std::size_t kLoss = 0, kCorrect = 1, kSeen = 2;  // figures, summed over an epoch

  std::string settings() const {
    std::string more;
    if (!options_.frozen.empty()) more += fmt::format("frozen = {}\n", options_.frozen);
    if (options_.apart > 0) more += fmt::format("apart = {}\nshare = {}\n", options_.apart, options_.share);
    if (options_.perturbation.change) more += fmt::format("perturbation = {}\n", options_.perturbation.name);
    if (!options_.batch_statistics) more += "batch norm = frozen\n";
    return fmt::format(
        "model = {}\nstart = {}\ndata = {} ({})\nbatch = {}\nmicro-batch = {}\nepochs = {}\noptimizer = {}\nschedule = "
        "{}\naugment "
        "= {}\n"
        "label smoothing = {}\nearly stop = {}\nstop at = {}\nseed = {}\nvalidation = {} ({})\n{}",
        sha256(impl_.executor->structure()).substr(0, 16), hash_of_start(), data_.name,
        content_hash(data_).substr(0, 16), options_.batch, options_.micro_batch, options_.epochs,
        optimizers().options(Spec::parse(options_.optimizer)).str(),
        schedules().options(Spec::parse(options_.schedule)).str(), options_.augment, options_.label_smoothing,
        options_.early_stop, options_.stop_at, options_.seed, validation_.name, content_hash(validation_).substr(0, 16),
        more);
  }

  // Weights and preprocessing that training sets out from.
  std::string hash_of_start() const {
    std::string all = impl_.card.preprocess.str();
    for (const at::Tensor& t : trainer_.weights())
      all += sha256({static_cast<const char*>(t.contiguous().data_ptr()), t.nbytes()});
    return sha256(all).substr(0, 16);
  }

  double sum(std::size_t figure) const {
    const std::vector<double>& sums = trainer_.state().sums;
    return figure < sums.size() ? sums[figure] : 0;
  }

  double mean_loss() const { return sum(kLoss) / std::max(1.0, sum(kSeen)); }

  // Factor on the learning rate.
  double rate_at(std::int64_t step) const {
    double epoch =
        static_cast<double>(trainer_.state().epoch) + static_cast<double>(step) / static_cast<double>(steps());
    return schedule_(epoch, static_cast<double>(options_.epochs));
  }

  std::int64_t steps() const { return mixed_ ? mixed_->steps() : shuffled_.steps(); }

  // Under-training looks ten times an epoch, before a step, so that a resumed run looks at the same moments.
  bool good_enough() {
    std::int64_t every = std::max<std::int64_t>(1, steps() / 10);
    std::int64_t step = trainer_.state().step;
    accuracy_.reset();
    if (options_.stop_at <= 0 || step == 0 || step % every != 0) return false;
    accuracy_ = evaluate(network_, validation_).accuracy;
    return *accuracy_ >= options_.stop_at;
  }

  void end_epoch(const std::function<void(const EpochReport&)>& listener) {
    TrainState& state = trainer_.state();
    // What ended the epoch early was measured already.
    if (!(accuracy_ && *accuracy_ >= options_.stop_at)) accuracy_ = evaluate(network_, validation_).accuracy;
    double accuracy = *accuracy_;
    EpochReport report{state.epoch + 1, trainer_.base_rate(0) * rate_at(std::max<std::int64_t>(0, state.step - 1)),
                       mean_loss(),     sum(kCorrect) / std::max(1.0, sum(kSeen)),
                       accuracy,        trainer_.seconds()};
    listener(report);
    put_report(state.numbers, report);
    if (options_.stop_at > 0 && accuracy >= options_.stop_at)
      state.stopped = fmt::format("the accuracy reached {:.2f}%", accuracy * 100);
    std::vector<EpochReport> reports = reports_of(state.numbers);
    auto better = [](const EpochReport& a, const EpochReport& b) { return a.accuracy < b.accuracy; };
    std::int64_t best = std::max_element(reports.begin(), reports.end(), better)->epoch;
    if (options_.early_stop == 0) return;
    if (best == report.epoch) {
      state.kept.clear();
      for (const at::Tensor& t : trainer_.weights()) state.kept.push_back(t.detach().clone());
    }
    if (state.stopped.empty() && report.epoch - best >= options_.early_stop)
      state.stopped = fmt::format("no improvement for {} epochs", options_.early_stop);
  }

  std::vector<double> step() {
    const TrainState& state = trainer_.state();
    Trainer::Step step;
    step.rows = mixed_ ? mixed_->rows(state.epoch, state.step) : shuffled_.rows(state.epoch, state.step);
    // One image alone has no batch statistics.
    if (step.rows.size() == 1 && data_.size() > 1) return {};
    step.groups = {0};
    step.rate = rate_at(state.step);
    return trainer_.step(step, [this](Slot& slot) { return loss(slot); });
  }

  SlotLoss loss(Slot& slot) const {
    auto count = static_cast<std::int64_t>(slot.rows().size());
    const SampleType type = data_.type();
    at::Tensor images = at::empty(type.batch(count), type.dtype());
    at::Tensor labels = at::empty({count}, at::kLong);
    for (std::int64_t k = 0; k < count; ++k) {
      std::int64_t row = slot.rows()[static_cast<std::size_t>(k)];
      std::memcpy(static_cast<char*>(images.data_ptr()) + static_cast<std::size_t>(k) * type.bytes(),
                  static_cast<const char*>(data_.images.data_ptr()) + static_cast<std::size_t>(row) * type.bytes(),
                  type.bytes());
      labels.data_ptr<std::int64_t>()[k] = data_.labels.data_ptr<std::int64_t>()[row];
      if (augment_.empty() || apart(row)) continue;
      at::Tensor image = images[k];
      Rng rng = slot.stream().derive("augment").derive(static_cast<std::uint64_t>(row));
      for (const Augmentation& change : augment_) change(image, rng);
    }
    if (options_.perturbation.change) images = perturbed(slot, images, labels);
    at::Tensor logits = slot.forward(0, impl_.prepare(images, {}))[0];
    at::Tensor loss = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum, -100, options_.label_smoothing);
    auto correct = (verdicts(logits) == labels).sum().item<std::int64_t>();
    return {loss / static_cast<double>(slot.batch()),
            {loss.item<double>(), static_cast<double>(correct), static_cast<double>(count)}};
  }

  bool apart(std::int64_t row) const { return row >= data_.size() - options_.apart; }

  // In float; rows that are apart as they are.
  at::Tensor perturbed(Slot& slot, const at::Tensor& images, const at::Tensor& labels) const {
    std::vector<std::int64_t> chosen;
    for (std::size_t k = 0; k < slot.rows().size(); ++k) {
      if (!apart(slot.rows()[k])) chosen.push_back(static_cast<std::int64_t>(k));
    }
    at::Tensor result = images.to(at::kFloat);
    if (chosen.empty()) return result;
    at::Tensor rows = at::tensor(chosen, at::kLong);
    at::Tensor changed = options_.perturbation.change(slot, images.index_select(0, rows), labels.index_select(0, rows));
    return result.index_copy(0, rows, changed);
  }

  Network& network_;
  Network::Impl& impl_;
  const Dataset& data_;
  const Dataset& validation_;
  TrainOptions options_;
  Trainer trainer_;
  ShuffledRows shuffled_;
  std::optional<MixedRows> mixed_;  // of data in two parts
  Schedule schedule_;
  std::vector<Augmentation> augment_;
  std::optional<double> accuracy_;  // on the validation data, if it was measured before the next step
};

}  // namespace

TrainResult train(Network& network, const Dataset& data, const Dataset& validation, const TrainOptions& options,
                  const std::function<void(const EpochReport&)>& listener) {
  if (options.epochs < 0 || options.batch < 1 || options.micro_batch < 1)
    bad_usage("epochs, batch and micro-batch must be positive");
  if (data.type().kind == SampleKind::audio && options.augment != "none")
    bad_usage("{}: augmentation is for images, not for sounds; leave out --augment {}", data.name,
              printable(options.augment));
  for (const Dataset* part : {&data, &validation}) {
    check_fits(network, part->images, part->name);
    if (part->size() == 0) bad_input("{}: has no inputs", part->name);
    if (!part->images.is_contiguous() || !part->labels.is_contiguous())
      fail(ErrorCode::internal, "{}: images and labels must be contiguous", part->name);
    if (!part->labelled())
      bad_input("{}: has {} without a label, so it cannot be trained on", part->name, part->type().noun());
    check_labels(network, *part);
  }
  if (options.apart < 0 || options.apart >= data.size() || options.share < 0 || options.share > 1 ||
      (options.share > 0 && options.apart == 0))
    fail(ErrorCode::internal, "{} rows apart with a share of {} do not fit {} rows", options.apart, options.share,
         data.size());
  if (network.info().fixed_batch > 0)
    bad_input("{}: takes batches of {} only, so it cannot be trained", network.info().path, network.info().fixed_batch);
  return Training(network, data, validation, options).run(listener);
}

}  // namespace galvani
