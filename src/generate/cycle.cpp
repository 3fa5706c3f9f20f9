#include "galvani/generate/cycle.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/model/train.h"
#include "galvani/model/trainer.h"
#include "galvani/model/translator.h"

namespace galvani {
namespace {

constexpr std::size_t kP = 0, kQ = 1, kCriticOfFirst = 2, kCriticOfSecond = 3;  // networks of the trainer
constexpr std::size_t kTranslatorGroup = 0, kCriticGroup = 1;                   // its groups
constexpr const char* kPrefixP = "p.";
constexpr const char* kPrefixQ = "q.";
constexpr std::int64_t kSummedAtOnce = 4096;
constexpr std::int64_t kEvaluatedAtOnce = 64;  // rows of a micro-batch while examples are looked at

Network::Options for_cycle(std::int64_t micro_batch) {
  Network::Options options;
  options.any_output = true;
  // Whatever is fastest here would make the figures differ from those of another machine.
  options.execution = {micro_batch, false, false};
  return options;
}

// From -1 to 1, as the translators take and give images.
Preprocess signed_unit() {
  Preprocess preprocess;
  preprocess.low = -1;
  preprocess.high = 1;
  return preprocess;
}

// All rows of a domain in an order of its own, again and again.
class EndlessRows {
 public:
  EndlessRows(std::int64_t n, const Rng& rng) : n_(n), rows_(n, 1, rng) {}
  std::int64_t at(std::int64_t k) { return rows_.rows(k / n_, k % n_)[0]; }

 private:
  std::int64_t n_;
  ShuffledRows rows_;
};

// Made images that a critic may be shown again (Shrivastava et al. 2017): half of the time it sees an old one, whose
// place the new one takes.
class MadeBefore {
 public:
  MadeBefore(std::int64_t room, std::vector<at::Tensor>& kept, std::size_t place)
      : room_(room), kept_(kept), place_(place) {}

  at::Tensor exchange(const at::Tensor& made, Rng rng) {
    if (room_ == 0) return made;
    if (kept_.size() <= place_) kept_.resize(place_ + 1);
    at::Tensor& old = kept_[place_];
    at::Tensor shown = made.clone();
    for (std::int64_t i = 0; i < made.size(0); ++i) {
      if (!old.defined() || old.size(0) < room_) {
        old = old.defined() ? at::cat({old, made.narrow(0, i, 1)}) : made.narrow(0, i, 1).clone();
        continue;
      }
      if (!rng.chance(0.5)) continue;
      auto slot = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(room_)));
      shown[i].copy_(old[slot]);
      old[slot].copy_(made[i]);
    }
    return shown;
  }

 private:
  std::int64_t room_;
  std::vector<at::Tensor>& kept_;  // of the trainer's state
  std::size_t place_;
};

// Fields of an epoch as a checkpoint keeps them, in one order for both ways.
template <class Epoch, class Visit>
void for_each_number(Epoch& e, Visit&& visit) {
  visit(e.epoch);
  for (auto* value : {&e.rate, &e.adversarial, &e.cycle, &e.identity, &e.critics, &e.seconds}) visit(*value);
  visit(e.figures.images);
  for (auto* value : {&e.figures.similarity, &e.figures.change, &e.figures.unchanged, &e.figures.transformed_similarity,
                      &e.figures.spread, &e.figures.variety})
    visit(*value);
  for (auto& value : e.figures.quantiles) visit(value);
}

std::vector<CycleEpoch> epochs_of(const std::vector<double>& numbers) {
  std::vector<CycleEpoch> result;
  for (std::size_t at = 0; at < numbers.size();) {
    CycleEpoch epoch;
    for_each_number(epoch, [&](auto& value) { value = static_cast<std::decay_t<decltype(value)>>(numbers.at(at++)); });
    result.push_back(epoch);
  }
  return result;
}

// [values] double, from -1 to 1.
at::Tensor mean_image(const Dataset& data) {
  at::Tensor sum = at::zeros({data.images[0].numel()}, at::kDouble);
  for (const at::Tensor& part : data.images.split(kSummedAtOnce)) sum += part.flatten(1).sum(0, false, at::kDouble);
  return sum / static_cast<double>(data.size()) * (2.0 / 255) - 1;
}

// Names of the classes that its images have; none if some have no label.
std::set<std::string> classes_in(const Dataset& data) {
  std::set<std::string> names;
  if (!data.labelled()) return names;
  for (const std::string& name : class_names_of(data)) names.insert(name);
  return names;
}

