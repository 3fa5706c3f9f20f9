// A training's epochs, with checkpoints.
#include <fmt/format.h>
#include <torch/script.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/progress.h"
#include "model/train/checkpoint.h"
#include "model/train/trainer_impl.h"

namespace galvani {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kSaveEvery{60};

class Loop {
 public:
  Loop(Trainer& trainer, const TrainLoop& plan, std::vector<at::Tensor> live)
      : trainer_(trainer), state_(trainer.state()), plan_(plan), live_(std::move(live)) {}

  bool run(Clock::time_point& epoch_began) {
    Progress::Passing no_bar_stays;
    bool resumed = resume();
    if (resumed && plan_.resumed) plan_.resumed();
    try {
      while (state_.epoch < plan_.epochs && state_.stopped.empty()) {
        epoch_began = Clock::now();
        run_epoch();
        if (plan_.epoch_ended) plan_.epoch_ended();
        state_.epoch += 1;
        state_.step = 0;
        state_.sums.clear();
        save();
      }
    } catch (const Error& e) {
      // Whatever was interrupted, between two steps nothing is lost.
      if (e.code() != ErrorCode::interrupted) throw;
      save();
      fail(ErrorCode::interrupted, "interrupted{}",
           plan_.checkpoint.empty() ? "" : "; the same command goes on from " + plan_.checkpoint.string());
    }
    return resumed;
  }

 private:
  void run_epoch() {
    Progress progress(fmt::format("epoch {}/{}", state_.epoch + 1, plan_.epochs), plan_.rows, plan_.unit);
    progress.advance(state_.step * plan_.batch);
    while (state_.step < plan_.steps() && !(plan_.enough && plan_.enough())) {
      std::vector<double> figures = plan_.step();
      state_.sums.resize(std::max(state_.sums.size(), figures.size()));
      for (std::size_t i = 0; i < figures.size(); ++i) state_.sums[i] += figures[i];
      state_.step += 1;
      progress.advance(std::min(plan_.batch, plan_.rows - (state_.step - 1) * plan_.batch));
      if (plan_.note) progress.note(plan_.note());
      check_interrupt();
      if (Clock::now() - saved_ > kSaveEvery) save();
    }
    progress.finish();
  }

  bool resume() {
    if (plan_.checkpoint.empty() || !std::filesystem::exists(plan_.checkpoint)) return false;
    Checkpoint found = load_checkpoint(plan_.checkpoint);
    if (std::string change = difference(found.settings, plan_.settings); !change.empty())
      bad_usage("{}: is of a training with other settings ({}); delete it to start anew", plan_.checkpoint.string(),
                change);
    bool fits = found.tensors.size() == live_.size() && found.state.updates.size() == state_.updates.size();
    for (std::size_t i = 0; fits && i < live_.size(); ++i) fits = found.tensors[i].sizes() == live_[i].sizes();
    if (!fits) bad_input("{}: does not fit the model", plan_.checkpoint.string());
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> weights = trainer_.weights();
    for (std::size_t i = weights.size(); i < live_.size(); ++i) live_[i].copy_(found.tensors[i]);
    found.tensors.resize(weights.size());
    trainer_.set_weights(found.tensors);
    state_ = std::move(found.state);
    return true;
  }

  void save() {
    saved_ = Clock::now();
    if (!plan_.checkpoint.empty()) save_checkpoint(plan_.checkpoint, {plan_.settings, state_, live_});
  }

  Trainer& trainer_;
  TrainState& state_;
  const TrainLoop& plan_;
  std::vector<at::Tensor> live_;  // weights, then the optimizers' memory
  Clock::time_point saved_ = Clock::now();
};

}  // namespace

double Trainer::seconds() const {
  return std::chrono::duration<double>(Clock::now() - impl_->epoch_began).count();
}

bool Trainer::run(const TrainLoop& loop) {
  if (!loop.step || loop.epochs < 0 || loop.rows < 1 || loop.batch < 1)
    fail(ErrorCode::internal, "a training needs steps and rows");
  std::vector<at::Tensor> live = weights();
  for (Impl::Group& group : impl_->groups) {
    for (at::Tensor* memory : group.optimizer->state()) live.push_back(*memory);
  }
  return Loop(*this, loop, std::move(live)).run(impl_->epoch_began);
}

}  // namespace galvani