// Lets a cycle know which images are of which domain: by class, if no class has images in both; else, and for other
// images, by the nearer mean: |x - a|² - |x - b|² = 2 (b - a) x + |a|² - |b|².
void set_domains(Network& cycle, ModelCard& card, const Dataset& first, const Dataset& second) {
  at::Tensor a = mean_image(first), b = mean_image(second);
  cycle.set_parameter("domain.weight", (2 * (b - a)).to(at::kFloat).unsqueeze(0));
  cycle.set_parameter("domain.bias", (a.square().sum() - b.square().sum()).to(at::kFloat).view({1}));
  std::set<std::string> ours = classes_in(first), theirs = classes_in(second);
  bool apart = !ours.empty() && !theirs.empty() &&
               std::none_of(ours.begin(), ours.end(), [&](const std::string& name) { return theirs.count(name) != 0; });
  if (!apart) return;
  card.first_domain.assign(ours.begin(), ours.end());
  card.second_domain.assign(theirs.begin(), theirs.end());
}

class CycleTraining {
 public:
  CycleTraining(const Dataset& first, const Dataset& second, const Dataset& looked_at, const CycleOptions& options)
      : options_(options),
        looked_at_(looked_at),
        data_{&first, &second},
        shape_{first.channels(), first.height(), first.width(), 2},
        spec_(Spec::parse(options.translator)),
        networks_(parts()),
        whole_(cycle()),
        trainer_({networks_[0].get(), networks_[1].get(), networks_[2].get(), networks_[3].get()},
                 {{"translators", {{kP}, {kQ}}, options.optimizer},
                  {"critics", {{kCriticOfFirst}, {kCriticOfSecond}}, options.optimizer}},
                 {options.batch, options.micro_batch, options.seed}),
        schedule_(schedules().create(Spec::parse(options.schedule))),
        firsts_(first.size(), trainer_.rng().derive("first domain")),
        seconds_(second.size(), trainer_.rng().derive("second domain")),
        steps_((options.epoch_images + options.batch - 1) / options.batch) {}

  CycleResult run(const CycleListener& listener) {
    TrainLoop loop;
    loop.epochs = options_.epochs;
    loop.rows = options_.epoch_images;
    loop.batch = options_.batch;
    loop.unit = "pairs";
    loop.checkpoint = options_.checkpoint;
    loop.settings = settings();
    loop.step = [this] { return step(); };
    loop.note = [this] {
      return fmt::format("cycle {:.3f}  adversarial {:.3f}  critics {:.3f}", mean(cycle_figure),
                         mean(adversarial_figure), mean(critics_figure));
    };
    loop.resumed = [&] {
      assemble();
      for (CycleEpoch epoch : epochs_of(trainer_.state().numbers)) {
        epoch.past = true;
        listener(epoch, *whole_);
      }
    };
    loop.epoch_ended = [&] { end_epoch(listener); };
    CycleResult result;
    result.resumed = trainer_.run(loop);
    assemble();
    result.epochs = epochs_of(trainer_.state().numbers);
    result.told_apart = told_apart();
    result.network = std::move(whole_);
    return result;
  }

 private:
  enum Figure : std::size_t { adversarial_figure, cycle_figure, identity_figure, critics_figure, steps_figure };

  std::unique_ptr<Network> translator(const std::vector<std::string>& prefixes) const {
    Rng rng = Rng(options_.seed).derive("weights");
    auto network = Network::from_onnx(translators().create(spec_, TranslatorRequest{shape_, prefixes, rng}), spec_.name,
                                      for_cycle(kEvaluatedAtOnce));
    ModelCard card;
    card.preprocess = signed_unit();
    card.preprocess_known = true;
    network->set_card(card);
    return network;
  }

  std::unique_ptr<Network> cycle() const {
    std::unique_ptr<Network> network = translator({kPrefixP, kPrefixQ});
    ModelCard card = network->card();
    card.architecture = kCycleOf + translators().options(spec_).str();
    card.data = data_[0] == data_[1] ? data_[0]->name : data_[0]->name + " / " + data_[1]->name;
    set_domains(*network, card, *data_[0], *data_[1]);
    network->set_card(card);
    return network;
  }

  std::vector<std::unique_ptr<Network>> parts() const {
    std::vector<std::unique_ptr<Network>> all;
    all.push_back(translator({kPrefixP}));
    all.push_back(translator({kPrefixQ}));
    for (const char* prefix : {"x.", "y."}) all.push_back(critic(prefix));
    return all;
  }

  std::unique_ptr<Network> critic(const std::string& prefix) const {
    Rng rng = Rng(options_.seed).derive("weights");
    return Network::from_onnx(critic_onnx(shape_, options_.critic_width, prefix, rng), "critic",
                              for_cycle(kEvaluatedAtOnce));
  }

  // P and Q, as they are now, into the network that is given back.
  void assemble() {
    for (std::size_t n : {kP, kQ}) {
      for (const NamedParameter& parameter : networks_[n]->parameters()) {
        if (parameter.trainable) whole_->set_parameter(parameter.name, networks_[n]->parameter(parameter.name));
      }
    }
  }

  double told_apart() const {
    ImageToImage translator(*whole_);
    double right = 0, all = 0;
    for (std::size_t domain : {0, 1}) {
      const Dataset& data = *data_[domain];
      std::vector<std::int64_t> rows(static_cast<std::size_t>(std::min(data.size(), kSummedAtOnce)));
      std::iota(rows.begin(), rows.end(), 0);
      Dataset some = data.subset(rows);
      for (char found : translator.domains(some.images, class_names_of(some)))
        right += static_cast<std::size_t>(found) == domain ? 1 : 0;
      all += static_cast<double>(some.size());
    }
    return right / all;
  }

  std::string settings() const {
    auto data = [](const Dataset& d) { return fmt::format("{} ({})", d.name, content_hash(d).substr(0, 16)); };
    const CycleOptions& o = options_;
    return fmt::format(
        "first = {}\nsecond = {}\nlooked at = {}\ntranslator = {}\ncritics = {}\nepochs = {}\nepoch images = {}\n"
        "batch = {}\nmicro-batch = {}\noptimizer = {}\nschedule = {}\nadversarial = {}\ncycle = {}\nidentity = {}\n"
        "replay = {}\nseed = {}\n",
        data(*data_[0]), data(*data_[1]), data(looked_at_), translators().options(spec_).str(), o.critic_width,
        o.epochs, o.epoch_images, o.batch, o.micro_batch, optimizers().options(Spec::parse(o.optimizer)).str(),
        schedules().options(Spec::parse(o.schedule)).str(), o.adversarial, o.cycle, o.identity, o.replay, o.seed);
  }

  double mean(Figure figure) const {
    const std::vector<double>& sums = trainer_.state().sums;
    return sums.size() <= steps_figure || sums[steps_figure] == 0 ? 0 : sums[figure] / sums[steps_figure];
  }

  double rate() const {
    const TrainState& state = trainer_.state();
    double epoch = static_cast<double>(state.epoch) + static_cast<double>(state.step) / static_cast<double>(steps_);
    return schedule_(epoch, static_cast<double>(options_.epochs));
  }

  // Rows of the step, [n, C, H, W] float.
  at::Tensor batch_of(const Dataset& data, const std::vector<std::int64_t>& rows) const {
    return signed_unit().apply(data.images.index_select(0, at::tensor(rows, at::kLong)));
  }

  // How far scores are from what they should be, a mean over patches, summed over images.
  at::Tensor judged(const at::Tensor& scores, bool as_real) const {
    at::Tensor each;
    if (options_.adversarial == "log") {
      each = as_real ? -at::log_sigmoid(scores) : -at::log_sigmoid(-scores);  // eq. 2 and 3
    } else {
      each = as_real ? (scores - 1).square() : scores.square();
    }
    return each.flatten(1).mean(1).sum();
  }

  static at::Tensor distance(const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().flatten(1).mean(1).sum();
  }

  std::vector<double> step() {
    const TrainState& state = trainer_.state();
    std::int64_t before = (state.epoch * steps_ + state.step) * options_.batch;
    std::int64_t count = std::min(options_.batch, options_.epoch_images - state.step * options_.batch);
    std::vector<std::int64_t> rows_x, rows_y;
    Trainer::Step step;
    for (std::int64_t k = 0; k < count; ++k) {
      rows_x.push_back(firsts_.at(before + k));
      rows_y.push_back(seconds_.at(before + k));
      step.rows.push_back(k);
    }
    x_ = batch_of(*data_[0], rows_x);
    y_ = batch_of(*data_[1], rows_y);
    made_x_ = at::empty_like(x_);
    made_y_ = at::empty_like(y_);
    step.rate = rate();
    step.groups = {kTranslatorGroup};
    std::vector<double> figures = trainer_.step(step, [this](Slot& slot) { return translators_loss(slot); });
    Rng rng = trainer_.rng().derive("replay").derive(static_cast<std::uint64_t>(before));
    made_x_ = MadeBefore(options_.replay, trainer_.state().kept, 0).exchange(made_x_, rng.derive(0));
    made_y_ = MadeBefore(options_.replay, trainer_.state().kept, 1).exchange(made_y_, rng.derive(1));
    step.groups = {kCriticGroup};
    step.phase = 1;
    std::vector<double> critics = trainer_.step(step, [this](Slot& slot) { return critics_loss(slot); });
    auto images = static_cast<double>(count);
    return {figures[0] / images, figures[1] / images, figures[2] / images, critics[0] / images, 1};
  }

  static at::Tensor rows_of_slot(const Slot& slot, const at::Tensor& all) {
    return all.narrow(0, slot.rows().front(), static_cast<std::int64_t>(slot.rows().size()));
  }

  SlotLoss translators_loss(Slot& slot) {
    at::Tensor x = rows_of_slot(slot, x_), y = rows_of_slot(slot, y_);
    std::int64_t n = x.size(0);
    bool with_identity = options_.identity > 0;
    // What is to be turned and what should stay as it is, in one pass.
    at::Tensor from_p = slot.forward(kP, with_identity ? at::cat({x, y}) : x)[0];
    at::Tensor from_q = slot.forward(kQ, with_identity ? at::cat({y, x}) : y)[0];
    at::Tensor made_y = from_p.narrow(0, 0, n), made_x = from_q.narrow(0, 0, n);
    at::Tensor adversarial =
        judged(slot.forward(kCriticOfSecond, made_y)[0], true) + judged(slot.forward(kCriticOfFirst, made_x)[0], true);
    at::Tensor cycle = distance(slot.forward(kQ, made_y)[0], x) + distance(slot.forward(kP, made_x)[0], y);  // eq. 4
    at::Tensor loss = adversarial + options_.cycle * cycle;
    double identity_loss = 0;
    if (with_identity) {
      at::Tensor identity = distance(from_p.narrow(0, n, n), y) + distance(from_q.narrow(0, n, n), x);
      loss = loss + options_.identity * identity;
      identity_loss = identity.item<double>();
    }
    // Slots write to rows of their own.
    rows_of_slot(slot, made_x_).copy_(made_x.detach());
    rows_of_slot(slot, made_y_).copy_(made_y.detach());
    return {loss / static_cast<double>(slot.batch()),
            {adversarial.item<double>(), cycle.item<double>(), identity_loss}};
  }

  SlotLoss critics_loss(Slot& slot) const {
    auto of = [&](std::size_t critic, const at::Tensor& real, const at::Tensor& made) {
      std::int64_t n = real.size(0);
      at::Tensor scores = slot.forward(critic, at::cat({real, made}))[0];
      return (judged(scores.narrow(0, 0, n), true) + judged(scores.narrow(0, n, n), false)) / 2;
    };
    at::Tensor loss = of(kCriticOfFirst, rows_of_slot(slot, x_), rows_of_slot(slot, made_x_)) +
                      of(kCriticOfSecond, rows_of_slot(slot, y_), rows_of_slot(slot, made_y_));
    return {loss / static_cast<double>(slot.batch()), {loss.item<double>()}};
  }

  void end_epoch(const CycleListener& listener) {
    assemble();
    CycleEpoch epoch;
    epoch.epoch = trainer_.state().epoch + 1;
    epoch.rate = trainer_.base_rate(kTranslatorGroup) * rate();
    epoch.adversarial = mean(adversarial_figure);
    epoch.cycle = mean(cycle_figure);
    epoch.identity = mean(identity_figure);
    epoch.critics = mean(critics_figure);
    epoch.figures = measure_examples(ImageToImage(*whole_), looked_at_, options_.seed);
    epoch.seconds = trainer_.seconds();
    listener(epoch, *whole_);
    // Only now: an epoch whose end is interrupted ends again.
    for_each_number(epoch, [&](auto& value) { trainer_.state().numbers.push_back(static_cast<double>(value)); });
  }

  CycleOptions options_;
  const Dataset& looked_at_;
  std::vector<const Dataset*> data_;
  ArchitectureShape shape_;
  Spec spec_;
  std::vector<std::unique_ptr<Network>> networks_;  // P, Q, critic of the first domain, of the second
  std::unique_ptr<Network> whole_;                  // both ways through P and Q
  Trainer trainer_;
  Schedule schedule_;
  EndlessRows firsts_;
  EndlessRows seconds_;
  std::int64_t steps_;                  // of an epoch
  at::Tensor x_, y_, made_x_, made_y_;  // of the step
};

}  // namespace

CycleResult train_cycle(const Dataset& first, const Dataset& second, const Dataset& looked_at,
                        const CycleOptions& options, const CycleListener& listener) {
  if (options.epochs < 0 || options.epoch_images < 1 || options.batch < 1 || options.micro_batch < 1)
    bad_usage("epochs, images of an epoch, batch and micro-batch must be positive");
  if (options.adversarial != "squares" && options.adversarial != "log")
    bad_usage("the adversarial loss is 'squares' or 'log', not '{}'", printable(options.adversarial));
  for (const Dataset* part : {&first, &second, &looked_at}) {
    if (part->size() == 0) bad_input("{}: has no images", part->name);
    if (part->type() != first.type())
      bad_input("{}: has images of {}, but {} has {}; both domains must have the same size", part->name,
                part->type().shape_text(), first.name, first.type().shape_text());
  }
  return CycleTraining(first, second, looked_at, options).run(listener);
}

}  // namespace galvani
